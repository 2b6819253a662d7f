/** Sends so many zeros over one connection and ends. Usage: node sender.js HOST PORT BYTES */
import net from "node:net";
import { Readable } from "node:stream";

const [host, port, bytes] = process.argv.slice(2) as [string, string, string];
const block = Buffer.alloc(1024 * 1024);
const socket = net.connect({ host, port: Number(port) });
Readable.from(blocks()).pipe(socket);

function* blocks(): Generator<Buffer> {
  for (let left = Number(bytes); left > 0; left -= block.byteLength)
    yield left < block.byteLength ? block.subarray(0, left) : block;
}
