/**
 * `docker compose up` trains: the real stack, two replicas of what scales, a short run to its end. The tests
 * share one stack and run in order; the last one takes it down.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { type ContainerFacts, Stack, serviceOf } from "./stack.js";

const { environment, absent } = inject("docker");
const SETTINGS = { MORTISE_STEPS: "2", MORTISE_EVAL_ATTEMPTS: "16" };
const UP = ["up", "--detach", "--scale", "proxy=2", "--scale", "verifier=2"];
const ONE_SHOTS = ["provision", "topology"];
const LONG_RUNNING = [
  "archiver",
  "nats",
  "proxy",
  "proxy",
  "sandbox-manager",
  "scheduler",
  "trainer",
  "verifier",
  "verifier",
];
const LOOK_INTERVAL_MS = 5_000;
const RUN_LIMIT_MS = 40 * 60_000;

interface Status {
  readonly phase: string;
  readonly steps: number;
  readonly trials: number;
  readonly tokens: Record<"sampled" | "trained" | "baselineOnly" | "excluded" | "unconsumed", number>;
}

describe.skipIf(environment === undefined)(`docker-compose.yml${absent === "" ? "" : ` (${absent})`}`, () => {
  const stack = new Stack({ ...environment, ...SETTINGS });
  const services = async () =>
    (await stack.containers()).filter((one) => !ONE_SHOTS.includes(serviceOf(one)));
  const ownServices = async () => (await services()).filter((one) => serviceOf(one) !== "nats");

  beforeAll(async () => {
    const up = await stack.compose(UP);
    expect(up.code, up.stderr).toBe(0);
  });
  afterAll(async () => {
    await stack.compose(["down", "--volumes", "--remove-orphans"]);
  });

  test("two proxies and two verifiers come up beside the rest; no port of the host is taken", async () => {
    const running = await awaitHealthy(services);
    expect(running.map(serviceOf).sort()).toEqual(LONG_RUNNING);
    for (const container of running) expect(container.HostConfig.PortBindings ?? {}).toEqual({});
    for (const name of ONE_SHOTS)
      expect((await stack.of(name))[0]?.State).toMatchObject({ Status: "exited", ExitCode: 0 });
  });

  test("every container is unprivileged, and the kernel agrees", async () => {
    for (const container of await stack.containers()) {
      expect(container.Config.User).toBe("10001:10001");
      expect(container.HostConfig).toMatchObject({
        ReadonlyRootfs: true,
        CapDrop: ["ALL"],
        Privileged: false,
      });
    }
    for (const container of await services()) {
      const status = await stack.exec(container, ["cat", "/proc/1/status"]);
      expect(field(status, "Uid")).toBe("10001");
      for (const set of ["CapPrm", "CapEff", "CapBnd"]) expect(field(status, set)).toMatch(/^0+$/);
      expect(field(status, "NoNewPrivs")).toBe("1");
      await expect(stack.exec(container, ["sh", "-c", "echo x > /opt/written"])).rejects.toThrow(
        /Read-only file system/,
      );
    }
  });

  test("a container holds its own identity and no other; none is in what docker shows or logs", async () => {
    const secrets = new Set<string>();
    for (const container of await ownServices()) {
      const listing = await stack.exec(container, ["sh", "-c", "stat -c '%n %a' /run/mortise/*"]);
      expect(listing.trim()).toBe(`/run/mortise/${serviceOf(container)}.json 600`);
      const identity = await stack.exec(container, ["cat", `/run/mortise/${serviceOf(container)}.json`]);
      const { password, bearer } = JSON.parse(identity) as { password: string; bearer: string };
      secrets.add(password).add(bearer);
    }
    // One password for each of the six services, and the bearer that all of them share.
    expect(secrets.size).toBe(7);
    const logs = await stack.compose(["logs", "--no-color"]);
    const shown = `${JSON.stringify(await stack.containers())}\n${logs.stdout}\n${logs.stderr}`;
    for (const secret of secrets) expect(shown.includes(secret)).toBe(false);
  });

  test("another `up` keeps identities and run; other settings for the same run are refused", async () => {
    const identity = async () =>
      stack.exec((await stack.of("scheduler"))[0]!, ["cat", "/run/mortise/scheduler.json"]);
    const before = await identity();
    expect((await stack.compose(UP)).code).toBe(0);
    expect(await identity()).toBe(before);
    const other = await stack.compose(["run", "--rm", "-T", "-e", "MORTISE_STEPS=3", "provision"]);
    expect(other.code).toBe(2);
    expect(`${other.stdout}${other.stderr}`).toContain("MORTISE_OPERATOR_RUN_EXISTS (steps)");
  });

  test(
    "the run finishes, its tokens balance, and both proxies had a part in it",
    async () => {
      const { steps, trials, tokens } = await awaitFinished(stack, services);
      expect(steps).toBe(2);
      // Two steps of 16 groups of 8 trials, and 16 attempts before and after.
      expect(trials).toBeGreaterThanOrEqual(2 * 16 * 8 + 2 * 16);
      expect(tokens.trained).toBeGreaterThan(0);
      expect(tokens.trained + tokens.baselineOnly + tokens.excluded + tokens.unconsumed).toBe(tokens.sampled);
      const sealed = await Promise.all(
        (await stack.of("proxy")).map((proxy) => stack.metric(proxy, "mortise_proxy_sessions_sealed_total")),
      );
      expect(sealed).toHaveLength(2);
      for (const count of sealed) expect(count).toBeGreaterThan(0);
      expect(sealed.reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(trials);
      for (const container of await services()) expect(container.RestartCount, container.Name).toBe(0);
    },
    RUN_LIMIT_MS,
  );

  test("told to stop, every service drains; `down --volumes` leaves nothing", async () => {
    expect((await stack.compose(["stop"])).code).toBe(0);
    for (const container of await ownServices()) expect(container.State.ExitCode, container.Name).toBe(0);
    expect((await stack.compose(["down", "--volumes"])).code).toBe(0);
    expect(await stack.leftovers()).toEqual([]);
  });
});

/** Resolves when every container is healthy; the test's own limit ends a wait in vain. */
async function awaitHealthy(list: () => Promise<ContainerFacts[]>): Promise<ContainerFacts[]> {
  for (;;) {
    const containers = await list();
    assertAllRunning(containers);
    if (containers.every(({ State }) => State.Health?.Status === "healthy")) return containers;
    await sleep(LOOK_INTERVAL_MS);
  }
}

async function awaitFinished(stack: Stack, services: () => Promise<ContainerFacts[]>): Promise<Status> {
  for (;;) {
    const status = (await stack.mortise(["status", "first"])) as unknown as Status;
    if (status.phase === "FINISHED") return status;
    assertAllRunning(await services());
    await sleep(LOOK_INTERVAL_MS);
  }
}

function assertAllRunning(containers: readonly ContainerFacts[]): void {
  for (const { Name, State } of containers) expect(State.Status, Name).toBe("running");
}

/** First value of a field of /proc/<pid>/status. */
function field(status: string, name: string): string {
  return new RegExp(`^${name}:\\s+(\\S+)`, "m").exec(status)?.[1] ?? "";
}
