/**
 * Owns writable layers that outlive the sandbox they were written in: each is a memory file system, kept until
 * nobody starts from it, runs on it or was made from something that does. Does not make snapshots' contents.
 *
 * N1  A layer is a lower layer from the moment it is here: nothing writes to it again.
 */
import { mkdirSync, rmSync, statfsSync } from "node:fs";
import path from "node:path";
import { moveMount, unmountInBackground } from "./syscalls.js";

export class HeldLayer {
  /** Directory an overlay takes as a lower layer. */
  readonly layer: string;
  readonly #mountPoint: string;
  readonly #below: readonly HeldLayer[];
  #users = 1;

  private constructor(mountPoint: string, upper: string, below: readonly HeldLayer[]) {
    this.#mountPoint = mountPoint;
    this.layer = path.join(mountPoint, upper);
    this.#below = below;
    for (const one of below) one.use();
  }

  /**
   * Takes over a mounted memory file system, whose `upper` becomes the layer; its maker is the first user.
   * @param below layers of other snapshots under it
   */
  static take(from: string, mountPoint: string, upper: string, below: readonly HeldLayer[]): HeldLayer {
    mkdirSync(mountPoint, { mode: 0o700 });
    moveMount(from, mountPoint);
    return new HeldLayer(mountPoint, upper, below);
  }

  /** Memory it holds. */
  get bytes(): number {
    const { blocks, bfree, bsize } = statfsSync(this.#mountPoint);
    return (blocks - bfree) * bsize;
  }

  use(): void {
    this.#users++;
  }

  /** Removes it when this was the last use. */
  async leave(): Promise<void> {
    this.#users--;
    if (this.#users > 0) return;
    await unmountInBackground(this.#mountPoint);
    rmSync(this.#mountPoint, { recursive: true, force: true });
    for (const one of this.#below) await one.leave();
  }
}
