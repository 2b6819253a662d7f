/**
 * Builds a small image that a shell can run in, as `docker save` writes it: programs of this host with the libraries
 * they load, and a workspace spread over layers with everything layers can do to each other.
 */
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { digestOf, directory, file, type Member, symlink, tar } from "./tar-builder.js";

const PROGRAMS = "sh cat chmod cp echo grep head id ln ls mkdir mv rm sleep stat touch true wc".split(" ");

/** Lowest first. The workspace is /srv/testbed; its root directory is 0711, /srv 0751 of root and group 3. */
export const SMALL_LAYERS: readonly (readonly Member[])[] = [
  [
    { name: "./", type: "5", mode: 0o711 },
    directory("etc"),
    directory("srv", { mode: 0o751, gid: 3 }),
    directory("srv/shared", { mode: 0o1777, uid: 7, gid: 8 }),
    symlink("srv/alias", "testbed"),
    file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
    file("etc/issue", "first\n"),
    directory("srv/old"),
    file("srv/old/first", "first\n"),
    directory("srv/testbed"),
    directory("srv/testbed/.git"),
    file("srv/testbed/.git/HEAD", "ref: refs/heads/main\n"),
    file("srv/testbed/README", "read me\n"),
    directory("srv/testbed/both"),
    file("srv/testbed/both/file", "1\n"),
    directory("srv/testbed/lib"),
    file("srv/testbed/lib/a", "a\n"),
    file("srv/testbed/lib/gone", "gone\n"),
    file("srv/testbed/over", "over\n"),
    symlink("srv/testbed/link", "README"),
  ],
  [
    directory("etc"),
    file("etc/issue", "second\n"),
    directory("srv/old"),
    file("srv/old/.wh..wh..opq"),
    file("srv/old/new", "new\n"),
    directory("srv/testbed/lib"),
    file("srv/testbed/lib/.wh.gone"),
    file("srv/testbed/lib/b", "b\n"),
    directory("srv/testbed/bin"),
    file("srv/testbed/bin/run", "#!/bin/sh\n", { mode: 0o755 }),
  ],
];

/** Writes the image with a layer of programs under the given ones. @returns path of the archive */
export async function savedImage(layers: readonly (readonly Member[])[]): Promise<string> {
  const blobs = [programLayer(), ...layers].map((members) => tar(members));
  const config = JSON.stringify({
    os: "linux",
    architecture: process.arch === "x64" ? "amd64" : process.arch,
    config: { Env: ["PATH=/bin", "GREETING=hello = there"], WorkingDir: "/srv/testbed", Cmd: ["/bin/sh"] },
    rootfs: { type: "layers", diff_ids: blobs.map(digestOf) },
  });
  const configName = `${digestOf(Buffer.from(config)).slice(7)}.json`;
  const names = blobs.map((_, at) => `${at}/layer.tar`);
  const manifest = JSON.stringify([
    { Config: configName, RepoTags: ["mortise-test/small:1"], Layers: names },
  ]);
  const archive = tar([
    file(configName, config),
    ...blobs.map((blob, at) => file(names[at]!, blob as unknown as string)),
    file("manifest.json", manifest),
  ]);
  const target = path.join(tmpdir(), `mortise-image-${randomUUID()}.tar`);
  writeFileSync(target, archive);
  return target;
}

function programLayer(): Member[] {
  const found = PROGRAMS.map((name) => ({ name: `bin/${name}`, source: realpathSync(whereIs(name)) }));
  const listing = spawnSync(
    "ldd",
    found.map(({ source }) => source),
    { encoding: "utf8" },
  ).stdout;
  // A line is `name => /path (0x…)`, or `/path (0x…)` for the linker itself.
  const libraries = [...listing.matchAll(/(?:=>\s*|^\s*)(\/\S+)\s+\(0x/gm)].map((match) => match[1]!);
  const all = [
    ...found,
    ...[...new Set(libraries)].map((library) => ({ name: library.slice(1), source: realpathSync(library) })),
  ];
  const parents = new Set(["bin"]);
  for (const { name } of all)
    for (let end = name.indexOf("/"); end > 0; end = name.indexOf("/", end + 1))
      parents.add(name.slice(0, end));
  return [
    ...[...parents].sort().map((name) => directory(name)),
    ...all.map(({ name, source }) => ({ name, mode: 0o755, content: readFileSync(source) })),
  ];
}

function whereIs(name: string): string {
  const found = spawnSync("sh", ["-c", `command -v ${name}`], {
    encoding: "utf8",
    env: { PATH: "/usr/bin:/bin" },
  });
  const at = found.stdout.trim();
  // A builtin has no path.
  return at.startsWith("/") ? at : `/usr/bin/${name}`;
}
