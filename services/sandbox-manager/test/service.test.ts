/** A real manager process on a real NATS server: the life of a trial as the scheduler and the verifier see it. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  CONSUMERS,
  type Content,
  KV_BUCKETS,
  LaunchWorkSchema,
  OBJECT_BUCKETS,
  type RunOnceRequest,
  type SandboxReport,
  SandboxReportSchema,
  SandboxService,
  STREAMS,
  subject,
  TerminationReason,
} from "@mortise/contracts";
import { type Bus, type Client, connectBus, createLog, ensureTopology, rpcClient } from "@mortise/kernel";
import { taskDigest } from "@mortise/tasks";
import { type NatsFixture, startNats } from "@mortise/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { RuncBackend } from "../src/backend/runc/backend.js";
import { decodePatch } from "../src/patch/codec.js";
import { ManagerProcess } from "./manager-process.js";

const RUN = "r1";
const FIXTURES = path.join(import.meta.dirname, "fixtures");
const TASK = {
  id: "add-numbers",
  digest: taskDigest(path.join(FIXTURES, "tasks/add-numbers")),
};
const base = mkdtempSync(path.join(tmpdir(), "mortise-manager-"));
const runc = await new RuncBackend({ stateDirectory: base, runc: "runc" }).availability();
const backends = runc.ok ? ["runc", "process"] : ["process"];
if (!runc.ok) console.log(`service tests on runc skipped: ${runc.reason}`);
afterAll(() => rmSync(base, { recursive: true, force: true }));

describe.each(backends)("sandbox-manager on %s", (backend) => {
  let nats: NatsFixture;
  let bus: Bus;
  let manager: ManagerProcess;
  let client: Client<typeof SandboxService>;
  let model: FakeModel;
  const watched: SandboxReport[] = [];
  const arrived = new Set<() => void>();
  const directory = path.join(base, backend);
  let serial = 0;

  beforeAll(async () => {
    nats = await startNats({ withUsers: true });
    const { user, password } = nats.identity("admin");
    const log = createLog({ service: "test", level: "error" });
    bus = await connectBus({ url: nats.url, user, password, name: "test", log, onFault: console.error });
    await ensureTopology(bus, {
      streams: STREAMS,
      consumers: CONSUMERS,
      kv: KV_BUCKETS,
      objects: OBJECT_BUCKETS,
    });
    await bus.follow({
      stream: "TRIALS",
      filters: [`mortise.v1.trial.${RUN}.*.sandbox`],
      from: "first",
      schema: SandboxReportSchema,
      onMessage: (report) => {
        watched.push(report);
        for (const wake of arrived) wake();
      },
    });
    model = await FakeModel.start();
    manager = new ManagerProcess(nats, {
      directory,
      tasks: path.join(FIXTURES, "tasks"),
      harness: path.join(FIXTURES, "harness"),
      backend,
    });
    await manager.start();
    client = connect();
  });
  afterEach(() => model.reset());
  afterAll(async () => {
    client?.close();
    await manager?.stop();
    await model?.stop();
    await bus?.close();
    await nats?.stop();
  });

  function connect(): Client<typeof SandboxService> {
    const { bearer } = nats.identity("sandbox-manager");
    return rpcClient(SandboxService, manager.rpcAddress, { bearer });
  }

  async function launch(changes: Record<string, unknown> = {}): Promise<string> {
    const trial = (changes.trial as string | undefined) ?? `${backend}-${++serial}`;
    await bus.publish({
      subject: subject.launch(RUN, trial),
      schema: LaunchWorkSchema,
      message: {
        run: RUN,
        trial,
        group: "g1",
        task: TASK,
        harness: "scripted",
        modelAddress: model.address,
        sessionToken: `secret-of-${trial}`,
        model: "policy",
        agentTimeoutMs: 20_000,
        ...changes,
      },
      dedupeId: `${trial}/launch/${Math.random()}`,
    });
    return trial;
  }

  /** Resolves with the first report of a trial that is of this kind. */
  async function report(trial: string, kind: "prepared" | "ended" | "failed"): Promise<SandboxReport> {
    for (;;) {
      const found = watched.find((candidate) => candidate.trial === trial && candidate.fact.case === kind);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        const wake = () => {
          arrived.delete(wake);
          resolve();
        };
        arrived.add(wake);
      });
    }
  }

  async function started(changes: Record<string, unknown> = {}): Promise<{ trial: string; lease: string }> {
    const trial = await launch(changes);
    const { lease } = await report(trial, "prepared");
    expect(await client.startAgent({ run: RUN, trial, lease })).toMatchObject({ started: true });
    return { trial, lease };
  }

  async function ended(trial: string) {
    const { fact } = await report(trial, "ended");
    return fact.case === "ended" ? fact.value : undefined!;
  }

  const runOnce = (request: Partial<RunOnceRequest>) =>
    client.runOnce({
      run: RUN,
      trial: "verify",
      task: TASK,
      argv: ["/bin/sh", "/tests/test.sh"],
      withTests: true,
      stdin: Buffer.from("nonce-1\n"),
      ...request,
    });
  const queued = async () => (await bus.manager.streams.info("WORK")).state.messages;

  test("a trial is prepared, waits for its slot, runs, and its change can be graded", async () => {
    model.reply = { write: { "src/add.cjs": "exports.add = (a, b) => a + b;\n" } };
    const trial = await launch();
    const prepared = await report(trial, "prepared");
    expect(prepared).toMatchObject({ backend, insecure: backend === "process" });
    expect(model.requests).toEqual([]);
    await client.startAgent({ run: RUN, trial, lease: prepared.lease });
    const end = await ended(trial);
    expect(end).toMatchObject({ termination: TerminationReason.COMPLETED, exitCode: 0, patchEntries: 1 });

    const [request] = model.requests;
    expect(request).toMatchObject({
      authorization: `Bearer secret-of-${trial}`,
      body: { token: `secret-of-${trial}`, instruction: "Make add return the sum.\n", hasTests: false },
    });
    if (backend === "runc")
      expect(request!.body.variables).toEqual([
        "HOME",
        "INSTRUCTION",
        "LANG",
        "MODEL_URL",
        "PATH",
        "TMPDIR",
        "TOKEN",
      ]);

    const patch = await decodePatch(inlineOf(end.patch));
    expect(patch.entries.map((entry) => [entry.kind, entry.path])).toEqual([["file", "src/add.cjs"]]);
    const graded = await runOnce({ patch: end.patch! });
    expect(graded).toMatchObject({ failureCode: "", exitCode: 0 });
    expect(Buffer.from(graded.stdout).toString()).toBe(
      '{"nonce":"nonce-1","name":"adds","status":"passed","ms":0}\n',
    );
    await expect.poll(queued).toBe(0);
  });

  test("without a patch the tests fail, with the solution they pass", async () => {
    const status = async (request: Partial<RunOnceRequest>) =>
      JSON.parse(Buffer.from((await runOnce(request)).stdout).toString()).status;
    expect(await status({})).toBe("failed");
    expect(await status({ withSolution: true })).toBe("passed");
  });

  test("how a run ends is told apart", async () => {
    const script = (code: string, timeoutMs = 20_000) => runOnce({ argv: ["node", "-e", code], timeoutMs });
    expect(await script("process.exit(7)")).toMatchObject({ failureCode: "", exitCode: 7 });
    expect(await script("for(;;);", 1000)).toMatchObject({ failureCode: "", timedOut: true });
    if (backend === "runc")
      expect(await script("for(const a=[];;)a.push(Buffer.alloc(4e6,1))")).toMatchObject({
        outOfMemory: true,
      });
    expect(await runOnce({ argv: ["no-such-program"] })).toMatchObject({
      failureCode: "MORTISE_SANDBOX_SETUP",
    });
  });

  test("a damaged patch, an unknown task and a wrong digest are refused by name", async () => {
    const damaged = {
      sha256: "00",
      size: 1n,
      place: { case: "inline", value: Buffer.from("x") },
    } as unknown as Content;
    await expect(runOnce({ patch: damaged })).rejects.toMatchObject({ code: "MORTISE_SANDBOX_PATCH" });
    await expect(runOnce({ task: { ...TASK, id: "none" } as never })).rejects.toMatchObject({
      code: "MORTISE_TASK_UNKNOWN",
    });
    await expect(runOnce({ task: { ...TASK, digest: "0".repeat(64) } as never })).rejects.toMatchObject({
      code: "MORTISE_TASK_DIGEST",
    });
  });

  test("a setup that cannot work is a failure with its code, and the work is done", async () => {
    for (const harness of ["unknown", "constructor", "__proto__"]) {
      const trial = await launch({ harness });
      expect((await report(trial, "failed")).fact.value).toMatchObject({
        termination: TerminationReason.SETUP_FAILED,
        code: "MORTISE_HARNESS_UNKNOWN",
      });
    }
    await expect.poll(queued).toBe(0);
  });

  test("exit codes, timeouts and a proxy that is gone have their reasons", async () => {
    const reasonOf = async (reply: object, changes: Record<string, unknown> = {}) => {
      model.reply = reply;
      return (await ended((await started(changes)).trial)).termination;
    };
    expect(await reasonOf({ exit: 1 })).toBe(TerminationReason.AGENT_CRASH);
    expect(await reasonOf({ exit: 6 })).toBe(TerminationReason.TURN_LIMIT);
    expect(await reasonOf({ hang: true }, { agentTimeoutMs: 600 })).toBe(TerminationReason.AGENT_TIMEOUT);
    expect(await reasonOf({}, { modelAddress: await closedAddress() })).toBe(TerminationReason.PROXY_FAILURE);
  });

  test("a cancelled trial ends as cancelled, warm or running", async () => {
    const warm = await launch();
    await report(warm, "prepared");
    expect(await client.cancelTrial({ run: RUN, trial: warm, reason: "test" })).toMatchObject({
      cancelled: true,
    });
    expect((await ended(warm)).termination).toBe(TerminationReason.CANCELLED);
    model.reply = { hang: true };
    const { trial } = await started();
    await expect.poll(() => model.requests.length).toBe(1);
    await client.cancelTrial({ run: RUN, trial, reason: "test" });
    expect((await ended(trial)).termination).toBe(TerminationReason.CANCELLED);
  });

  test("no slot in time is a lost sandbox; a wrong lease is unknown; a late repeat is answered", async () => {
    const late = await launch({ warmTimeoutMs: 50 });
    expect((await report(late, "failed")).fact.value).toMatchObject({
      termination: TerminationReason.SANDBOX_LOST,
    });
    const { trial, lease } = await started();
    await expect(client.startAgent({ run: RUN, trial: "none", lease: "none" })).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_UNKNOWN_LEASE",
    });
    await ended(trial);
    expect(await client.startAgent({ run: RUN, trial, lease })).toMatchObject({ started: true });
  });

  test("a launch delivered again after its end changes nothing", async () => {
    const { trial } = await started();
    await ended(trial);
    await launch({ trial });
    await expect.poll(queued).toBe(0);
    expect(watched.filter((candidate) => candidate.trial === trial)).toHaveLength(2);
  });

  test("after SIGKILL the next process reports the running trial lost, once, and goes on", async () => {
    model.reply = { hang: true };
    const { trial } = await started();
    await expect.poll(() => model.requests.length).toBe(1);
    client.close();
    await manager.kill();
    await manager.start();
    client = connect();
    expect((await report(trial, "failed")).fact.value).toMatchObject({
      termination: TerminationReason.SANDBOX_LOST,
      code: "MORTISE_SANDBOX_LOST",
    });
    // Delivered again, as the queue does when the acknowledgement wait is over.
    await launch({ trial });
    model.reply = {};
    expect((await ended((await started()).trial)).termination).toBe(TerminationReason.COMPLETED);
    expect(watched.filter((candidate) => candidate.trial === trial)).toHaveLength(2);
  }, 180_000);

  test("SIGTERM ends what runs as lost, exits with 0 and leaves nothing; no secret was logged", async () => {
    model.reply = { hang: true };
    const { trial } = await started();
    await expect.poll(() => model.requests.length).toBe(1);
    client.close();
    expect(await manager.stop()).toBe(0);
    expect((await report(trial, "failed")).fact.value).toMatchObject({
      termination: TerminationReason.SANDBOX_LOST,
    });
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(directory);
    expect(manager.output).not.toContain("secret-of-");
    expect(manager.output).toContain('"event":"trial.ended"');
  }, 180_000);
});

/** A model server that gives one scripted reply; the only party a harness can talk to. */
class FakeModel {
  reply: object = {};
  requests: { authorization: string; body: Record<string, unknown> }[] = [];
  readonly #server: http.Server;

  private constructor(server: http.Server) {
    this.#server = server;
  }

  static async start(): Promise<FakeModel> {
    const server = http.createServer();
    const model = new FakeModel(server);
    server.on("request", async (request, response) => {
      let text = "";
      for await (const chunk of request) text += chunk;
      model.requests.push({ authorization: request.headers.authorization ?? "", body: JSON.parse(text) });
      response.end(JSON.stringify(model.reply));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return model;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  reset(): void {
    this.reply = {};
    this.requests = [];
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

/** An address where nothing listens. */
async function closedAddress(): Promise<string> {
  const model = await FakeModel.start();
  const { address } = model;
  await model.stop();
  return address;
}

function inlineOf(content: Content | undefined): Uint8Array {
  if (content?.place.case !== "inline") throw new Error("the patch is not inline");
  return content.place.value;
}
