import { beforeAll, expect, test } from "vitest";
import { Metrics } from "../src/metrics.js";
import { StageCpu } from "../src/stage-cpu.js";
import { continueTrace, currentTraceParent, startTracing, withSpan, withTrace } from "../src/telemetry.js";

beforeAll(() => {
  startTracing({ service: "probe" });
});

test("T2: the trace of an id is the same wherever it is entered", () => {
  const first = withTrace("run/trial-1", currentTraceParent);
  expect(first).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
  expect(withTrace("run/trial-1", currentTraceParent)).toBe(first);
  expect(withTrace("run/trial-2", currentTraceParent)).not.toBe(first);
});

test("T1: context follows asynchronous work and crosses a carrier", async () => {
  const sent = await withTrace("run/trial-1", async () => {
    await new Promise(setImmediate);
    return currentTraceParent();
  });
  expect(currentTraceParent()).toBeUndefined();
  const traceId = sent!.split("-")[1];
  const inside = continueTrace(sent, () => withSpan("work", {}, async () => currentTraceParent()));
  expect((await inside)!.split("-")[1]).toBe(traceId);
});

test("a malformed traceparent starts outside any trace", () => {
  expect(continueTrace("00-nonsense", currentTraceParent)).toBeUndefined();
});

test("metrics carry the prefix of the service", async () => {
  const metrics = new Metrics("sandbox-manager");
  metrics.counter("starts_total", "Starts.", ["backend"]).inc({ backend: "runc" }, 2);
  metrics.gauge("mortise_sandbox_manager_warm", "Warm.").set(3);
  const text = await metrics.render();
  expect(text).toContain('mortise_sandbox_manager_starts_total{backend="runc"} 2');
  expect(text).toContain("mortise_sandbox_manager_warm 3");
});

test("stage CPU is counted once however often it is rendered", async () => {
  const metrics = new Metrics("probe");
  const stages = new StageCpu();
  metrics.exposeProcess(stages);
  stages.add("render", 1_500);
  stages.add("render", 500);
  await metrics.render();
  expect(await metrics.render()).toContain('mortise_probe_stage_cpu_seconds_total{stage="render"} 2');
});

test("measuring a stage counts work and not waiting", () => {
  const stages = new StageCpu();
  const result = stages.measure("busy", () => {
    let sum = 0;
    for (let i = 0; i < 5_000_000; i++) sum += Math.sqrt(i);
    return sum;
  });
  expect(result).toBeGreaterThan(0);
  expect(stages.byStage().busy).toBeGreaterThan(0);
  expect(stages.report().busyMs).toBeGreaterThanOrEqual(stages.byStage().busy!);
});
