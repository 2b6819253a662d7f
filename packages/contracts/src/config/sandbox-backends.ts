/** Owns how a site names its sandbox backend, those of others among them. Does not load or choose one. */
import { z } from "zod";

/** Backends that are part of Mortise. */
export const BUILT_IN_BACKENDS = ["runc", "docker", "process", "kubernetes"] as const;

const backendName = z.string().regex(/^[A-Za-z0-9_-]+$/);

export const SandboxPlugIn = z.strictObject({
  module: z
    .string()
    .startsWith("/", "must be an absolute path")
    .describe("ES module with the backend. It is code of the sandbox-manager: nothing protects from it."),
  options: z
    .record(z.string(), z.unknown())
    .default({})
    .describe("Given to the plug-in as they are; it checks them."),
});

/** Of the table `sandbox`; `refuseWrongBackend` checks them together. */
export const backendChoice = {
  backend: backendName
    .default("auto")
    .describe(
      "runc, docker, kubernetes, process (insecure, development only), the name of a plug-in, or auto: runc as root on Linux, else Docker, else process.",
    ),
  plugins: z
    .record(backendName, SandboxPlugIn)
    .default({})
    .describe("Backends that are not part of Mortise, by the name that sandbox.backend selects."),
};

/** A name that nothing has, or that two things would have, is refused before anything starts. */
export function refuseWrongBackend(
  { backend, plugins }: { readonly backend: string; readonly plugins: Readonly<Record<string, unknown>> },
  context: z.core.$RefinementCtx,
): void {
  const taken: readonly string[] = ["auto", ...BUILT_IN_BACKENDS];
  for (const name of Object.keys(plugins))
    if (taken.includes(name))
      context.addIssue({
        code: "custom",
        path: ["plugins", name],
        message: "is the name of a backend of Mortise; give the plug-in another",
      });
  if (taken.includes(backend) || Object.hasOwn(plugins, backend)) return;
  context.addIssue({
    code: "custom",
    path: ["backend"],
    message: `${JSON.stringify(backend)} is none of ${[...taken, ...Object.keys(plugins)].join(", ")}; add [sandbox.plugins.${backend}] or name one of these`,
  });
}
