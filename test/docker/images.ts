/**
 * Owns the images of the tests: base images pulled where a registry answers and built by deploy/base-images.sh
 * where none does, and the image of the services built by docker-compose.yml itself.
 */
import { type Command, composeCommand, runCommand } from "./command.js";

const PULLED = {
  MORTISE_NODE_IMAGE: "node:24-bookworm-slim",
  MORTISE_NATS_IMAGE: "nats:2.12-alpine",
} as const;
const BUILT = {
  MORTISE_NODE_IMAGE: "mortise-base/node:local",
  MORTISE_NATS_IMAGE: "mortise-base/nats:local",
} as const;
const SERVICE_IMAGE = "mortise/service:test";
const PULL_TIMEOUT_MS = 120_000;

/** Builds what is missing. @returns the variables that docker-compose.yml reads. */
export async function buildImages(
  environment: Readonly<Record<string, string>>,
  inHostNetwork: boolean,
): Promise<Record<string, string>> {
  const base = await baseImages(environment);
  const variables = {
    ...base,
    MORTISE_IMAGE: SERVICE_IMAGE,
    ...(inHostNetwork ? { MORTISE_BUILD_NETWORK: "host" } : {}),
  };
  const classic = { DOCKER_BUILDKIT: "0", COMPOSE_DOCKER_CLI_BUILD: "0" };
  const [command, ...args] = composeCommand();
  const build = {
    command,
    args: [...args, "build", "provision"],
    environment: { ...environment, ...variables, ...classic },
  };
  await must(build, "the image of the services");
  return variables;
}

async function baseImages(environment: Readonly<Record<string, string>>): Promise<Record<string, string>> {
  if (await hasAll(environment, Object.values(BUILT))) return BUILT;
  if (await pullAll(environment)) return PULLED;
  await must({ command: "bash", args: ["deploy/base-images.sh"], environment }, "the base images");
  return BUILT;
}

async function hasAll(
  environment: Readonly<Record<string, string>>,
  images: readonly string[],
): Promise<boolean> {
  const found = await runCommand({ command: "docker", args: ["image", "inspect", ...images], environment });
  return found.code === 0;
}

async function pullAll(environment: Readonly<Record<string, string>>): Promise<boolean> {
  for (const image of Object.values(PULLED)) {
    const pull = { command: "docker", args: ["pull", image], environment, timeoutMs: PULL_TIMEOUT_MS };
    if ((await runCommand(pull)).code !== 0) return false;
  }
  return true;
}

async function must(command: Command, what: string): Promise<void> {
  process.stderr.write(`building ${what}\n`);
  const { code, stdout, stderr } = await runCommand(command);
  if (code !== 0)
    throw new Error(
      `${what} could not be built (exit code ${code}):\n${stdout.slice(-4_000)}\n${stderr.slice(-4_000)}`,
    );
}
