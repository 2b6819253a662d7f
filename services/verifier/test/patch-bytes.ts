/** Owns writing a change in the format of patches, so that tests can hand the verifier what an agent could have left. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

/** Path to content; null deletes, `{ link }` is a symbolic link. */
export type Change = Readonly<Record<string, string | null | { readonly link: string }>>;

/** The bytes of `mortise-patch/1` against a tree of this digest. */
export function patchBytes(base: string, change: Change): Buffer {
  const scratch = mkdtempSync(path.join(tmpdir(), "mortise-patch-"));
  try {
    const names = Object.keys(change).sort();
    const entries = names.map((name) => {
      const content = change[name]!;
      if (content === null) return { kind: "deleted", path: name };
      if (typeof content === "object") return { kind: "symlink", path: name, target: content.link };
      const file = path.join(scratch, "files", name);
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, content);
      return {
        kind: "file",
        path: name,
        mode: 0o644,
        sha256: createHash("sha256").update(content).digest("hex"),
      };
    });
    writeFileSync(
      path.join(scratch, "patch.json"),
      JSON.stringify({ format: "mortise-patch/1", base, entries, skipped: [] }),
    );
    const files = entries.flatMap(({ kind, path: name }) => (kind === "file" ? [`files/${name}`] : []));
    return execFileSync("tar", ["-C", scratch, "--format=pax", "-cf", "-", "patch.json", ...files], {
      maxBuffer: 1 << 28,
    });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
