/**
 * A small registry that serves images a test builds: the distribution protocol's reading side, with tokens, basic
 * logins and faults on request. It records what was asked of it.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { digestOf, type Member, tar } from "../../src/conformance/tar-builder.js";

const OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const OCI_INDEX = "application/vnd.oci.image.index.v1+json";
const OCI_CONFIG = "application/vnd.oci.image.config.v1+json";

/** Handles a request instead of the registry when it returns true. */
export type Fault = (request: IncomingMessage, response: ServerResponse) => boolean;

export interface BuiltLayer {
  readonly blob: Buffer;
  readonly diffId: string;
  readonly mediaType: string;
}

export function gzipLayer(members: readonly Member[]): BuiltLayer {
  const plain = tar(members);
  return {
    blob: gzipSync(plain),
    diffId: digestOf(plain),
    mediaType: "application/vnd.oci.image.layer.v1.tar+gzip",
  };
}

export class RegistryServer {
  readonly asked: string[] = [];
  readonly #documents = new Map<string, { bytes: Buffer; type: string }>();
  readonly #server: Server = createServer((request, response) => this.#serve(request, response));
  faults: Fault[] = [];
  /** `user:password` the registry wants, by token or directly. */
  login: { kind: "token" | "basic"; value: string } | undefined;
  nTokens = 0;

  async start(): Promise<this> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, "127.0.0.1", resolve);
    });
    return this;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }

  /** @returns the digest */
  put(repository: string, bytes: Buffer, type = "application/octet-stream", tag?: string): string {
    const digest = digestOf(bytes);
    for (const name of [`blobs/${digest}`, `manifests/${digest}`, ...(tag ? [`manifests/${tag}`] : [])])
      this.#documents.set(`/v2/${repository}/${name}`, { bytes, type });
    return digest;
  }

  /** A single-platform image. @returns its manifest's digest */
  putImage(
    repository: string,
    layers: readonly BuiltLayer[],
    options: { tag?: string; architecture?: string; manifestType?: string; config?: object } = {},
  ): string {
    const config = {
      os: "linux",
      architecture: options.architecture ?? (process.arch === "x64" ? "amd64" : process.arch),
      config: options.config ?? { Env: ["A=b"], Cmd: ["/bin/sh"], WorkingDir: "/srv", User: "7" },
      rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
    };
    const describe = (bytes: Buffer, mediaType: string) => ({
      mediaType,
      digest: this.put(repository, bytes, mediaType),
      size: bytes.byteLength,
    });
    const mediaType = options.manifestType ?? OCI_MANIFEST;
    const manifest = {
      schemaVersion: 2,
      mediaType,
      config: describe(Buffer.from(JSON.stringify(config)), OCI_CONFIG),
      layers: layers.map((layer) => describe(layer.blob, layer.mediaType)),
    };
    return this.put(repository, Buffer.from(JSON.stringify(manifest)), mediaType, options.tag);
  }

  putIndex(
    repository: string,
    tag: string,
    images: readonly { digest: string; architecture: string }[],
  ): string {
    const manifests = images.map(({ digest, architecture }) => ({
      mediaType: OCI_MANIFEST,
      digest,
      size: this.#documents.get(`/v2/${repository}/manifests/${digest}`)!.bytes.byteLength,
      platform: { os: "linux", architecture },
    }));
    const index = { schemaVersion: 2, mediaType: OCI_INDEX, manifests };
    return this.put(repository, Buffer.from(JSON.stringify(index)), OCI_INDEX, tag);
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url!, `http://${this.host}`);
    this.asked.push(url.pathname);
    if (this.faults.some((fault) => fault(request, response))) return;
    if (url.pathname === "/token") {
      this.#token(request, response, url);
      return;
    }
    if (!this.#isAllowed(request)) {
      const challenge =
        this.login?.kind === "basic"
          ? 'Basic realm="test"'
          : `Bearer realm="http://${this.host}/token",service="test",scope="repository:x:pull"`;
      response.writeHead(401, { "www-authenticate": challenge }).end();
      return;
    }
    const document = this.#documents.get(url.pathname);
    if (document === undefined) {
      response.writeHead(404).end();
      return;
    }
    const offset = Number(/^bytes=([0-9]+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
    const bytes = document.bytes.subarray(offset);
    response.writeHead(offset > 0 ? 206 : 200, {
      "content-type": document.type,
      "content-length": bytes.byteLength,
    });
    response.end(bytes);
  }

  #token(request: IncomingMessage, response: ServerResponse, url: URL): void {
    const given = Buffer.from(request.headers.authorization?.split(" ")[1] ?? "", "base64").toString();
    if (given !== this.login?.value || url.searchParams.get("scope") !== "repository:x:pull") {
      response.writeHead(401).end();
      return;
    }
    this.nTokens += 1;
    response.end(JSON.stringify({ token: `token-${this.nTokens}`, expires_in: 300 }));
  }

  #isAllowed(request: IncomingMessage): boolean {
    if (this.login === undefined) return true;
    const basic = `Basic ${Buffer.from(this.login.value).toString("base64")}`;
    return (
      request.headers.authorization === (this.login.kind === "basic" ? basic : `Bearer token-${this.nTokens}`)
    );
  }
}

/** Answers the first requests whose path ends so with a status, then lets them pass. */
export function failing(
  ending: string,
  times: number,
  status: number,
  headers: Record<string, string> = {},
): Fault {
  let left = times;
  return (request, response) => {
    if (left === 0 || !request.url!.endsWith(ending)) return false;
    left -= 1;
    response.writeHead(status, headers).end();
    return true;
  };
}
