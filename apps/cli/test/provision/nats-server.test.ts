import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { run } from "../../src/provision/command.js";
import { provisionNatsServer } from "../../src/provision/nats-server/provision.js";
import type { Source } from "../../src/provision/nats-server/source.js";
import { debian, goModule, pypi, releaseArchive } from "../../src/provision/nats-server/sources.js";
import { isUsable, parseVersion } from "../../src/provision/nats-server/version.js";

let directory: string;
const closers: (() => void)[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "mortise-provision-"));
});
afterEach(async () => {
  for (const close of closers.splice(0)) close();
  await rm(directory, { recursive: true, force: true });
});

/** A program that answers `--version` as a nats-server of that version would. */
async function fakeBinary(file: string, version: string): Promise<string> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `#!/bin/sh\necho "nats-server: v${version}"\n`);
  await chmod(file, 0o755);
  return file;
}

const fakeSource = (name: string, version: string): Source => ({
  name,
  obtain: (target) => fakeBinary(join(target, "nats-server"), version),
});
const brokenSource: Source = { name: "broken", obtain: () => Promise.reject(new Error("no network")) };

function listen(server: Server): Promise<number> {
  closers.push(() => server.close());
  return new Promise((resolve) =>
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port)),
  );
}

/** A fake server that only greets. */
async function greeting(line: string): Promise<string> {
  const port = await listen(createServer((socket) => socket.on("error", () => {}).write(line)));
  return `nats://127.0.0.1:${port}`;
}
const info = (version: string, jetstream = true) =>
  `INFO ${JSON.stringify({ version, jetstream, max_payload: 1 })}\r\n`;

async function failure(promise: Promise<unknown>): Promise<MortiseError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(MortiseError);
  return error as MortiseError;
}

describe("versions", () => {
  test("are read from what servers and Debian print", () => {
    expect(parseVersion("nats-server: v2.15.2")).toBe("2.15.2");
    expect(parseVersion("2.10.27-1")).toBe("2.10.27");
    expect(parseVersion("no version")).toBeUndefined();
  });
  test("are usable from 2.12 on", () => {
    expect(["2.9.10", "2.11.9", "2.12.0", "2.15.2", "3.0.0"].filter(isUsable)).toEqual([
      "2.12.0",
      "2.15.2",
      "3.0.0",
    ]);
  });
});

describe("NATS_URL", () => {
  const provision = (url: string) =>
    provisionNatsServer({ cacheDirectory: directory, environment: { NATS_URL: url, PATH: "" } });

  test("a new enough server is used, and its limits are told", async () => {
    const found = await provision(await greeting(info("2.12.3")));
    expect(found).toMatchObject({ kind: "running", version: "2.12.3" });
    expect(found.notes[0]).toContain("permissions");
  });
  test("an old server is refused with its version and the fix", async () => {
    const error = await failure(provision(await greeting(info("2.10.27"))));
    expect(error.code).toBe("MORTISE_OPERATOR_NATS_TOO_OLD");
    expect(error.message).toContain("2.10.27");
    expect(error.fix).toContain("2.12");
  });
  test("a server without JetStream, something else, and nobody are each told apart", async () => {
    expect((await failure(provision(await greeting(info("2.15.1", false))))).message).toContain("JetStream");
    expect((await failure(provision(await greeting("HTTP/1.1 400 Bad Request\r\n")))).message).toContain(
      "not a NATS server",
    );
    const port = await listen(createServer());
    for (const close of closers.splice(0)) close();
    expect((await failure(provision(`127.0.0.1:${port}`))).message).toContain("ECONNREFUSED");
    expect((await failure(provision("nats://:bad:"))).code).toBe("MORTISE_CONFIG_INVALID");
  });
});

describe("order of places", () => {
  const provision = (path: string, sources: Source[]) =>
    provisionNatsServer({ cacheDirectory: join(directory, "cache"), environment: { PATH: path }, sources });

  test("a new enough server on PATH comes first", async () => {
    const path = await fakeBinary(join(directory, "bin", "nats-server"), "2.13.0");
    expect(await provision(dirname(path), [brokenSource])).toMatchObject({
      source: "PATH",
      path,
      version: "2.13.0",
    });
  });
  test("an old one on PATH and a failing source are passed over with their reasons", async () => {
    const path = await fakeBinary(join(directory, "bin", "nats-server"), "2.9.10");
    const found = await provision(dirname(path), [
      brokenSource,
      fakeSource("old source", "2.10.0"),
      fakeSource("good", "2.15.0"),
    ]);
    expect(found).toMatchObject({ source: "good", version: "2.15.0" });
    expect(found.notes).toEqual([
      expect.stringContaining("2.9.10, older than 2.12; skipped"),
      "broken: no network",
      "old source: it holds version 2.10.0, older than 2.12",
    ]);
  });
  test("what was obtained once is in the cache for the next time", async () => {
    await provision("", [fakeSource("good", "2.15.0")]);
    expect(await provision("", [brokenSource])).toMatchObject({ source: "cache", version: "2.15.0" });
  });
  test("a cache that does not run is filled again", async () => {
    const cached = join(directory, "cache", "nats-server", "nats-server");
    await mkdir(dirname(cached), { recursive: true });
    await writeFile(cached, "half a file");
    expect(await provision("", [fakeSource("good", "2.15.0")])).toMatchObject({ source: "good" });
  });
  test("when nothing helps, the error lists every attempt", async () => {
    const error = await failure(provision("", [brokenSource]));
    expect(error.code).toBe("MORTISE_OPERATOR_NATS_MISSING");
    expect(error.message).toContain("PATH: no nats-server");
    expect(error.message).toContain("broken: no network");
  });
});

describe("pinned release", () => {
  async function serve(): Promise<{ url: string; sha256: string }> {
    const name = "nats-server-v2.14.5-linux-amd64";
    await fakeBinary(join(directory, "release", name, "nats-server"), "2.14.5");
    const archive = join(directory, "release.tar.gz");
    await run("tar", ["-czf", archive, "-C", join(directory, "release"), name], { timeoutMs: 10_000 });
    const content = await readFile(archive);
    const port = await listen(createHttpServer((_request, response) => response.end(content)));
    return { url: `http://127.0.0.1:${port}/`, sha256: createHash("sha256").update(content).digest("hex") };
  }
  const obtain = (release: { url: string; sha256: string }) =>
    provisionNatsServer({
      cacheDirectory: join(directory, "cache"),
      environment: { PATH: "" },
      sources: [releaseArchive(() => release)],
    });

  test("is used when the digest is the pinned one", async () => {
    expect(await obtain(await serve())).toMatchObject({ source: "pinned release", version: "2.14.5" });
  });
  test("is refused when a byte differs", async () => {
    const error = await failure(obtain({ ...(await serve()), sha256: "0".repeat(64) }));
    expect(error.message).toContain("pinned is 0000");
  });
});

const network = process.env.MORTISE_TEST_NETWORK === "1";
if (!network) console.log("skipped: real downloads of nats-server (set MORTISE_TEST_NETWORK=1 to run them)");
describe.skipIf(!network)("real sources", () => {
  test.for([debian, pypi, goModule])(
    "$name gives a real, new enough server",
    { timeout: 600_000 },
    async (source) => {
      const found = await provisionNatsServer({
        cacheDirectory: directory,
        environment: { PATH: "" },
        sources: [source],
      });
      expect(found).toMatchObject({ kind: "binary", source: source.name });
      expect(isUsable(found.version)).toBe(true);
    },
  );
});
