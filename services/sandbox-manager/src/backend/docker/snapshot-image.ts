/**
 * Owns the life of one committed image: it stays at the engine while somebody may start from it or runs on it.
 * Does not commit.
 */
import type Docker from "dockerode";
import { ignoreMissing } from "./engine.js";

export class SnapshotImage {
  readonly #docker: Docker;
  readonly #name: string;
  #users = 0;
  #isReleased = false;

  constructor(docker: Docker, name: string) {
    this.#docker = docker;
    this.#name = name;
  }

  use(): void {
    this.#users++;
  }

  async leave(): Promise<void> {
    this.#users--;
    await this.#removeIfUnused();
  }

  /** Nobody starts from it any more. Idempotent. */
  async release(): Promise<void> {
    if (this.#isReleased) return;
    this.#isReleased = true;
    await this.#removeIfUnused();
  }

  async #removeIfUnused(): Promise<void> {
    if (!this.#isReleased || this.#users > 0) return;
    await this.#docker.getImage(this.#name).remove({ force: true }).catch(ignoreMissing);
  }
}
