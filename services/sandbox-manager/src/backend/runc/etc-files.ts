/**
 * Owns the two files every sandbox finds below /etc whatever its image says: names that mean something in its
 * network, and that there is no resolver. They lie outside its root and are mounted read-only, so that they can
 * change while commands run and are no part of its files.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";

/** Docker's own hosts files say the same, and programs look their own host name up. */
export const HOST_NAME = "sandbox";
/** /etc/hosts where nothing else has a name. */
export const EMPTY_HOSTS = `127.0.0.1\tlocalhost ${HOST_NAME}\n::1\tlocalhost ip6-localhost ip6-loopback\n`;
const NO_RESOLVER = "# There is no resolver here: names are in /etc/hosts.\n";

/** A name and the IPv4 addresses it stands for. */
export interface KnownHost {
  readonly name: string;
  readonly addresses: readonly string[];
}

export class EtcFiles {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { mode: 0o755 });
    writeFileSync(path.join(directory, "resolv.conf"), NO_RESOLVER);
    this.setHosts([]);
  }

  /** Written in place: the file is what commands have mounted. */
  setHosts(known: readonly KnownHost[]): void {
    const lines = known.flatMap(({ name, addresses }) => addresses.map((address) => `${address}\t${name}\n`));
    writeFileSync(path.join(this.#directory, "hosts"), EMPTY_HOSTS + lines.join(""));
  }

  /** Host file and path inside. */
  get mounts(): readonly { readonly source: string; readonly target: string }[] {
    return ["hosts", "resolv.conf"].map((name) => ({
      source: path.join(this.#directory, name),
      target: `/etc/${name}`,
    }));
  }
}
