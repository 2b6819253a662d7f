/**
 * A FAKE API server: pods that only exist as objects, and whatever a test says becomes of them. It speaks the wire of a
 * real one as far as the backend uses it: objects, a watch, errors as `Status`, and `exec` over websockets with their
 * channels. What it proves is how the backend speaks and what it makes of answers, nothing about a cluster.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { V1Pod } from "@kubernetes/client-node";
import { type WebSocket, WebSocketServer } from "ws";

const NAMESPACE = "/api/v1/namespaces/sandboxes";
const PROTOCOLS = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

/** One end of an `exec`: bytes in and out by channel. */
export interface FakeExec {
  readonly pod: string;
  readonly container: string;
  readonly argv: readonly string[];
  readonly url: string;
  /** Called with every piece of standard input. */
  onStdin: (bytes: Buffer) => void;
  onClose: () => void;
  stdout(bytes: Uint8Array): void;
  stderr(text: string): void;
  /** Ends it as the server does after its command: a status, then the close. */
  end(exitCode: number): void;
  /** Ends it as a lost node does. */
  cut(): void;
}

export interface Refusal {
  readonly code: number;
  readonly message: string;
}

export class FakeApiServer {
  readonly pods = new Map<string, V1Pod>();
  /** METHOD path of everything that was asked, in order. */
  readonly asked: string[] = [];
  readonly #server: Server = createServer((request, reply) => void this.#serve(request, reply));
  readonly #sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => PROTOCOLS.find((one) => offered.has(one)) ?? false,
  });
  readonly #watchers = new Set<ServerResponse>();
  #version = 1;
  /** Answered instead of creating a pod. */
  refuseCreate: Refusal | undefined;
  /** What becomes of a pod once it is created; nothing, and it stays pending. */
  onCreate: (pod: V1Pod) => void = () => {};
  /** So many are answered with 503 first. */
  execsToRefuse = 0;
  onExec: (exec: FakeExec) => void = (exec) => exec.end(0);

  async start(): Promise<this> {
    this.#server.on("upgrade", (request, socket, head) => {
      this.asked.push(`EXEC ${request.url}`);
      const url = new URL(request.url!, "http://fake");
      const [, pod] = /\/pods\/([^/]+)\/exec$/.exec(url.pathname) ?? [];
      if (this.execsToRefuse > 0) {
        this.execsToRefuse -= 1;
        socket.end("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n");
        return;
      }
      if (pod === undefined || this.pods.get(pod)?.status?.phase !== "Running") {
        socket.end("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        return;
      }
      this.#sockets.handleUpgrade(request, socket, head, (client) => this.#exec(client, pod, url));
    });
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    for (const client of this.#sockets.clients) client.terminate();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Changes a pod's status; watchers are told. */
  become(name: string, status: V1Pod["status"]): void {
    const pod = this.pods.get(name);
    if (pod === undefined) return;
    pod.status = status!;
    this.#tell("MODIFIED", pod);
  }

  /** What a kubelet says of one that runs. */
  run(pod: V1Pod): void {
    const running = { running: { startedAt: new Date() } };
    const statusOf = (name: string, state: object) => ({
      name,
      state,
      image: "",
      imageID: "",
      ready: true,
      restartCount: 0,
    });
    this.become(pod.metadata!.name!, {
      phase: "Running",
      hostIP: "127.0.0.1",
      initContainerStatuses: [statusOf("close", { terminated: { exitCode: 0 } })],
      containerStatuses: [statusOf("relay", running), statusOf("sandbox", running)],
    });
  }

  #exec(client: WebSocket, pod: string, url: URL): void {
    const send = (channel: number, bytes: Uint8Array | string) =>
      client.send(Buffer.concat([Buffer.from([channel]), Buffer.from(bytes as Uint8Array)]));
    const exec: FakeExec = {
      pod,
      container: url.searchParams.get("container")!,
      argv: url.searchParams.getAll("command"),
      url: url.href,
      onStdin: () => {},
      onClose: () => {},
      stdout: (bytes) => send(1, bytes),
      stderr: (text) => send(2, text),
      end: (exitCode) => {
        const causes = [{ reason: "ExitCode", message: String(exitCode) }];
        const status =
          exitCode === 0
            ? { status: "Success" }
            : {
                status: "Failure",
                reason: "NonZeroExitCode",
                message: `command terminated with exit code ${exitCode}`,
                details: { causes },
              };
        send(3, JSON.stringify(status));
        client.close(1000);
      },
      cut: () => client.terminate(),
    };
    client.on("message", (data: Buffer) => {
      if (data[0] === 0) exec.onStdin(data.subarray(1));
    });
    client.on("close", () => exec.onClose());
    this.onExec(exec);
  }

  async #serve(request: IncomingMessage, reply: ServerResponse): Promise<void> {
    const url = new URL(request.url!, this.url);
    this.asked.push(`${request.method} ${url.pathname}`);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    if (url.pathname.endsWith("/networkpolicies")) return answer(reply, 201, JSON.parse(body));
    if (!url.pathname.startsWith(`${NAMESPACE}/pods`))
      return refuse(reply, { code: 404, message: "not found" });
    const name = url.pathname.slice(`${NAMESPACE}/pods/`.length);
    if (request.method === "POST") return this.#create(reply, JSON.parse(body) as V1Pod);
    if (request.method === "DELETE") return this.#delete(reply, name);
    if (url.searchParams.get("watch") === "true") return this.#watch(reply);
    const wanted = (url.searchParams.get("labelSelector") ?? "").split(",").filter((one) => one !== "");
    const items = [...this.pods.values()].filter((pod) =>
      wanted.every((one) => pod.metadata!.labels![one.split("=")[0]!] === one.split("=")[1]),
    );
    answer(reply, 200, {
      kind: "PodList",
      apiVersion: "v1",
      metadata: { resourceVersion: String(this.#version) },
      items,
    });
  }

  #create(reply: ServerResponse, pod: V1Pod): void {
    if (this.refuseCreate !== undefined) {
      refuse(reply, this.refuseCreate);
      return;
    }
    pod.status = { phase: "Pending" };
    this.pods.set(pod.metadata!.name!, pod);
    this.#tell("ADDED", pod);
    answer(reply, 201, pod);
    this.onCreate(pod);
  }

  #delete(reply: ServerResponse, name: string): void {
    const pod = this.pods.get(name);
    if (pod === undefined) {
      refuse(reply, { code: 404, message: `pods "${name}" not found` });
      return;
    }
    this.pods.delete(name);
    this.#tell("DELETED", pod);
    answer(reply, 200, pod);
  }

  #watch(reply: ServerResponse): void {
    reply.writeHead(200, { "content-type": "application/json" });
    reply.flushHeaders();
    this.#watchers.add(reply);
    reply.once("close", () => this.#watchers.delete(reply));
  }

  #tell(type: string, pod: V1Pod): void {
    pod.metadata!.resourceVersion = String(++this.#version);
    for (const watcher of this.#watchers) watcher.write(`${JSON.stringify({ type, object: pod })}\n`);
  }
}

function answer(reply: ServerResponse, code: number, body: object): void {
  reply.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function refuse(reply: ServerResponse, { code, message }: Refusal): void {
  answer(reply, code, { kind: "Status", apiVersion: "v1", status: "Failure", message, code });
}
