/**
 * One service from the image by itself, as somebody operates it who scales single services: a nats-server, the
 * one-shot steps, one archiver. It becomes healthy, and on SIGTERM it drains and ends with exit code 0.
 */
import { randomBytes } from "node:crypto";
import {
  GenericContainer,
  Network,
  type StartedNetwork,
  type StartedTestContainer,
  Wait,
} from "testcontainers";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { runCommand } from "../docker/command.js";

const { environment, absent } = inject("docker");
const SHARED = "/var/lib/mortise/run";
const IDENTITIES = "/var/lib/mortise/identities";
/** One volume each, as in docker-compose.yml. */
const USERS = [
  ...["nats", "admin", "observer"],
  ...["proxy", "sandbox-manager", "verifier", "scheduler", "trainer", "archiver"],
];
const STARTUP_MS = 120_000;
const STOP_SECONDS = "30";

describe.skipIf(environment === undefined)(
  `a service by itself${absent === "" ? "" : ` (${absent})`}`,
  () => {
    const image = environment?.MORTISE_IMAGE ?? "";
    const volume = `mortise-test-${randomBytes(4).toString("hex")}`;
    const started: StartedTestContainer[] = [];
    let network: StartedNetwork;

    const docker = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await runCommand({
        command: "docker",
        args,
        environment: environment ?? {},
      });
      if (code !== 0) throw new Error(`docker ${args.join(" ")} ended with ${code}: ${stderr}`);
      return stdout.trim();
    };
    const mounts = (user: string) => [
      ...["--volume", `${volume}-${user}:/run/mortise:ro`],
      ...["--volume", `${volume}-run:${SHARED}:ro`],
    ];
    const hardened = ["--read-only", "--cap-drop", "ALL", "--tmpfs", "/tmp", "--rm"];

    beforeAll(async () => {
      // What testcontainers reads; its own reaper would have to be pulled.
      Object.assign(process.env, environment, { TESTCONTAINERS_RYUK_DISABLED: "true" });
      network = await new Network().start();
      const volumes = USERS.flatMap((user) => ["--volume", `${volume}-${user}:${IDENTITIES}/${user}`]);
      const directories = ["--identities", IDENTITIES, "--directory", SHARED];
      await docker(
        ...["run", ...hardened, "--network", "none", ...volumes],
        ...["--volume", `${volume}-run:${SHARED}`, "--volume", `${volume}-data:/data`, image],
        ...["apps/cli/dist/main.js", "compose", "provision", ...directories],
      );
      started.push(await startServer(environment?.MORTISE_NATS_IMAGE ?? "", network, volume));
      await docker(
        ...["run", ...hardened, "--network", network.getName(), ...mounts("admin"), image],
        ...["apps/cli/dist/main.js", "compose", "topology", "first", "--site", `${SHARED}/site.toml`],
      );
    });

    afterAll(async () => {
      for (const container of started.reverse())
        await docker("rm", "--force", "--volumes", container.getId());
      await network?.stop();
      const names = [...USERS, "run", "data", "state"].map((name) => `${volume}-${name}`);
      if (environment !== undefined) await docker("volume", "rm", "--force", ...names);
    });

    test("becomes healthy without another service, drains on SIGTERM, ends with exit code 0", async () => {
      const archiver = await new GenericContainer(image)
        .withCommand(["deploy/service.mjs", "archiver"])
        .withNetwork(network)
        .withBindMounts([
          { source: `${volume}-archiver`, target: "/run/mortise", mode: "ro" },
          { source: `${volume}-run`, target: SHARED, mode: "ro" },
          { source: `${volume}-state`, target: "/var/lib/mortise/state" },
        ])
        .withTmpFs({ "/tmp": "" })
        .withDroppedCapabilities("ALL")
        .withAutoRemove(false)
        .withHealthCheck({ test: ["CMD", "node", "deploy/health.mjs"], interval: 1_000, retries: 60 })
        .withWaitStrategy(Wait.forHealthCheck())
        .withStartupTimeout(STARTUP_MS)
        .start();
      started.push(archiver);

      await docker("stop", "--time", STOP_SECONDS, archiver.getId());
      expect(await docker("inspect", "--format", "{{.State.ExitCode}}", archiver.getId())).toBe("0");
      const events = (await docker("logs", archiver.getId()))
        .split("\n")
        .map((line) => (JSON.parse(line) as { event: string }).event);
      expect(events.indexOf("service.ready")).toBeGreaterThanOrEqual(0);
      expect(events.indexOf("service.draining")).toBeGreaterThan(events.indexOf("service.ready"));
      expect(events.at(-1)).toBe("service.stopped");
    });

    test("does not start as a service whose identity it was not given", async () => {
      const { code, stderr } = await runCommand({
        command: "docker",
        args: [
          ...["run", ...hardened, "--network", network.getName(), ...mounts("archiver"), image],
          ...["deploy/service.mjs", "verifier"],
        ],
        environment: environment ?? {},
      });
      expect(code).toBe(2);
      expect(stderr).toContain("MORTISE_CONFIG_UNREADABLE");
      expect(stderr).toContain("/run/mortise/verifier.json");
    });
  },
);

function startServer(image: string, network: StartedNetwork, volume: string): Promise<StartedTestContainer> {
  return new GenericContainer(image)
    .withCommand(["--config", "/run/mortise/nats.conf"])
    .withUser("10001:10001")
    .withNetwork(network)
    .withNetworkAliases("nats")
    .withBindMounts([
      { source: `${volume}-nats`, target: "/run/mortise", mode: "ro" },
      { source: `${volume}-data`, target: "/data" },
    ])
    .withWaitStrategy(Wait.forLogMessage("Server is ready"))
    .withStartupTimeout(STARTUP_MS)
    .start();
}
