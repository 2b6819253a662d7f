/**
 * Owns the question whether an image can run a harness: asked from inside, by a program that needs nothing of the
 * image, once per image and harness. Does not change the image: what it lacks is said, not installed.
 */
import { MortiseError } from "@mortise/contracts";
import { compareVersions, type ElfNeeds, TOOLBOX, type Version } from "@mortise/harness";
import type { Sandbox } from "../backend/types.js";

const PROBE_TIMEOUT_MS = 30_000;
const SHOWN_BYTES = 400;

/** What a harness wants of an image. */
export interface Wants {
  /** Name and version, for the reason of a refusal. */
  readonly harness: string;
  /** What its native programs need, by their file name. */
  readonly binaries: ReadonlyMap<string, ElfNeeds>;
  /** Programs that must be on PATH there. */
  readonly programs: readonly string[];
  /** PATH of that place. */
  readonly path: string;
}

/** What the probe says. */
export interface Place {
  readonly musl: boolean;
  readonly glibc: string | null;
  /** Of the paths and programs asked about. */
  readonly missing: readonly string[];
}

/** @throws MortiseError MORTISE_HARNESS_UNFIT, MORTISE_SANDBOX_SETUP when the probe itself does not run */
export async function requireFit(sandbox: Pick<Sandbox, "exec">, wants: Wants): Promise<void> {
  const asked = [...new Set([...[...wants.binaries.values()].flatMap(filesOf), ...wants.programs])];
  if (asked.length === 0) return;
  const problem = unfitness(wants, await probe(sandbox, asked, wants.path));
  if (problem === undefined) return;
  throw new MortiseError({
    code: "MORTISE_HARNESS_UNFIT",
    message: `${wants.harness} cannot run in this image: ${problem}`,
    detail: { field: "environment.docker_image" },
  });
}

/** What must be there for it to start. */
function filesOf({ loader, libraries }: ElfNeeds): string[] {
  return loader === undefined ? [] : [loader, ...libraries];
}

/** The first reason why it cannot run; undefined when it can. */
export function unfitness(wants: Wants, place: Place): string | undefined {
  for (const [name, { loader, glibc, libraries }] of wants.binaries) {
    if (loader === undefined) continue;
    if (place.missing.includes(loader))
      return `${name} is started by ${loader}, which the image does not have; it has ${libraryOf(place)}`;
    const present = versionOf(place.glibc);
    if (glibc !== undefined && present !== undefined && compareVersions(present, glibc) < 0)
      return `${name} needs glibc ${glibc.join(".")}; the image has ${place.glibc}`;
    const lacking = libraries.filter((library) => place.missing.includes(library));
    if (lacking.length > 0) return `${name} loads ${lacking.join(", ")}, which the image does not have`;
  }
  const lacking = wants.programs.filter((program) => place.missing.includes(program));
  return lacking.length === 0
    ? undefined
    : `neither the image nor this host has ${lacking.join(", ")}, which its tools call`;
}

function libraryOf({ glibc, musl }: Place): string {
  if (glibc !== null) return `glibc ${glibc}`;
  return musl ? "musl" : "no C library";
}

function versionOf(text: string | null): Version | undefined {
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(text ?? "") ?? [];
  return major === undefined ? undefined : [Number(major), Number(minor)];
}

async function probe(sandbox: Pick<Sandbox, "exec">, names: readonly string[], path: string): Promise<Place> {
  const { outcome, stdout, stderr } = await sandbox.exec({
    argv: [TOOLBOX.node, TOOLBOX.probe, ...names],
    environment: { PATH: path },
    cwd: "/",
    timeoutMs: PROBE_TIMEOUT_MS,
  });
  if (outcome.kind === "exited" && outcome.code === 0)
    return JSON.parse(Buffer.from(stdout.bytes).toString());
  const said = Buffer.from(stderr.bytes.subarray(-SHOWN_BYTES)).toString("utf8");
  throw new MortiseError({
    code: "MORTISE_SANDBOX_SETUP",
    message: `the image could not be asked what it has: ${JSON.stringify(outcome)} ${said}`,
  });
}
