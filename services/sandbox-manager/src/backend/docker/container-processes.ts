/**
 * Owns ending a command of one container with everything it started, and what it left behind, while the container goes
 * on. Docker itself can end only a whole container; which processes there are, its host knows.
 *
 * P1  Processes are killed while all of them are frozen, so none can start another in between.
 */
import type Docker from "dockerode";
import { ignoreMissing } from "./engine.js";
import type { HostedContainer, Look } from "./host/types.js";

export class ContainerProcesses {
  readonly #container: Docker.Container;
  readonly #hosted: Pick<HostedContainer, "look" | "kill">;
  #killing: Promise<void> | undefined;

  constructor(container: Docker.Container, hosted: Pick<HostedContainer, "look" | "kill">) {
    this.#container = container;
    this.#hosted = hosted;
  }

  look(pid: number | undefined): Promise<Look> {
    return this.#hosted.look(pid);
  }

  /**
   * Kills a command's processes (P1).
   * @param root its own process, when it is known: without more knowledge only that one's descendants are its own
   * @param isAlone whether no other command runs; asked once everything stands still
   */
  async killCommand(root: number | undefined, isAlone: () => boolean): Promise<void> {
    while (this.#killing !== undefined) await this.#killing;
    this.#killing = this.#freezeAndKill(root, isAlone).finally(() => {
      this.#killing = undefined;
    });
    await this.#killing;
  }

  async #freezeAndKill(root: number | undefined, isAlone: () => boolean): Promise<void> {
    await this.#container.pause().catch(ignoreMissing);
    try {
      await this.#hosted.kill(root, isAlone());
    } finally {
      await this.#container.unpause().catch(ignoreMissing);
    }
  }
}
