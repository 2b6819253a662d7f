/**
 * Owns the checks that an invocation is about the very image and work tree its caller means: a patch says only what
 * differs from one exact tree.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import path from "node:path";
import { MortiseError, type StartInvocation } from "@mortise/contracts";
import {
  type Image,
  type ImageSpec,
  type Tree,
  type TreeSource,
  unpackBelow,
} from "@mortise/sandbox-manager";

export interface TreeMaker {
  prepareTree(source: TreeSource): Promise<Tree>;
  readTree(image: Image, directory: string): Promise<Tree>;
}

/** @throws MortiseError MORTISE_SANDBOX_SETUP for an archive where this runtime has no directory of them */
export function imageSpecOf({ image }: StartInvocation, archives: string | undefined): ImageSpec {
  if (image.kind === "host") return { kind: "host" };
  if (image.kind === "registry") return { kind: "registry", reference: image.reference };
  if (archives === undefined)
    throw new MortiseError({
      code: "MORTISE_SANDBOX_SETUP",
      message: `image.file is ${image.file}, and this runtime has no directory of images.`,
      fix: "Set images.archives of the runtime, or name the image of a registry.",
    });
  return {
    kind: "local",
    path: path.join(archives, image.file),
    ...(image.name === undefined ? {} : { name: image.name }),
  };
}

/** @throws MortiseError MORTISE_SANDBOX_IMAGE_DIGEST */
export function assertSameImage({ image: asked }: StartInvocation, image: Image): void {
  if (asked.kind === "host" || asked.digest === image.digest) return;
  throw new MortiseError({
    code: "MORTISE_SANDBOX_IMAGE_DIGEST",
    message: `the image is ${image.digest}; the caller means ${asked.digest}.`,
    fix: "Name the image by its digest, or bring the archives of both sides to the same state.",
  });
}

/**
 * The work tree a change is taken against. `scratch` is a directory for what is needed only meanwhile.
 * @throws MortiseError MORTISE_SANDBOX_PATCH when it is not the one the caller means
 */
export async function workTree(
  { workspace, workdir }: StartInvocation,
  image: Image,
  maker: TreeMaker,
  scratch: string,
): Promise<Tree> {
  const tree =
    workspace.kind === "image"
      ? await maker.readTree(image, workdir)
      : await stored(Buffer.from(workspace.tar, "base64"), maker, scratch);
  if (tree.digest === workspace.digest) return tree;
  throw new MortiseError({
    code: "MORTISE_SANDBOX_PATCH",
    message: `the work tree is ${tree.digest}; the caller means ${workspace.digest}.`,
    fix: "Send the tree the digest was taken of.",
  });
}

async function stored(tar: Uint8Array, maker: TreeMaker, scratch: string): Promise<Tree> {
  mkdirSync(scratch, { recursive: true, mode: 0o700 });
  const directory = mkdtempSync(path.join(scratch, "tree-"));
  try {
    await unpackBelow(directory, "/", tar, 0);
    return await maker.prepareTree({ kind: "directory", directory });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Whether a tree, or an image whose own tree it is, could hold a history. */
export function mayHoldHistory({ workspace, image }: StartInvocation, tree: Tree): boolean {
  if (workspace.kind === "image" || image.kind !== "host") return true;
  return [...tree.entries.keys()].some((name) => name.split("/").includes(".git"));
}
