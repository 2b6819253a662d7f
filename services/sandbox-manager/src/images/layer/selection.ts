/**
 * Owns the choice of a part of an image: some paths and everything below them. Directories on the way to them are
 * kept, so that owners and modes are right. Links are not followed: a selection names entries, not files.
 */
import { MortiseError } from "@mortise/contracts";
import { partsOf } from "./names.js";

export class Selection {
  readonly #paths: readonly string[];

  /** Throws MORTISE_SANDBOX_IMAGE_REFERENCE for a path that cannot be in an image. */
  constructor(paths: readonly string[]) {
    this.#paths = paths.map((path) => {
      const name = Buffer.from(path).toString("latin1");
      const parts = name.includes("\0") || name.split("/").includes("..") ? [] : partsOf(name);
      if (parts.length === 0)
        throw new MortiseError({
          code: "MORTISE_SANDBOX_IMAGE_REFERENCE",
          message: `paths: ${JSON.stringify(path)} selects nothing.`,
          fix: "Give paths of the image such as /opt/tool, without `..`.",
        });
      return parts.join("/");
    });
  }

  /** Whether an entry is selected, or is a directory on the way to one. */
  has(parts: readonly string[], isDirectory: boolean): boolean {
    const path = parts.join("/");
    return this.#paths.some(
      (selected) =>
        path === selected ||
        path.startsWith(`${selected}/`) ||
        (isDirectory && (path === "" || selected.startsWith(`${path}/`))),
    );
  }
}
