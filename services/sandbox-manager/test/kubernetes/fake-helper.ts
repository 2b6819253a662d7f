/**
 * A FAKE of the helper in a pod, for the fake API server: it speaks the helper's frames, runs commands as children of
 * the test and takes files without keeping them. The real one is tried in real pods (test/kubernetes at the root).
 */
import { type ChildProcess, spawn } from "node:child_process";
import net from "node:net";
import { constants } from "node:os";
import { type Frame, FrameReader, frameOf, framesOf, KIND } from "../../src/backend/kubernetes/frames.js";
import type { HelperRequest } from "../../src/backend/kubernetes/helper.js";
import type { FakeExec } from "./fake-api-server.js";

export class FakeHelper {
  /** Operations that were asked for, in order. */
  readonly requests: HelperRequest[] = [];
  /** Port of the listener that stands for 127.0.0.1:8080 of the pod, while there is one. */
  modelPort: number | undefined;
  readonly #running = new Set<ChildProcess>();
  /** Answers instead of the usual. */
  override: (request: HelperRequest, exec: FakeExec) => boolean = () => false;

  readonly serve = (exec: FakeExec): void => {
    if (exec.argv[1] === "relay") this.#relay(exec);
    else this.#request(exec);
  };

  #request(exec: FakeExec): void {
    const reader = new FrameReader();
    let child: ChildProcess | undefined;
    let waiting: HelperRequest | undefined;
    const take = ({ kind, bytes }: Frame) => {
      if (kind === KIND.request) {
        const request = JSON.parse(bytes.toString()) as HelperRequest;
        this.requests.push(request);
        if (this.override(request, exec)) return;
        if (request.operation === "run") child = this.#run(request, exec);
        // What reads its input is answered at its end.
        else if (request.operation !== "put" && !isStandingBy(request)) this.#answer(request, exec);
        else waiting = request;
      } else if (kind === KIND.data) child?.stdin?.write(bytes);
      else if (kind === KIND.end && child !== undefined) child.stdin?.end();
      else if (kind === KIND.end && waiting !== undefined) this.#answer(waiting, exec);
      else if (kind === KIND.kill) child?.kill("SIGKILL");
    };
    exec.onStdin = (piece) => {
      for (const frame of reader.read(piece)) take(frame);
    };
    exec.onClose = () => void child?.kill("SIGKILL");
  }

  #answer(request: HelperRequest, exec: FakeExec): void {
    if (request.operation === "list") finish(exec, { missing: "the image has no such directory" });
    else if (request.operation === "kill") {
      for (const child of this.#running) child.kill("SIGKILL");
      finish(exec, {});
    } else if (request.operation === "probe") {
      const isModel = (port: number | undefined) => port === 8080 && this.modelPort !== undefined;
      const states = request.targets.map(({ host, port }) =>
        host === "127.0.0.1" && isModel(port)
          ? "connected"
          : host === "127.0.0.1"
            ? "ECONNREFUSED"
            : "ENETUNREACH",
      );
      finish(exec, { states, interfaces: ["lo"] });
    } else finish(exec, { counters: {} });
  }

  #run(request: Extract<HelperRequest, { operation: "run" }>, exec: FakeExec): ChildProcess {
    const [program, ...argv] = request.argv as [string, ...string[]];
    const child = spawn(program, argv, {
      env: Object.fromEntries(request.environment.map((pair) => pair.split(/=(.*)/s).slice(0, 2))),
    });
    this.#running.add(child);
    child.once("spawn", () => exec.stdout(frameOf(KIND.begun, 0, Buffer.from("{}"))));
    child.once("error", (error) => finish(exec, { refused: error.message }));
    child.stdin.on("error", () => undefined);
    for (const [stream, kind] of [
      [child.stdout, KIND.output],
      [child.stderr, KIND.errors],
    ] as const)
      stream.on("data", (bytes: Buffer) => say(exec, kind, 0, bytes));
    child.once("close", (code, signal) => {
      this.#running.delete(child);
      if (child.pid !== undefined)
        finish(exec, signal === null ? { code } : { signal: constants.signals[signal] });
    });
    return child;
  }

  /** Connections by number; windows are the manager's to keep to, and are only given back. */
  #relay(exec: FakeExec): void {
    const reader = new FrameReader();
    const open = new Map<number, net.Socket>();
    let last = 0;
    const server = net.createServer({ allowHalfOpen: true }, (socket) => {
      const number = ++last;
      open.set(number, socket);
      exec.stdout(frameOf(KIND.opened, number));
      socket.on("data", (bytes) => say(exec, KIND.data, number, bytes));
      socket.on("end", () => exec.stdout(frameOf(KIND.end, number)));
      socket.on("error", () => exec.stdout(frameOf(KIND.kill, number)));
    });
    server.listen(0, "127.0.0.1", () => {
      this.modelPort = (server.address() as net.AddressInfo).port;
      exec.stdout(frameOf(KIND.begun, 0, Buffer.from("{}")));
    });
    const take = ({ kind, number, bytes }: Frame) => {
      const socket = open.get(number);
      if (socket === undefined) return;
      if (kind === KIND.kill) socket.destroy();
      else if (kind === KIND.end) socket.end();
      else if (kind === KIND.data)
        socket.write(bytes, () => {
          const credit = Buffer.alloc(4);
          credit.writeUInt32BE(bytes.byteLength);
          exec.stdout(frameOf(KIND.credit, number, credit));
        });
    };
    exec.onStdin = (piece) => {
      for (const frame of reader.read(piece)) take(frame);
    };
    exec.onClose = () => {
      this.modelPort = undefined;
      for (const socket of open.values()) socket.destroy();
      server.close();
    };
  }
}

function isStandingBy(request: HelperRequest): boolean {
  return request.operation === "kill" && request.hasStdin === true;
}

function say(exec: FakeExec, kind: number, number: number, bytes: Buffer): void {
  for (const frame of framesOf(kind, number, bytes)) exec.stdout(frame);
}

function finish(exec: FakeExec, result: object): void {
  exec.stdout(frameOf(KIND.result, 0, Buffer.from(JSON.stringify(result))));
  exec.end(0);
}
