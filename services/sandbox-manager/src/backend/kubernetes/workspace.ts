/**
 * Owns the files of a pod's workspace: laying them, applying a patch, and the change that is taken. Trees and contents
 * come from the helper, a static program on a read-only mount: nothing an agent left is asked or followed.
 */
import { assertContained } from "../../patch/codec.js";
import { type FoundLeaf, type Patch, PatchBuilder } from "../../patch/patch.js";
import { packTar, type TarMember, unpackTar } from "../../patch/tar.js";
import { NoSuchDirectory } from "../docker/archive-tree.js";
import { MAX_TAR_BYTES, MAX_TAR_MEMBERS } from "../files.js";
import { digestOfEntries } from "../tree-store.js";
import type { DiffLimits, Tree, TreeEntry } from "../types.js";
import type { HelperResult, PodHelper } from "./helper.js";

/** What an undecodable byte of a name has become. */
const NOT_UTF8 = "\ufffd";
/** Content read for one listing; a hole costs as much as what it stands for. */
const MAX_READ_BYTES = 8 * 1024 ** 3;

/** A line of the helper's listing. */
interface Leaf {
  readonly path: string;
  readonly kind: "file" | "symlink" | "directory" | "special" | "unread";
  readonly mode?: number;
  readonly size?: number;
  readonly target?: string;
  readonly sha256?: string;
}

/** What a workspace was before anything ran. */
export interface WorkspaceBase {
  readonly directory: string;
  readonly tree: Tree;
  /** What the image had there before the tree was laid over it. */
  readonly below: Tree | undefined;
}

/** The leaves below a directory, without histories. Rejects with MORTISE_SANDBOX_SETUP where there is none. */
export async function readTree(helper: PodHelper, directory: string): Promise<Tree> {
  const entries: TreeEntry[] = [];
  const { missing } = await listed(helper, directory, (leaf) => {
    const entry = entryOf(leaf);
    const isHidden = leaf.path.includes(NOT_UTF8) || leaf.path.split("/").includes(".git");
    if (entry !== undefined && !isHidden) entries.push(entry);
  });
  if (missing !== undefined) throw new NoSuchDirectory(directory, missing);
  entries.sort((a, b) => (a.path < b.path ? -1 : 1));
  return { digest: digestOfEntries(entries), entries: new Map(entries.map((entry) => [entry.path, entry])) };
}

/** What changed. Precondition: nothing runs in the pod. */
export async function diffPod(helper: PodHelper, base: WorkspaceBase, limits: DiffLimits): Promise<Patch> {
  const { directory, tree, below } = base;
  const found: Leaf[] = [];
  await listed(helper, directory, (leaf) => found.push(leaf));
  const isAsBefore = (leaf: Leaf) => {
    const before = tree.entries.get(leaf.path) ?? below?.entries.get(leaf.path);
    const entry = entryOf(leaf);
    return before?.kind === entry?.kind && before?.mode === entry?.mode && before?.sha256 === entry?.sha256;
  };
  const wanted = wantedOf(
    found.filter((leaf) => leaf.kind === "file" && !isAsBefore(leaf)),
    limits,
  );
  const contents = await contentsOf(helper, directory, wanted);
  const builder = new PatchBuilder(tree, limits);
  const seen = new Set<string>();
  for (const leaf of found) {
    if (builder.isFull || leaf.kind === "unread") {
      // Of what was not looked at nobody knows whether it is there.
      builder.skip(leaf.path, "over-limit");
      return builder.build();
    }
    if (leaf.path.includes(NOT_UTF8)) builder.skip(leaf.path, "name-not-utf8");
    else if (leaf.kind === "directory") builder.enters(leaf.path);
    else if (leaf.kind === "special") builder.skip(leaf.path, "special-file");
    else {
      seen.add(leaf.path);
      if (!isAsBefore(leaf)) builder.present(leaf.path, foundLeaf(leaf, contents));
    }
  }
  for (const leafPath of tree.entries.keys()) if (!seen.has(leafPath)) builder.missing(leafPath);
  return builder.build();
}

/** Everything below a directory, as an archive. Rejects when it is too much, before it is read. */
export async function packPod(helper: PodHelper, directory: string): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  const { missing } = await helper.ask(
    { operation: "pack", directory, maxBytes: MAX_TAR_BYTES, maxMembers: MAX_TAR_MEMBERS },
    { onOutput: (chunk) => chunks.push(Buffer.from(chunk)) },
  );
  if (missing !== undefined) throw new NoSuchDirectory(directory, missing);
  return Buffer.concat(chunks);
}

/** A patch over the workspace; what it writes belongs to whom the workspace belongs. */
export async function applyInPod(helper: PodHelper, directory: string, patch: Patch): Promise<void> {
  assertContained(patch.entries);
  const names = patch.entries.filter(({ kind }) => kind === "deleted").map((entry) => entry.path);
  if (names.length > 0) await helper.ask({ operation: "remove", directory, names });
  const members = patch.entries.flatMap((entry): TarMember[] => {
    if (entry.kind === "deleted") return [];
    if (entry.kind === "symlink")
      return [{ name: entry.path, kind: "symlink", mode: 0o777, target: entry.target }];
    return [{ name: entry.path, kind: "file", mode: entry.mode, content: entry.content }];
  });
  await helper.ask(
    { operation: "put", directory, isOwnedLikeDirectory: true, isReplacing: true },
    { input: [await packTar(members)] },
  );
}

/** A line for everything below a directory, in order. */
async function listed(
  helper: PodHelper,
  directory: string,
  onLeaf: (leaf: Leaf) => void,
): Promise<HelperResult> {
  let rest = "";
  const decoder = new TextDecoder();
  return helper.ask(
    { operation: "list", directory, maxBytes: MAX_READ_BYTES },
    {
      onOutput: (chunk) => {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
        rest = lines.pop()!;
        for (const line of lines) onLeaf(JSON.parse(line) as Leaf);
      },
    },
  );
}

function entryOf({ path: at, kind, mode = 0, sha256 = "" }: Leaf): TreeEntry | undefined {
  if (kind === "symlink") return { path: at, kind, mode: 0o777, sha256 };
  if (kind === "file") return { path: at, kind, mode: (mode & 0o100) === 0 ? 0o644 : 0o755, sha256 };
  return undefined;
}

/** What a patch with these limits could hold at most, in the order in which it takes them. */
function wantedOf(changed: readonly Leaf[], { maxFileBytes, maxTotalBytes }: DiffLimits): string[] {
  let left = maxTotalBytes;
  return changed.flatMap(({ path: at, size = 0 }) => {
    if (size > maxFileBytes || size > left || at.includes(NOT_UTF8) || at.split("/").includes(".git"))
      return [];
    left -= size;
    return [at];
  });
}

async function contentsOf(
  helper: PodHelper,
  directory: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, Uint8Array>> {
  if (names.length === 0) return new Map();
  const chunks: Buffer[] = [];
  await helper.ask(
    { operation: "pack", directory, names, maxBytes: MAX_TAR_BYTES, maxMembers: MAX_TAR_MEMBERS },
    { onOutput: (chunk) => chunks.push(Buffer.from(chunk)) },
  );
  const members = await unpackTar(Buffer.concat(chunks), MAX_TAR_BYTES);
  return new Map(members.map(({ name, content }) => [name, content]));
}

function foundLeaf(
  { path: at, kind, mode = 0, size = 0, target = "" }: Leaf,
  contents: ReadonlyMap<string, Uint8Array>,
): FoundLeaf {
  if (kind === "symlink") return { kind: "symlink", target };
  const read = () => {
    const content = contents.get(at);
    if (content === undefined) throw new Error(`${at} was not read`);
    return content;
  };
  return { kind: "file", isExecutable: (mode & 0o100) !== 0, size, read };
}
