/**
 * Owns the rules that lead connections to allowed addresses, on any port, to one listener inside the same namespace.
 * They are written by `nft`, started inside that namespace, and read back: what the kernel says it holds counts, not
 * that the program was content. Closes nothing: what is not led here has no route (see sandbox-network.ts).
 */
import { MortiseError } from "@mortise/contracts";
import { launch } from "../runc/launch.js";
import { withinNetworkNamespace } from "../runc/syscalls.js";

const TABLE = "mortise";
const ENVIRONMENT = { PATH: process.env.PATH ?? "/usr/sbin:/usr/bin:/sbin:/bin" };

export interface Steering {
  /** IPv4, at least one. */
  readonly addresses: readonly string[];
  /** Of a transparent listener on 127.0.0.1. */
  readonly port: number;
}

/** Whether this host has the program; without it an allow-list is refused. */
export async function isSteeringAvailable(): Promise<boolean> {
  return (await nft(["--version"]).catch(() => undefined))?.code === 0;
}

/** Replaces earlier rules in one transaction. Rejects with MORTISE_SANDBOX_NETWORK unless they are in force. */
export async function steer(namespaceFd: number, steering: Steering): Promise<void> {
  const { code, errors } = await nftWithin(namespaceFd, ["-f", "-"], rulesOf(steering));
  if (code !== 0) throw notInForce(`nft: ${errors.trim().slice(0, 300)}`);
  const listed = await nftWithin(namespaceFd, ["-j", "list", "ruleset"]);
  if (!isInForce(listed.output, steering))
    throw notInForce("the rules read back are not the ones that were set");
}

/** Removes them. */
export async function stopSteering(namespaceFd: number): Promise<void> {
  const { code, errors } = await nftWithin(
    namespaceFd,
    ["-f", "-"],
    `add table ip ${TABLE}\ndelete table ip ${TABLE}\n`,
  );
  if (code !== 0) throw notInForce(`nft: ${errors.trim().slice(0, 300)}`);
}

/** TPROXY keeps the address a connection was made to: the listener reads it as its own. */
function rulesOf({ addresses, port }: Steering): string {
  return `add table ip ${TABLE}
delete table ip ${TABLE}
table ip ${TABLE} {
  set allowed { type ipv4_addr; elements = { ${addresses.join(", ")} } }
  chain steer {
    type filter hook prerouting priority -150; policy accept;
    ip daddr @allowed meta l4proto tcp tproxy to 127.0.0.1:${port}
  }
}
`;
}

interface Listed {
  readonly elem?: readonly string[];
  readonly hook?: string;
  readonly policy?: string;
  readonly expr?: readonly object[];
}

/** Whether a listing holds exactly our set, chain and rule, and nothing beside them. */
export function isInForce(listing: string, { addresses, port }: Steering): boolean {
  const { nftables: objects } = JSON.parse(listing) as { nftables: readonly Record<string, Listed>[] };
  const ofKind = (kind: string) => objects.flatMap((object) => object[kind] ?? []);
  const [set, chain, rule] = ["set", "chain", "rule"].map((kind) => ofKind(kind)[0]);
  return (
    ["table", "set", "chain", "rule"].every((kind) => ofKind(kind).length === 1) &&
    JSON.stringify([...(set?.elem ?? [])].sort()) === JSON.stringify([...addresses].sort()) &&
    chain?.hook === "prerouting" &&
    chain.policy === "accept" &&
    JSON.stringify(rule?.expr) === JSON.stringify(expressionsOf(port))
  );
}

function expressionsOf(port: number): object[] {
  return [
    { match: { op: "==", left: { payload: { protocol: "ip", field: "daddr" } }, right: "@allowed" } },
    { match: { op: "==", left: { meta: { key: "l4proto" } }, right: "tcp" } },
    { tproxy: { addr: "127.0.0.1", port } },
  ];
}

interface Ran {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

async function nftWithin(namespaceFd: number, argv: readonly string[], stdin = ""): Promise<Ran> {
  try {
    return await nft(argv, stdin, namespaceFd);
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_SANDBOX_NETWORK",
      message: `an allow-list needs the program nft: ${(cause as Error).message}`,
      fix: "Install nftables on this host, or run only tasks without allowed_hosts.",
      cause,
    });
  }
}

/** A child belongs to the namespace of the thread that starts it, whatever that thread does afterwards. */
async function nft(argv: readonly string[], stdin = "", namespaceFd?: number): Promise<Ran> {
  const [output, errors]: [Buffer[], Buffer[]] = [[], []];
  const start = () =>
    launch({
      argv: ["nft", ...argv],
      environment: ENVIRONMENT,
      stdin: stdin === "" ? undefined : Buffer.from(stdin),
      onStdout: (chunk) => output.push(Buffer.from(chunk)),
      onStderr: (chunk) => errors.push(Buffer.from(chunk)),
    });
  const child = namespaceFd === undefined ? start() : withinNetworkNamespace(namespaceFd, start);
  const { code } = await child.exit;
  return { code, output: Buffer.concat(output).toString(), errors: Buffer.concat(errors).toString() };
}

function notInForce(reason: string): MortiseError {
  return new MortiseError({ code: "MORTISE_SANDBOX_NETWORK", message: `allow-list: ${reason}` });
}
