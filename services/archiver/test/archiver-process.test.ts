import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  CaptureRecordSchema,
  KV_BUCKETS,
  OBJECT_BUCKETS,
  Outcome,
  SandboxReportSchema,
  STREAMS,
  subject,
  TerminationReason,
  VerdictSchema,
} from "@mortise/contracts";
import { type Bus, connectBus, createLog, ensureTopology, findServices } from "@mortise/kernel";
import { type NatsFixture, startNats } from "@mortise/testkit";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readArchive, readBlob } from "../src/archive/read.js";

const MAIN = join(dirname(fileURLToPath(import.meta.url)), "../dist/main.js");
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

let nats: NatsFixture;
let bus: Bus;
let directory: string;
let child: ChildProcess | undefined;

beforeEach(async () => {
  nats = await startNats({ withUsers: true });
  const { user, password } = nats.identity("admin");
  const log = createLog({ service: "test", level: "silent" });
  bus = await connectBus({ url: nats.url, user, password, name: "test", log });
  await ensureTopology(bus, { streams: STREAMS, kv: KV_BUCKETS, objects: OBJECT_BUCKETS });
  directory = await mkdtemp(join(tmpdir(), "mortise-archiver-"));
  await mkdir(join(directory, "identity"));
  const identity = JSON.stringify(nats.identity("archiver"));
  await writeFile(join(directory, "identity/archiver.json"), identity, { mode: 0o600 });
  await writeFile(
    join(directory, "site.toml"),
    `nats.url = "${nats.url}"
identity.directory = "${directory}/identity"
state.directory = "${directory}/state"
tasks.directory = "${directory}/tasks"
archiver = { directory = "${directory}/archive", rowsPerFile = 40 }
`,
  );
});
afterEach(async () => {
  await end("SIGKILL");
  await bus.close();
  await nats.stop();
  await rm(directory, { recursive: true, force: true });
});

let output = "";
function start(): void {
  output = "";
  child = spawn(process.execPath, [MAIN, "--site", join(directory, "site.toml")], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
}

async function end(signal: NodeJS.Signals): Promise<number | null> {
  const ended = child;
  child = undefined;
  if (ended === undefined || ended.exitCode !== null) return null;
  const exited = once(ended, "exit");
  ended.kill(signal);
  return (await exited)[0];
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) {
    if (child !== undefined && child.exitCode !== null) throw new Error(`the archiver ended:\n${output}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** Whether the process that runs now has taken everything stored at its start. */
async function isReady(): Promise<boolean> {
  const http = /"http":"([^"]+)"/.exec(output)?.[1];
  return http !== undefined && (await fetch(`http://${http}/readyz`)).ok;
}

async function publishTurns(from: number, to: number): Promise<void> {
  for (let i = from; i < to; i++) {
    const turn = {
      run: "r1",
      trial: `t${i % 7}`,
      turn: String(i),
      index: i,
      sampledIds: new Uint8Array([i, 0, 0, 0]),
    };
    await bus.publish({
      subject: subject.capture("r1", turn.trial),
      schema: CaptureRecordSchema,
      message: { record: { case: "turn", value: turn } },
      dedupeId: `r1/turn/${i}`,
    });
  }
}

const archive = () => join(directory, "archive");
const turns = async () => (await readArchive(archive(), "r1", "turns")).map(({ index }) => index);

describe("an archiver process", { timeout: 120_000 }, () => {
  it("archives every message once although it is killed again and again", async () => {
    for (const round of [0, 1, 2]) {
      start();
      await publishTurns(round * 100, (round + 1) * 100);
      await until(async () => (await turns()).length > round * 100);
      await end("SIGKILL");
    }
    start();
    await until(isReady);
    expect(await end("SIGTERM")).toBe(0);
    expect(await turns()).toEqual(Array.from({ length: 300 }, (_, i) => i));
  });

  it("keeps contents by digest, says what it could not find, and announces how far it is", async () => {
    const patch = new TextEncoder().encode("a patch");
    const log = new TextEncoder().encode("a long log");
    const absent = sha256(new TextEncoder().encode("never stored"));
    await (await bus.objects("blobs")).put(sha256(log), log);
    const ended = {
      termination: TerminationReason.COMPLETED,
      patch: { place: { case: "inline", value: patch } },
    } as const;
    await bus.publish({
      subject: subject.trialSandbox("r1", "t1"),
      schema: SandboxReportSchema,
      message: { run: "r1", trial: "t1", fact: { case: "ended", value: ended } },
      dedupeId: "r1/t1/ended",
    });
    for (const [trial, object] of [
      ["t1", sha256(log)],
      ["t2", absent],
    ] as const) {
      await bus.publish({
        subject: subject.reward("r1", trial),
        schema: VerdictSchema,
        message: {
          run: "r1",
          trial,
          outcome: Outcome.UNRESOLVED,
          log: { place: { case: "object", value: object } },
        },
        dedupeId: `r1/${trial}/verdict`,
      });
    }
    start();
    await until(() => output.includes("archive.blob-missing"));
    await until(async () => (await findServices(bus, "archiver")).length === 1);
    const [presence] = await findServices(bus, "archiver");
    expect(presence!.facts).toMatchObject({ "position.REWARDS": "0" });
    expect(await end("SIGTERM")).toBe(0);
    expect(Buffer.from(await readBlob(archive(), "r1", sha256(patch))).toString()).toBe("a patch");
    expect(Buffer.from(await readBlob(archive(), "r1", sha256(log))).toString()).toBe("a long log");
    const verdicts = await readArchive(archive(), "r1", "verdicts");
    expect(verdicts).toMatchObject([
      { trial: "t1", outcome: "UNRESOLVED", reward: null },
      { trial: "t2", outcome: "UNRESOLVED", reward: null },
    ]);
    const [report] = await readArchive(archive(), "r1", "sandbox_reports");
    expect(report!.record).toMatchObject({ ended: { patch: { object: sha256(patch) } } });
  });

  it("announces a position only for what is archived", async () => {
    start();
    await until(async () => (await findServices(bus, "archiver")).length === 1);
    await publishTurns(0, 50);
    await until(async () => {
      const [presence] = await findServices(bus, "archiver");
      return Number(presence?.facts["position.CAPTURES"]) >= 40;
    });
    expect((await turns()).length).toBeGreaterThanOrEqual(40);
  });

  it("refuses an archive that belongs to another server's streams", async () => {
    await publishTurns(0, 1);
    start();
    await until(isReady);
    expect(await end("SIGTERM")).toBe(0);
    await bus.manager.streams.delete("CAPTURES");
    await ensureTopology(bus, { streams: STREAMS });
    start();
    const [code] = await once(child!, "exit");
    expect(code).toBe(2);
    expect(output).toContain("MORTISE_OPERATOR_ARCHIVE");
  });
});
