import { spawnSync } from "node:child_process";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { CpuMeter, overheadOf } from "../src/quickstart/cpu-meter.js";
import { processTreeCpuMs } from "../src/quickstart/process-cpu.js";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A service's status server that answers with these numbers, one after another. */
async function answering(...answers: object[]): Promise<string> {
  const server = createServer((_request, response) =>
    response.end(JSON.stringify(answers.length > 1 ? answers.shift() : answers[0])),
  );
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}
const instance = (service: string, name: string, httpAddress: string) => ({
  service,
  instance: name,
  httpAddress,
  rpcAddress: "",
  pid: 1,
  startedAt: 1,
  facts: {},
});

describe("the overhead of a trial", () => {
  test("is busy time without compute, of every process that ever lived, per ended trial", async () => {
    const meter = new CpuMeter();
    const proxy = await answering({ busyMs: 900, computeMs: 400, stages: { render: 100 } });
    const first = await answering({ busyMs: 300, childrenMs: 700, computeMs: 0, stages: {} });
    const second = await answering({ busyMs: 50, childrenMs: 50, computeMs: 0, stages: {} });
    await meter.sampleServices([instance("proxy", "a", proxy), instance("sandbox-manager", "a", first)]);
    // The manager was killed: its successor is another instance, and its own time stays.
    await meter.sampleServices([instance("proxy", "a", proxy), instance("sandbox-manager", "b", second)]);
    const overhead = overheadOf(meter.readings(), 10)!;
    expect(overhead).toMatchObject({ totalMs: 2000, computeMs: 400, perTrialMs: 160 });
    expect(overhead.parts).toEqual([
      ["sandbox-manager (not attributed)", 110],
      ["proxy (not attributed)", 40],
      ["render", 10],
    ]);
  });
  test("keeps the last reading of a service that does not answer, and what an earlier start measured", async () => {
    const meter = new CpuMeter({ "trainer/old": { busyMs: 500, childrenMs: 0, computeMs: 500, stages: {} } });
    await meter.sampleServices([instance("proxy", "a", "127.0.0.1:1")]);
    expect(overheadOf(meter.readings(), 1)).toMatchObject({ totalMs: 500, perTrialMs: 0 });
  });
  test("is undefined before the first trial has ended", () => expect(overheadOf({}, 0)).toBeUndefined());
});

test.skipIf(process.platform !== "linux")(
  "the CPU time of a process includes children it has waited for",
  () => {
    const before = processTreeCpuMs(process.pid)!;
    spawnSync(process.execPath, ["-e", "const end = Date.now() + 300; while (Date.now() < end);"]);
    expect(processTreeCpuMs(process.pid)! - before).toBeGreaterThanOrEqual(100);
    expect(processTreeCpuMs(2 ** 30)).toBeUndefined();
  },
);
