/**
 * Owns bringing directories of this host to the engine's, once each, so that it can show them to sandboxes. What was
 * brought stays until the manager ends; a directory may change once no sandbox uses it, and is then another.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { lstat, readdir, readlink } from "node:fs/promises";
import path from "node:path";
import type { Readable } from "node:stream";
import { MortiseError } from "@mortise/contracts";
import { sha256 } from "../../../patch/patch.js";
import { sourceDirectory } from "../../mount-source.js";
import type { Mount } from "../../types.js";

export interface DeliveryMeans {
  /** Where to put it at the engine's host; undefined when it is there under this name. */
  readonly receive: (name: string) => Promise<string | undefined>;
  readonly put: (archive: Readable, directory: string) => Promise<void>;
  readonly received: (name: string, incoming: string) => Promise<void>;
}

interface Used {
  readonly name: Promise<string>;
  readonly users: Set<string>;
}

export class Delivery {
  readonly #means: DeliveryMeans;
  readonly #used = new Map<string, Used>();
  readonly #flights = new Map<string, Promise<void>>();

  constructor(means: DeliveryMeans) {
    this.#means = means;
  }

  /**
   * The name it has there. Rejects with MORTISE_SANDBOX_SETUP.
   * @param user until `release` of it the directory is taken not to change
   */
  async bring(mount: Mount, user: string): Promise<string> {
    const directory = sourceDirectory(mount);
    let used = this.#used.get(directory);
    if (used === undefined) {
      const { source } = mount;
      const name = typeof source === "string" ? nameOf(directory) : Promise.resolve(source.digest);
      used = { name, users: new Set() };
      this.#used.set(directory, used);
      name.catch(() => this.#used.delete(directory));
    }
    used.users.add(user);
    const name = await used.name;
    const known = this.#flights.get(name) ?? this.#deliver(name, directory);
    this.#flights.set(name, known);
    known.catch(() => this.#flights.delete(name));
    await known;
    return name;
  }

  release(user: string): void {
    for (const [directory, { users }] of this.#used) {
      users.delete(user);
      if (users.size === 0) this.#used.delete(directory);
    }
  }

  async #deliver(name: string, directory: string): Promise<void> {
    const incoming = await this.#means.receive(name);
    if (incoming === undefined) return;
    const tar = spawn("tar", ["-C", directory, "--numeric-owner", "-c", "."], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let words = "";
    tar.stderr.on("data", (chunk: Buffer) => {
      words = (words + chunk.toString()).slice(-500);
    });
    const exited = once(tar, "exit");
    try {
      await this.#means.put(tar.stdout, incoming);
      const [code] = await exited;
      if (code !== 0) throw new Error(`tar ended with ${code}: ${words.trim()}`);
    } catch (cause) {
      tar.kill();
      throw new MortiseError({
        code: "MORTISE_SANDBOX_SETUP",
        message: `${directory} could not be brought to the Docker engine: ${(cause as Error).message}`,
        cause,
      });
    }
    await this.#means.received(name, incoming);
  }
}

/** From what can be known of its files without reading them: whoever replaces one changes its time or its inode. */
async function nameOf(directory: string): Promise<string> {
  const lines: string[] = [directory];
  const walk = async (relative: string): Promise<void> => {
    const names = (await readdir(path.join(directory, relative))).sort();
    for (const name of names) {
      const leaf = path.join(relative, name);
      const stat = await lstat(path.join(directory, leaf), { bigint: true });
      const target = stat.isSymbolicLink() ? await readlink(path.join(directory, leaf)) : "";
      lines.push([leaf, stat.mode, stat.size, stat.mtimeNs, stat.ino, target].join("\0"));
      if (stat.isDirectory()) await walk(leaf);
    }
  };
  await walk("");
  return sha256(lines.join("\n"));
}
