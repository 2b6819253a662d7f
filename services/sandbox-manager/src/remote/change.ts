/**
 * Owns making a change that a remote runtime hands back what a change taken here is: contained, bounded, canonical,
 * against the task's own tree. Whatever it is not is refused. Does not apply it.
 */
import { type InvocationResult, MortiseError } from "@mortise/contracts";
import type { DiffLimits, Tree } from "../backend/types.js";
import { decodePatch } from "../patch/codec.js";
import { type Patch, PatchBuilder } from "../patch/patch.js";

/** Undefined when nothing ran. Rejects with MORTISE_HARNESS_REMOTE_ANSWER. */
export async function changeOf(
  { patch: base64 }: Pick<InvocationResult, "patch">,
  tree: Tree,
  limits: DiffLimits,
): Promise<Patch | undefined> {
  if (base64 === undefined) return undefined;
  const patch = await decodePatch(Buffer.from(base64, "base64")).catch((cause: Error) => {
    throw unusable(`the change: ${cause.message}`, cause);
  });
  if (patch.base !== tree.digest)
    throw unusable(`the change was taken against ${patch.base}; the task's work tree is ${tree.digest}`);
  const builder = new PatchBuilder(tree, limits);
  for (const { path, reason } of patch.skipped) builder.skip(path, reason);
  for (const entry of patch.entries) {
    if (entry.kind === "deleted") {
      if (tree.entries.has(entry.path)) builder.missing(entry.path);
    } else if (entry.kind === "symlink")
      builder.present(entry.path, { kind: "symlink", target: entry.target });
    else
      builder.present(entry.path, {
        kind: "file",
        isExecutable: entry.mode === 0o755,
        size: entry.content.byteLength,
        read: () => entry.content,
      });
  }
  return builder.build();
}

function unusable(message: string, cause?: unknown): MortiseError {
  return new MortiseError({ code: "MORTISE_HARNESS_REMOTE_ANSWER", message: `${message}.`, cause });
}
