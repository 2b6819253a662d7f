/** Two live trials at a real proxy, each in a runc sandbox of its own whose endpoint leads there. Leaves nothing behind. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { openSession, ProxyFixture, type Replica, RUN } from "../../services/proxy/test/proxy-fixture.js";
import { ScriptedEngine } from "../../services/proxy/test/scripted-engine.js";
import { RuncBackend } from "../../services/sandbox-manager/src/backend/runc/backend.js";
import type { Sandbox } from "../../services/sandbox-manager/src/backend/types.js";
import { parseModelAddress } from "../../services/sandbox-manager/src/trial/reach.js";

const MIB = 1024 * 1024;

/** Writes the bytes it is given to the model endpoint and prints the statuses that come back. */
const SPEAK = `const socket = require("node:net").connect(8080, "127.0.0.1");
  let text = ""; socket.on("data", (chunk) => (text += chunk)).on("error", () => {});
  socket.on("close", () => console.log((text.match(/HTTP\\/1\\.1 \\d+/g) ?? ["without: nothing"]).map((one) => one.slice(9)).join(" ")));
  socket.write(Buffer.from(process.env.BYTES, "base64"));`;

export interface LiveTrial {
  readonly token: string;
  readonly listenerKey: string;
  readonly sandbox: Sandbox;
}

export class ListenerWorld {
  readonly fixture: ProxyFixture;
  readonly replica: Replica;
  readonly trials: readonly [LiveTrial, LiveTrial];
  readonly #backend: RuncBackend;
  readonly #directory: string;

  private constructor(parts: {
    fixture: ProxyFixture;
    replica: Replica;
    trials: readonly [LiveTrial, LiveTrial];
    backend: RuncBackend;
    directory: string;
  }) {
    this.fixture = parts.fixture;
    this.replica = parts.replica;
    this.trials = parts.trials;
    this.#backend = parts.backend;
    this.#directory = parts.directory;
  }

  /** Why there cannot be any on this host; undefined when there can. */
  static async whyNot(): Promise<string | undefined> {
    const availability = await new RuncBackend({ stateDirectory: tmpdir(), runc: "runc" }).availability();
    return availability.ok ? undefined : availability.reason;
  }

  static async start(): Promise<ListenerWorld> {
    const directory = mkdtempSync(path.join(tmpdir(), "mortise-listener-"));
    const fixture = await ProxyFixture.create();
    const engine = new ScriptedEngine({ choose: () => ({ ids: fixture.ids("done") }) });
    const replica = await fixture.start(() => engine);
    await fixture.publishWeights(0);
    await openSession(replica, "first");
    const backend = new RuncBackend({ stateDirectory: path.join(directory, "state"), runc: "runc" });
    await backend.start();
    const image = await backend.prepareImage({ kind: "host" });
    const workspace = await backend.prepareTree({ kind: "files", files: [] });
    const live = async (trial: string): Promise<LiveTrial> => {
      const request = { run: RUN, trial, rngKey: `1/task/${trial}`, throughListener: true };
      const { token, modelAddress, listenerKey } = await replica.rpc.openSession(request);
      const sandbox = await backend.create({
        id: `listener-${trial}`,
        image,
        workspace,
        mounts: [],
        limits: { cpus: 1, memoryBytes: 192 * MIB, pids: 48, diskBytes: 16 * MIB, outputBytes: 65_536 },
        network: { kind: "model", ...parseModelAddress(modelAddress, listenerKey) },
      });
      return { token, listenerKey, sandbox };
    };
    const trials = [await live("a"), await live("b")] as const;
    return new ListenerWorld({ fixture, replica, trials, backend, directory });
  }

  async stop(): Promise<void> {
    await this.#backend.stop();
    await this.fixture.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** What a program inside gets for bytes it writes to the model endpoint: the statuses, or "nothing". */
export async function spoken(sandbox: Sandbox, sent: string): Promise<string> {
  const { stdout, outcome, stderr } = await sandbox.exec({
    argv: ["node", "-e", SPEAK],
    environment: { PATH: "/usr/bin", BYTES: Buffer.from(sent).toString("base64") },
    timeoutMs: 20_000,
  });
  if (outcome.kind !== "exited" || outcome.code !== 0)
    throw new Error(`${JSON.stringify(outcome)} ${Buffer.from(stderr.bytes)}`);
  return Buffer.from(stdout.bytes).toString().trim();
}

/** A model call whose token is where harnesses put it. */
export function call(token: string, place: "header" | "path" | "key" = "header"): string {
  const body = JSON.stringify({ messages: [{ role: "user", content: "fix" }] });
  const credentials = {
    header: `Authorization: Bearer ${token}`,
    path: "X-None: x",
    key: `x-api-key: ${token}`,
  };
  return [
    `POST ${place === "path" ? `/s/${token}` : ""}/v1/chat/completions HTTP/1.1`,
    ...["Host: x", "Connection: close", `Content-Length: ${body.length}`, credentials[place]],
    `\r\n${body}`,
  ].join("\r\n");
}
