/**
 * Owns harnesses as sandboxes need them: the configured directory as a read-only tree, and how it is started on
 * one trial. Knows nothing of what a harness does; a harness knows nothing of us.
 */
import { MortiseError, type SiteConfig } from "@mortise/contracts";
import { type Command, MODEL_PORT, type Mount, type SandboxBackend, WORKSPACE } from "../backend/types.js";
import { BASE_ENVIRONMENT } from "../environment.js";
import { Shelf } from "./shelf.js";
import type { ShelvedTask } from "./tasks.js";

export const HARNESS_TARGET = "/opt/harness";

export type HarnessSite = SiteConfig["harness"][string];

export interface ShelvedHarness {
  readonly definition: HarnessSite;
  readonly mount: Mount;
}

/** What differs from trial to trial. */
export interface HarnessFacts {
  readonly token: string;
  readonly model: string;
}

export class HarnessShelf {
  readonly #backend: SandboxBackend;
  readonly #definitions: SiteConfig["harness"];
  readonly #harnesses = new Shelf<ShelvedHarness>();

  constructor(backend: SandboxBackend, site: SiteConfig) {
    this.#backend = backend;
    this.#definitions = site.harness;
  }

  /** Rejects with MORTISE_HARNESS_UNKNOWN. */
  async get(name: string): Promise<ShelvedHarness> {
    // Names come off the bus: one of an object's own inherited properties is no harness.
    const definition = Object.hasOwn(this.#definitions, name) ? this.#definitions[name] : undefined;
    if (definition === undefined)
      throw new MortiseError({
        code: "MORTISE_HARNESS_UNKNOWN",
        message: `harness ${JSON.stringify(name)}; defined: ${Object.keys(this.#definitions).join(", ") || "none"}`,
      });
    return this.#harnesses.get(name, async () => {
      const tree = await this.#backend.prepareTree({ kind: "directory", directory: definition.directory });
      return { definition, mount: { tree, target: HARNESS_TARGET } };
    });
  }
}

/** Command and environment of a harness on one trial. The token is in there: never log the result. */
export function harnessCommand(
  { definition }: ShelvedHarness,
  { task }: ShelvedTask,
  facts: HarnessFacts,
): Pick<Command, "argv" | "environment"> {
  const values: Record<string, string> = {
    model_url: `http://127.0.0.1:${MODEL_PORT}/v1`,
    token: facts.token,
    model: facts.model,
    instruction: task.instruction,
    workspace: WORKSPACE,
  };
  const fill = (text: string) =>
    text.replace(/\{(model_url|token|model|instruction|workspace)\}/g, (_, key: string) => values[key]!);
  const environment = Object.entries(definition.environment).map(([name, value]) => [name, fill(value)]);
  return {
    argv: definition.argv.map(fill) as [string, ...string[]],
    environment: { ...BASE_ENVIRONMENT, ...task.environment.env, ...Object.fromEntries(environment) },
  };
}
