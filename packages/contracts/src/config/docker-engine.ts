/** Owns how a site says which Docker engine its sandboxes and builds use. Does not connect. */
import { z } from "zod";

const LAST_PORT = 65_535;

const file = (what: string) =>
  z.string().startsWith("/", "must be an absolute path").describe(`PEM file with ${what}.`);

export const DockerEngine = z.strictObject({
  host: z
    .string()
    .regex(/^(unix:\/\/\/.+|tcp:\/\/[^/\s@]+:[0-9]+)$/, "must be unix:///path or tcp://host:port")
    .refine(
      (host) => host.startsWith("unix:") || Number(host.slice(host.lastIndexOf(":") + 1)) <= LAST_PORT,
      `must name a port of at most ${LAST_PORT}`,
    )
    .optional()
    .describe(
      "The engine: unix:///path of this host, or tcp://host:port, also elsewhere. DOCKER_HOST (unix only) or the default socket when absent.",
    ),
  tls: z
    .strictObject({
      ca: file("the authority that signed the engine's certificate; no other is trusted"),
      cert: file("the certificate this manager shows the engine"),
      key: file("its private key"),
    })
    .optional()
    .describe("Certificates for an engine at tcp://, in both directions."),
  allowPlainTcp: z
    .boolean()
    .default(false)
    .describe(
      "Speak to tcp:// without TLS. Whoever reaches that port is root there; said at every start. For tests and tunnels.",
    ),
});

export type DockerEngine = z.infer<typeof DockerEngine>;
