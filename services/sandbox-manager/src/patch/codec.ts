/**
 * Owns the bytes of a patch object, format `mortise-patch/1`: an uncompressed tar whose first member
 * `patch.json` lists base, entries and skipped changes, followed by one member `files/<path>` per file entry,
 * in the same order. Does not decide what belongs into a patch (see patch.ts) and applies nothing.
 *
 * Decoding trusts nothing: bytes come from a bus or a store, and what they say is written to disk as root.
 */
import { MortiseError } from "@mortise/contracts";
import { z } from "zod";
import { isContainedLink, isContainedPath, type Patch, type PatchEntry, sha256 } from "./patch.js";
import { packTar, unpackTar } from "./tar.js";

const FORMAT = "mortise-patch/1";
/** Above any limit a site can set for a patch; protects the decoder's memory. */
const MAX_PATCH_BYTES = 256 * 1024 * 1024;

const Manifest = z.strictObject({
  format: z.literal(FORMAT),
  base: z.string(),
  entries: z.array(
    z.discriminatedUnion("kind", [
      z.strictObject({
        kind: z.literal("file"),
        path: z.string(),
        mode: z.literal([0o644, 0o755]),
        sha256: z.string(),
      }),
      z.strictObject({ kind: z.literal("symlink"), path: z.string(), target: z.string() }),
      z.strictObject({ kind: z.literal("deleted"), path: z.string() }),
    ]),
  ),
  skipped: z.array(
    z.strictObject({
      path: z.string(),
      reason: z.enum([
        "special-file",
        "name-not-utf8",
        "git-metadata",
        "symlink-leaves-workspace",
        "over-limit",
      ]),
    }),
  ),
});

export async function encodePatch(patch: Patch): Promise<Uint8Array> {
  const entries = patch.entries.map((entry) =>
    entry.kind === "file"
      ? { kind: entry.kind, path: entry.path, mode: entry.mode, sha256: sha256(entry.content) }
      : entry,
  );
  const manifest = JSON.stringify({ format: FORMAT, base: patch.base, entries, skipped: patch.skipped });
  return packTar([
    { name: "patch.json", kind: "file", mode: 0o644, content: Buffer.from(manifest) },
    ...patch.entries.flatMap((entry) =>
      entry.kind === "file"
        ? [{ name: `files/${entry.path}`, kind: "file" as const, mode: entry.mode, content: entry.content }]
        : [],
    ),
  ]);
}

/** Rejects with MORTISE_SANDBOX_PATCH when the bytes are not a patch that stays in the workspace (P2). */
export async function decodePatch(bytes: Uint8Array): Promise<Patch> {
  const members = await unpackTar(bytes, MAX_PATCH_BYTES).catch((cause: unknown) => {
    throw malformed("not a readable tar", cause);
  });
  const manifest = Manifest.safeParse(
    parseJson(members[0]?.name === "patch.json" ? members[0].content : undefined),
  );
  if (!manifest.success) throw malformed(z.prettifyError(manifest.error));
  const contents = new Map(members.slice(1).map((member) => [member.name, member.content]));
  const entries = manifest.data.entries.map((entry): PatchEntry => {
    if (entry.kind !== "file") return entry;
    const content = contents.get(`files/${entry.path}`);
    if (content === undefined) throw malformed(`no content for ${JSON.stringify(entry.path)}`);
    if (sha256(content) !== entry.sha256) throw malformed(`content of ${JSON.stringify(entry.path)} differs`);
    return { kind: "file", path: entry.path, mode: entry.mode, content };
  });
  assertContained(entries);
  return { base: manifest.data.base, entries, skipped: manifest.data.skipped };
}

/** P2: no entry leaves the workspace by its own path, by its link target, or by lying below another entry. */
export function assertContained(entries: readonly PatchEntry[]): void {
  const leaves = new Set<string>();
  for (const entry of entries) {
    if (!isContainedPath(entry.path) || entry.path.split("/").includes(".git"))
      throw malformed(`path ${JSON.stringify(entry.path)} is not allowed`);
    if (entry.kind === "symlink" && !isContainedLink(entry.path, entry.target))
      throw malformed(`link ${JSON.stringify(entry.path)} leaves the workspace`);
    if (leaves.has(entry.path)) throw malformed(`path ${JSON.stringify(entry.path)} appears twice`);
    leaves.add(entry.path);
  }
  const kept = new Set(entries.filter((entry) => entry.kind !== "deleted").map((entry) => entry.path));
  for (const leaf of kept) {
    for (let end = leaf.lastIndexOf("/"); end > 0; end = leaf.lastIndexOf("/", end - 1)) {
      if (kept.has(leaf.slice(0, end))) throw malformed(`${JSON.stringify(leaf)} lies below another entry`);
    }
  }
}

function parseJson(bytes: Uint8Array | undefined): unknown {
  if (bytes === undefined) throw malformed("patch.json is not the first member");
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch (cause) {
    throw malformed("patch.json is not JSON", cause);
  }
}

function malformed(message: string, cause?: unknown): MortiseError {
  return new MortiseError({ code: "MORTISE_SANDBOX_PATCH", message, cause });
}
