/**
 * Owns mounting a stack of layers as one file system. Does not decide what is in the stack.
 *
 * Layers are handed to the kernel as open descriptors: mount options are one page of 4096 bytes, which the paths of
 * sixty layers would fill. It takes no change of directory, and no character of a path can have a meaning.
 */
import { closeSync, constants, openSync } from "node:fs";
import { MortiseError } from "@mortise/contracts";
import { MS_NODEV, MS_NOSUID, mount } from "./syscalls.js";

const O_PATH = 0o10_000_000;
/** One page, with its end. */
const MAX_OPTION_BYTES = 4095;

export interface OverlayParts {
  /** Absolute directories, topmost first; at least one. */
  readonly lower: readonly string[];
  readonly upper: string;
  readonly work: string;
  readonly target: string;
}

/** Rejects with MORTISE_SANDBOX_SETUP when there are more layers than the kernel takes. */
export function mountOverlay({ lower, upper, work, target }: OverlayParts): void {
  const open: number[] = [];
  const named = (directory: string): string => {
    const fd = openSync(directory, O_PATH | constants.O_DIRECTORY);
    open.push(fd);
    return `/proc/self/fd/${fd}`;
  };
  try {
    // Without redirects, metacopy and index every change is a plain file, directory or whiteout in upper.
    const options = [
      `lowerdir=${lower.map(named).join(":")}`,
      `upperdir=${named(upper)}`,
      `workdir=${named(work)}`,
      "redirect_dir=off,metacopy=off,index=off,xino=off",
    ].join(",");
    if (options.length > MAX_OPTION_BYTES)
      throw new MortiseError({
        code: "MORTISE_SANDBOX_SETUP",
        message: `the root file system has ${lower.length} layers; the kernel takes ${MAX_OPTION_BYTES} bytes of options.`,
        fix: "Build the image with fewer layers.",
      });
    mount("overlay", target, "overlay", MS_NODEV | MS_NOSUID, options);
  } finally {
    for (const fd of open) closeSync(fd);
  }
}
