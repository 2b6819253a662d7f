/**
 * The real helper of pods as a child of this process, over its own frames: what it does with files and connections.
 * What it does with processes is tried in real pods only: here it would be this machine's.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Frame, FrameReader, frameOf, framesOf, KIND } from "../../src/backend/kubernetes/frames.js";
import { type HelperRequest, type HelperResult, PROTOCOL } from "../../src/backend/kubernetes/helper.js";
import {
  file,
  hardlink,
  symlink,
  tar,
  directory as tarDirectory,
} from "../../src/conformance/tar-builder.js";
import { unpackTar } from "../../src/patch/tar.js";

const SOURCES = path.join(import.meta.dirname, "../../pod-helper");
const environment = { ...process.env, CGO_ENABLED: "0", PATH: `${process.env.PATH}:/usr/local/go/bin` };
const hasGo = spawnSync("go", ["version"], { env: environment }).status === 0;
if (!hasGo) console.log("the helper of pods is not tried: there is no Go here to build it with");

describe.skipIf(!hasGo || process.platform !== "linux")("the helper of pods", () => {
  const built = mkdtempSync(path.join(tmpdir(), "mortise-helper-"));
  const program = path.join(built, "pod-helper");
  let top: string;
  const children: ChildProcess[] = [];
  beforeAll(() => {
    const { status, stderr } = spawnSync("go", ["build", "-o", program, "."], {
      cwd: SOURCES,
      env: environment,
    });
    if (status !== 0) throw new Error(stderr.toString());
  }, 300_000);
  beforeEach(() => {
    top = mkdtempSync(path.join(tmpdir(), "mortise-helper-files-"));
  });
  afterEach(() => {
    for (const child of children.splice(0)) child.kill();
    rmSync(top, { recursive: true, force: true });
  });
  afterAll(() => rmSync(built, { recursive: true, force: true }));

  function start(argv: readonly string[], onFrame: (frame: Frame) => void): ChildProcess {
    const child = spawn(program, argv, { stdio: ["pipe", "pipe", "inherit"] });
    const reader = new FrameReader();
    child.stdout!.on("data", (bytes: Buffer) => {
      for (const frame of reader.read(bytes)) onFrame(frame);
    });
    children.push(child);
    return child;
  }

  async function ask(
    request: Partial<HelperRequest> & { operation: HelperRequest["operation"] },
    input?: Uint8Array,
  ): Promise<HelperResult & { output: Buffer }> {
    const chunks: Buffer[] = [];
    let result: HelperResult | undefined;
    const child = start(["serve"], ({ kind, bytes }) => {
      if (kind === KIND.output) chunks.push(Buffer.from(bytes));
      if (kind === KIND.result) result = JSON.parse(bytes.toString()) as HelperResult;
    });
    child.stdin!.write(
      frameOf(KIND.request, 0, Buffer.from(JSON.stringify({ protocol: PROTOCOL, ...request }))),
    );
    if (input !== undefined) {
      for (const frame of framesOf(KIND.data, 0, input)) child.stdin!.write(frame);
      child.stdin!.write(frameOf(KIND.end, 0));
    }
    await once(child, "close");
    return { ...result!, output: Buffer.concat(chunks) };
  }
  const put = (members: Parameters<typeof tar>[0], more: object = {}) =>
    ask({ operation: "put", directory: top, user: process.getuid!(), ...more }, tar(members));
  const list = async (maxBytes = 1e9) => {
    const { output, ...result } = await ask({ operation: "list", directory: top, maxBytes });
    const lines = output
      .toString()
      .split("\n")
      .filter((line) => line !== "");
    return { ...result, leaves: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
  };

  test("unpacks files, directories and links, with their modes, over what is there", async () => {
    writeFileSync(path.join(top, "a"), "old");
    const members = [
      file("./a", "new"),
      tarDirectory("d"),
      file("d/run", "#!", { mode: 0o755 }),
      symlink("d/l", "../a"),
    ];
    expect(await put(members)).toMatchObject({ code: 0 });
    expect(readFileSync(path.join(top, "d/l"), "utf8")).toBe("new");
    expect(lstatSync(path.join(top, "d/run")).mode & 0o777).toBe(0o755);
  });

  test.each([
    ["a path that leaves", [file("../out", "x")], /not allowed/],
    ["an absolute path", [file("/tmp/out", "x")], /not allowed/],
    ["a parent that is a link", [symlink("l", "/tmp"), file("l/out", "x")], /not a directory/],
    ["a hard link", [file("a", "x"), hardlink("b", "a")], /type/],
    ["a device", [file("null", "", { type: "3", major: 1, minor: 3 })], /type/],
  ])("refuses %s", async (_, members, reason) => {
    expect((await put(members)).error).toMatch(reason);
    expect(existsSync(path.join(top, "../out")) || existsSync("/tmp/out")).toBe(false);
  });

  test("replaces what stands in the way of a patch, and removes nothing behind a link", async () => {
    mkdirSync(path.join(top, "elsewhere"));
    writeFileSync(path.join(top, "elsewhere/kept"), "");
    symlinkSync("elsewhere", path.join(top, "link"));
    writeFileSync(path.join(top, "file"), "");
    await ask({ operation: "remove", directory: top, names: ["link/kept", "no/such"] });
    expect(existsSync(path.join(top, "elsewhere/kept"))).toBe(true);
    expect((await put([file("file/below", "x")])).error).toMatch(/not a directory/);
    expect(await put([file("file/below", "x")], { isReplacing: true })).toMatchObject({ code: 0 });
    expect(readFileSync(path.join(top, "file/below"), "utf8")).toBe("x");
    await ask({ operation: "remove", directory: top, names: ["file"] });
    expect(existsSync(path.join(top, "file"))).toBe(false);
  });

  test("lists what is there by digest, looks into nothing it cannot name, and ends", async () => {
    await put([file("a", "x"), symlink("s", "/etc"), file("z", "y")]);
    mkdirSync(Buffer.concat([Buffer.from(`${top}/b`), Buffer.from([0xff])]));
    expect((await list()).leaves).toEqual([
      expect.objectContaining({
        path: "a",
        kind: "file",
        size: 1,
        sha256: expect.stringMatching(/^2d711642/),
      }),
      expect.objectContaining({ path: "b\ufffd", kind: "directory" }),
      expect.objectContaining({ path: "s", kind: "symlink", target: "/etc" }),
      expect.objectContaining({ path: "z", kind: "file" }),
    ]);
    truncateSync(path.join(top, "a"), 2 ** 40);
    expect((await list()).leaves).toEqual([expect.objectContaining({ path: "a", kind: "unread" })]);
    const { missing } = await ask({ operation: "list", directory: path.join(top, "s"), maxBytes: 1 });
    expect(missing).toMatch(/symbolic link/);
  });

  test("of another release says so and does nothing", async () => {
    const other = { operation: "put", directory: path.join(top, "new"), user: 0, protocol: 0 };
    const { error } = await ask(other as never, tar([file("a", "x")]));
    expect(error).toMatch(/speaks protocol 1, the manager 0/);
    expect(existsSync(path.join(top, "new"))).toBe(false);
  });

  test("packs what is asked for, and nothing of what is too much", async () => {
    await put([file("a", "1"), tarDirectory("d"), file("d/b", "2")]);
    const pack = (more: object) =>
      ask({ operation: "pack", directory: top, maxBytes: 100, maxMembers: 10, ...more });
    const names = async (bytes: Uint8Array) => (await unpackTar(bytes, 1000)).map(({ name }) => name);
    expect(await names((await pack({})).output)).toEqual(["a", "d", "d/b"]);
    expect(await names((await pack({ names: ["d/b"] })).output)).toEqual(["d/b"]);
    for (const limit of [{ maxBytes: 1 }, { maxMembers: 2 }])
      expect(await pack(limit)).toMatchObject({
        error: expect.stringContaining("too much"),
        output: Buffer.alloc(0),
      });
  });

  test("carries connections of its port, one held up and another not, and ends with its manager", async () => {
    const frames: Frame[] = [];
    const port = await freePort();
    const child = start(["relay", String(port)], (frame) => {
      if (frame.kind !== KIND.alive) frames.push({ ...frame, bytes: Buffer.from(frame.bytes) });
    });
    const ofKind = (kind: number, number: number) =>
      frames.filter((one) => one.kind === kind && one.number === number);
    const received = (number: number) =>
      ofKind(KIND.data, number).reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
    await expect.poll(() => frames.some(({ kind }) => kind === KIND.begun)).toBe(true);
    const first = net.connect(port, "127.0.0.1");
    await expect.poll(() => ofKind(KIND.opened, 1)).toHaveLength(1);
    first.write(Buffer.alloc(1024 * 1024, 1));
    // Its window, and no more until it is given back.
    await expect.poll(() => received(1)).toBe(256 * 1024);
    const second = net.connect(port, "127.0.0.1");
    second.write("hello");
    await expect
      .poll(() => Buffer.concat(ofKind(KIND.data, 2).map(({ bytes }) => bytes)).toString())
      .toBe("hello");
    const answered = once(second, "data");
    child.stdin!.write(frameOf(KIND.data, 2, Buffer.from("there")));
    expect(String((await answered)[0])).toBe("there");
    const credit = Buffer.alloc(4);
    credit.writeUInt32BE(1024 * 1024);
    child.stdin!.write(frameOf(KIND.credit, 1, credit));
    await expect.poll(() => received(1)).toBe(1024 * 1024);
    const closed = [once(first, "close"), once(second, "close")];
    for (const socket of [first, second]) socket.on("error", () => undefined);
    child.stdin!.end();
    await Promise.all(closed);
  });
});

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
