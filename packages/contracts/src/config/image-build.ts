/** Owns how a site builds the images of tasks that bring a Dockerfile and name no image. Does not build. */
import { z } from "zod";

export const ImageBuild = z.strictObject({
  network: z
    .enum(["none", "bridge", "host"])
    .default("none")
    .describe(
      "Network of RUN steps; with none, ADD of a URL is refused too. Base images are fetched before, by digest.",
    ),
  allowUnpinned: z
    .boolean()
    .default(false)
    .describe("Accept base images without a tag or with `latest`; what they were is recorded all the same."),
  args: z
    .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), z.string())
    .default({})
    .describe(
      "Build arguments for Dockerfiles that declare them. Not for secrets: an image's history shows them.",
    ),
  timeoutMultiplier: z
    .number()
    .positive()
    .default(1)
    .describe("Times environment.build_timeout_sec of a task."),
  contextBytes: z
    .int()
    .min(1024)
    .default(268_435_456)
    .describe("Bytes of a task's environment folder that may go to the builder."),
  memoryBytes: z.int().min(16_777_216).default(4_294_967_296).describe("Memory a build step may use, bytes."),
  concurrency: z.int().min(1).default(2).describe("Builds at once."),
});
