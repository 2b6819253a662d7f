/**
 * An image built by Docker in layers, saved and unpacked by us, is entry by entry what `docker export` gives.
 * Needs root and dockerd, of which it starts one of its own.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { ImageStore } from "../../dist/images/store/image-store.js";
import { directory, file, hardlink, type Member, symlink, tar } from "../../src/conformance/tar-builder.js";
import { listing } from "./listing.js";
import { isRoot, Scratch } from "./scratch.js";

const hasDocker =
  isRoot && ["dockerd", "docker"].every((program) => spawnSync("which", [program]).status === 0);
const scratch = new Scratch();
const socket = `unix://${scratch.base}/docker.sock`;
let daemon: ReturnType<typeof spawn> | undefined;

function docker(...argv: string[]): string {
  return execFileSync("docker", ["-H", socket, ...argv], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, DOCKER_BUILDKIT: "0" },
  }).trim();
}

beforeAll(async () => {
  if (!hasDocker) return;
  const data = path.join(scratch.base, "docker");
  daemon = spawn(
    "dockerd",
    [
      "-H",
      socket,
      "--data-root",
      data,
      "--exec-root",
      `${data}-exec`,
      "--pidfile",
      `${data}.pid`,
      "--bridge",
      "none",
      "--iptables=false",
      "--storage-driver",
      "overlay2",
    ],
    { stdio: "ignore" },
  );
  await vi.waitFor(() => docker("version"), { timeout: 100_000, interval: 500 });
}, 120_000);
afterAll(async () => {
  if (daemon !== undefined && daemon.exitCode === null) {
    const ended = new Promise((resolve) => daemon!.once("exit", resolve));
    daemon.kill("SIGTERM");
    await ended;
  }
  scratch.remove();
}, 60_000);

const capability = Buffer.from("0100000200200000000000000000000000000000", "hex");
const base: Member[] = [
  directory("bin"),
  file("bin/tool", "tool", { mode: 0o4755, uid: 3, gid: 4 }),
  hardlink("bin/link", "bin/tool"),
  symlink("bin/absolute", "/bin/tool", { uid: 5 }),
  file("bin/ping", "ping", { pax: [["SCHILY.xattr.security.capability", capability]] }),
  directory("tmp", { mode: 0o1777 }),
  { name: "tmp/pipe", type: "6", mode: 0o600 },
  { name: "tmp/null", type: "3", major: 1, minor: 3, mode: 0o666 },
  directory("replaced"),
  file("replaced/old", "old"),
  file("ü name", "x"),
  file("odd", "x", { mtime: 1_234_567_890 }),
];
const added: Member[] = [
  directory("replaced"),
  file("replaced/new", "new"),
  hardlink("replaced/new2", "replaced/new"),
  directory("srv", { mode: 0o2750, uid: 9, gid: 9 }),
  symlink("srv/l", "../bin"),
];

describe.skipIf(!hasDocker)("parity with Docker (needs root and dockerd)", () => {
  test("docker save, unpacked by us, is docker export", { timeout: 300_000 }, async () => {
    const context = scratch.directory();
    writeFileSync(path.join(context, "base.tar"), tar(base));
    writeFileSync(path.join(context, "added.tar"), tar(added));
    writeFileSync(
      path.join(context, "Dockerfile"),
      "FROM scratch\nADD base.tar /\nADD added.tar /\nCOPY added.tar /copied/deep/\n",
    );
    docker("build", "-q", "-t", "parity:1", context);
    const container = docker("create", "parity:1", "/none");
    // A commit of a container that deleted and replaced things has whiteouts and opaque directories.
    const upper = docker("inspect", "-f", "{{.GraphDriver.Data.UpperDir}}", container);
    const merged = `${upper}/../merged`;
    expect(existsSync(upper)).toBe(true);
    mkdirSync(merged, { recursive: true });
    execFileSync("mknod", [path.join(upper, "odd"), "c", "0", "0"]);
    cpSync(path.join(context, "Dockerfile"), path.join(upper, "fresh"));
    docker("commit", container, "parity:2");
    const exported = scratch.directory();
    const last = docker("create", "parity:2", "/none");
    docker("export", "-o", path.join(scratch.base, "export.tar"), last);
    execFileSync("tar", [
      "-C",
      exported,
      "--xattrs",
      "--xattrs-include=*",
      "-xpf",
      path.join(scratch.base, "export.tar"),
    ]);
    docker("save", "-o", path.join(scratch.base, "saved.tar"), "parity:2");

    const store = new ImageStore({ directory: scratch.directory(), devices: "create" });
    const image = await store.pull({ kind: "local", path: path.join(scratch.base, "saved.tar") });
    await store.close();
    const seen = scratch.overlay(image.layers.map((layer) => layer.directory));
    // Docker puts mount points of its own into every container.
    const own = /^(\.dockerenv|dev|dev\/.*|etc|etc\/.*|proc|sys) /;
    const keeps = (key: string) => key === "security.capability";
    const [ours, theirs] = [seen, exported].map((root) =>
      listing(root, keeps).filter((line) => !own.test(line)),
    );
    expect(ours).toEqual(theirs);
    expect(ours!.some((line) => line.startsWith("odd "))).toBe(false);
    expect(ours!.find((line) => line.startsWith("bin/ping "))).toContain(capability.toString("hex"));
    expect(ours!.length).toBeGreaterThan(15);
  });
});
