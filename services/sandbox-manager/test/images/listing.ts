/** A complete listing of a tree: kinds, modes, owners, times, link groups, attributes and content digests. */
import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { readXattrs } from "../../src/images/layer/linux.js";

export function listing(root: string, keepsXattr: (key: string) => boolean): string[] {
  const lines: string[] = [];
  /** The first path of an inode names its group of links. */
  const groups = new Map<bigint, string>();
  const walk = (relative: string): void => {
    const path = `${Buffer.from(root).toString("latin1")}/${relative}`;
    for (const child of readdirSync(Buffer.from(path, "latin1"), { encoding: "buffer" }).sort(
      Buffer.compare,
    )) {
      const name = relative === "" ? child.toString("latin1") : `${relative}/${child.toString("latin1")}`;
      const at = `${Buffer.from(root).toString("latin1")}/${name}`;
      const bytes = Buffer.from(at, "latin1");
      const stat = lstatSync(bytes, { bigint: true });
      const xattrs = [...readXattrs(at)].filter(([key]) => keepsXattr(key)).sort();
      const first = stat.nlink > 1n && !stat.isDirectory() ? (groups.get(stat.ino) ?? name) : "";
      if (first !== "") groups.set(stat.ino, first);
      let body = "";
      if (stat.isSymbolicLink()) body = readlinkSync(bytes, "buffer").toString("latin1");
      else if (stat.isFile()) body = createHash("sha256").update(readFileSync(bytes)).digest("hex");
      else if (!stat.isDirectory()) body = String(stat.rdev);
      const attributes = xattrs.map(([key, value]) => `${key}=${value.toString("hex")}`).join(",");
      lines.push(
        [name, stat.mode.toString(8), stat.uid, stat.gid, stat.mtimeMs / 1000n, body, first, attributes].join(
          " ",
        ),
      );
      if (stat.isDirectory()) walk(name);
    }
  };
  walk("");
  return lines;
}
