/**
 * Owns who may talk to whom in one run: a random NATS user and password for every service with the permissions
 * of its row in the contracts, one bearer for gRPC, and the files that hold them.
 * Does not decide the permissions (contracts) and does not start the server.
 *
 * I1  Secrets are born in this process and live in files of mode 0600 in a directory of mode 0700.
 * I2  A file appears whole: it is written beside its place and renamed.
 */
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type BusUser,
  type Identity,
  type Permissions,
  permissionsOf,
  SERVICE_NAMES,
} from "@mortise/contracts";
import { randomToken } from "@mortise/kernel";

export const BUS_USERS: readonly BusUser[] = [...SERVICE_NAMES, "admin", "observer"];

export type Identities = ReadonlyMap<BusUser, Identity>;

/** Fresh identities: every user its own password, all services one bearer. */
export function createIdentities(): Identities {
  const bearer = randomToken();
  return new Map(BUS_USERS.map((user) => [user, { user, password: randomToken(), bearer }]));
}

/**
 * The operator's own server has its own users: every service uses the credentials in the address. A server that
 * asks for none accepts any; one that does says so at the first connection.
 */
export function identitiesFromUrl(url: string): Identities {
  const { username, password } = new URL(url.includes("://") ? url : `nats://${url}`);
  const user = username === "" ? "mortise" : decodeURIComponent(username);
  const given = {
    user,
    password: password === "" ? randomToken() : decodeURIComponent(password),
    bearer: randomToken(),
  };
  return new Map(BUS_USERS.map((name) => [name, given]));
}

/** Writes `<directory>/<user>.json` for each. */
export async function writeIdentities(directory: string, identities: Identities): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 }); // I1
  for (const [user, identity] of identities) {
    await writePrivate(join(directory, `${user}.json`), `${JSON.stringify(identity)}\n`);
  }
}

export async function readIdentity(directory: string, user: BusUser): Promise<Identity> {
  return JSON.parse(await readFile(join(directory, `${user}.json`), "utf8")) as Identity;
}

/** All identities of an earlier start of the run, or undefined when there was none. */
export async function readIdentities(directory: string): Promise<Identities | undefined> {
  if (!BUS_USERS.every((user) => existsSync(join(directory, `${user}.json`)))) return undefined;
  const entries = BUS_USERS.map(async (user) => [user, await readIdentity(directory, user)] as const);
  return new Map(await Promise.all(entries));
}

export interface ServerSettings {
  readonly storeDirectory: string;
  /** Address to listen on; loopback when absent. */
  readonly host?: string;
  /** -1 lets the server take a free port, which it then writes into `portsDirectory`. */
  readonly port: number;
  readonly portsDirectory?: string;
  /** Port on loopback that tells the server's health; none when absent. */
  readonly monitoringPort?: number;
  readonly identities: Identities;
}

/**
 * The configuration of a nats-server: loopback unless another address is given, every user with exactly its
 * permissions and nobody else, every write on disk before it is acknowledged.
 */
export function natsServerConfig(settings: ServerSettings): string {
  const { host = "127.0.0.1", portsDirectory, monitoringPort } = settings;
  return `${[
    `listen: ${quote(`${host}:${settings.port}`)}`,
    ...(portsDirectory === undefined ? [] : [`ports_file_dir: ${quote(portsDirectory)}`]),
    ...(monitoringPort === undefined ? [] : [`http: "127.0.0.1:${monitoringPort}"`]),
    "max_payload: 8MB",
    "jetstream {",
    `  store_dir: ${quote(settings.storeDirectory)}`,
    // The streams' limits are reserved when they are created, whatever is free on the disk: the quick start
    // checks free space itself, and a full disk refuses publishers.
    "  max_file_store: 64GB",
    "  max_memory_store: 64MB",
    // The default is two minutes of acknowledged writes lost with the power.
    "  sync_interval: always",
    "}",
    "authorization {",
    natsUsers(settings.identities),
    "}",
  ].join("\n")}\n`;
}

/** What stands inside `authorization { }`: every user with exactly its permissions. */
export function natsUsers(identities: Identities): string {
  const users = [...identities].map(([user, identity]) => userBlock(identity, permissionsOf(user)));
  return ["  users: [", ...users, "  ]"].join("\n");
}

function userBlock({ user, password }: Identity, { publish, subscribe }: Permissions): string {
  const list = (subjects: readonly string[]) => `[${subjects.map(quote).join(", ")}]`;
  const permissions = `{ publish: ${list(publish)}, subscribe: ${list(subscribe)} }`;
  return `    { user: ${quote(user)}, password: ${quote(password)}, permissions: ${permissions} }`;
}

const quote = (text: string): string => JSON.stringify(text);

/** Writes a file that only its owner can read. */
export async function writePrivate(file: string, content: string): Promise<void> {
  const staged = `${file}.${process.pid}`;
  await writeFile(staged, content, { mode: 0o600 });
  await rename(staged, file); // I2
}
