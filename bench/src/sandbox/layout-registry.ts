/**
 * Serves an OCI layout as a registry serves an image, in a process of its own so that no contestant shares a thread
 * with it. Usage: node layout-registry.js DIRECTORY; sends its port to the process that forked it.
 */
import { createReadStream, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";

const layout = process.argv[2]!;
const index = JSON.parse(readFileSync(path.join(layout, "index.json"), "utf8")) as {
  manifests: { digest: string; mediaType: string }[];
};
const { digest: manifest, mediaType } = index.manifests[0]!;

const server = createServer((request, response) => {
  const [, kind, asked] = /\/(manifests|blobs)\/([^/]+)$/.exec(request.url ?? "") ?? [];
  if (kind === undefined) {
    response.end("{}");
    return;
  }
  const digest = kind === "manifests" ? manifest : asked!;
  const file = path.join(layout, "blobs", digest.replace(":", "/"));
  response.writeHead(200, {
    "content-type": kind === "manifests" ? mediaType : "application/octet-stream",
    "content-length": statSync(file).size,
    "docker-content-digest": digest,
  });
  if (request.method === "HEAD") response.end();
  else createReadStream(file).pipe(response);
});
server.listen(0, "127.0.0.1", () => process.send!((server.address() as AddressInfo).port));
process.once("disconnect", () => process.exit());
