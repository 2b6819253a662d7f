/** Owns what a source of the nats-server binary is: a name, and a way to put the binary into a directory. */

export interface Source {
  readonly name: string;
  /** Puts a binary below `directory` and returns its path. Rejects with the reason when it cannot. */
  obtain(directory: string): Promise<string>;
}
