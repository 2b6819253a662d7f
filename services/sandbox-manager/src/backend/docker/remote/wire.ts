/**
 * Owns what manager and helper say to each other: operations by name, each with its facts and possibly bytes, over one
 * HTTP/2 session that runs through the standard streams of the helper's container. The manager asks; the helper tells
 * of connections made inside sandboxes on one stream that stays open, and each is then fetched by a stream of its own.
 */
import type { Readable } from "node:stream";
import { ERROR_CATALOGUE, MortiseError, type MortiseErrorInit } from "@mortise/contracts";
import type { SealReport, SealRequest } from "../../../sealing/types.js";
import type { Network, NetworkProof, SandboxUser, Usage } from "../../types.js";
import type { Look, Shown, StartedContainer } from "../host/types.js";

interface OfSandbox {
  readonly id: string;
}

/** By name: what is asked and what is answered. Bytes, where there are any, come after the facts. */
export interface Operations {
  hello: [
    /** `resolves`: the manager looks names up, and sends what they stand for along. */
    { readonly privateHosts: readonly string[]; readonly resolves: boolean },
    { readonly problem?: string },
  ];
  /** Where files that are to be shown go; absent when they are there. */
  receive: [{ readonly name: string }, { readonly incoming?: string }];
  received: [{ readonly name: string; readonly incoming: string }, object];
  open: [OfSandbox, { readonly shown: readonly Shown[] }];
  adopt: [OfSandbox & { readonly started: StartedContainer } & NetworkAsked, object];
  close: [OfSandbox, object];
  usage: [OfSandbox, Usage];
  denied: [OfSandbox, { readonly n: number }];
  look: [OfSandbox & { readonly pid?: number }, Look];
  kill: [OfSandbox & { readonly root?: number; readonly isAlone: boolean }, object];
  setNetwork: [OfSandbox & NetworkAsked, object];
  proveNetwork: [OfSandbox, NetworkProof];
  closeNetwork: [OfSandbox, object];
  /** Bytes: the archive. */
  putTar: [OfSandbox & { readonly directory: string; readonly owner: SandboxUser }, object];
  /** Answered with bytes: the archive. */
  getTar: [OfSandbox & { readonly directory: string }, object];
  addAgentAccount: [OfSandbox, object];
  seal: [OfSandbox & { readonly order: Pick<SealRequest, "workdir" | "answers"> }, SealReport];
  /** Bytes: the patch, encoded. */
  apply: [OfSandbox & { readonly workdir: string }, object];
}

export interface NetworkAsked {
  /** Without the listener key: who speaks for whom to the proxy, only the manager says. */
  readonly network: Network;
  /** IPv4 addresses of the names of an allow-list, where the manager resolves. */
  readonly addresses?: Readonly<Record<string, readonly string[]>>;
}

export type Operation = keyof Operations;
export type Asked<Name extends Operation> = Operations[Name][0];
export type Answered<Name extends Operation> = Operations[Name][1];

/** A line of the stream that tells of connections. */
export interface ConnectionMade {
  readonly connection: number;
  /** Of the sandbox it was made in. */
  readonly id: string;
}

/** Paths besides those of operations, which are `/<name>`. */
export const CONNECTIONS_PATH = "/connections";
export const connectionPath = (connection: number) => `${CONNECTIONS_PATH}/${connection}`;

export interface Frame {
  readonly facts: unknown;
  readonly bytes: Uint8Array;
}

const LENGTH_BYTES = 4;
const NO_BYTES = new Uint8Array(0);

/** Length of the facts (big endian), the facts as JSON, the bytes. */
export function encodeFrame(facts: unknown, bytes: Uint8Array = NO_BYTES): Buffer {
  const json = Buffer.from(JSON.stringify(facts));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(json.byteLength);
  return Buffer.concat([length, json, bytes]);
}

export function decodeFrame(frame: Buffer): Frame {
  const end = LENGTH_BYTES + frame.readUInt32BE(0);
  return { facts: JSON.parse(frame.toString("utf8", LENGTH_BYTES, end)), bytes: frame.subarray(end) };
}

/** Everything a stream has. Rejects when it ends before its end. */
export async function readAll(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** An error as facts. */
export type ToldError = MortiseErrorInit | { readonly code?: undefined; readonly message: string };

export function toldError(error: unknown): ToldError {
  if (!(error instanceof MortiseError)) return { message: (error as Error).message };
  const { code, fix, detail } = error;
  // The constructor puts the meaning in front, on the other side too.
  const message = error.message.slice(ERROR_CATALOGUE[code].meaning.length + 1);
  return { code, fix, message, ...(detail === undefined ? {} : { detail }) };
}

export function heardError(told: ToldError): Error {
  return told.code === undefined ? new Error(told.message) : new MortiseError(told);
}
