/**
 * Owns that a directory has one owner at a time: two starts of one run or one site would fight over its streams. The
 * owner is a process, told by its id and by when the system started it, so a number given to somebody else counts for
 * nothing and neither does a killed owner.
 *
 * O1  The record appears whole and only where there is none: it is linked into its place.
 * O2  A record whose process is gone is taken aside before it is removed; one that meanwhile belongs to a live process
 *     is put back.
 */
import { readFileSync } from "node:fs";
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";
import type { MortiseError } from "@mortise/contracts";
import { z } from "zod";

const Owner = z.object({
  pid: z.int().positive(),
  /** What the system says of when the process started; null where it cannot be asked. */
  birth: z.string().nullable(),
  /** ISO 8601. */
  since: z.string(),
  isReady: z.boolean(),
});

export type Owner = z.infer<typeof Owner>;

export interface Ownership {
  /** Whether an earlier owner had died without giving up; its processes may still be ending. */
  readonly hadDied: boolean;
  /** Says that everything is up. */
  markReady(): Promise<void>;
  release(): Promise<void>;
}

/** @param refuse the error for a directory whose owner is alive */
export async function takeOwnership(
  file: string,
  refuse: (owner: Owner) => MortiseError,
): Promise<Ownership> {
  const own: Owner = {
    pid: process.pid,
    birth: birthOf(process.pid) ?? null,
    since: new Date().toISOString(),
    isReady: false,
  };
  const staged = `${file}.${process.pid}`;
  await writeFile(staged, `${JSON.stringify(own)}\n`, { mode: 0o600 });
  try {
    const hadDied = await place(staged, file, refuse);
    return {
      hadDied,
      markReady: async () => {
        await writeFile(staged, `${JSON.stringify({ ...own, isReady: true })}\n`, { mode: 0o600 });
        await rename(staged, file);
      },
      release: () => rm(file, { force: true }),
    };
  } finally {
    await rm(staged, { force: true });
  }
}

/** The owner's record and whether that process lives; undefined when there is none. */
export async function readOwner(
  file: string,
): Promise<{ readonly owner: Owner; readonly isRunning: boolean } | undefined> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  if (text === undefined) return undefined;
  const owner = parse(text);
  return owner === undefined ? undefined : { owner, isRunning: isRunning(owner) };
}

async function place(staged: string, file: string, refuse: (owner: Owner) => MortiseError): Promise<boolean> {
  let hadDied = false;
  for (;;) {
    try {
      await link(staged, file); // O1
      return hadDied;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const found = await readOwner(file);
    if (found?.isRunning) throw refuse(found.owner);
    hadDied = true;
    await removeDead(file, refuse);
  }
}

/** O2 */
async function removeDead(file: string, refuse: (owner: Owner) => MortiseError): Promise<void> {
  const aside = `${file}.${process.pid}.dead`;
  try {
    await rename(file, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  const taken = await readOwner(aside);
  if (taken?.isRunning) {
    await link(aside, file).catch(() => {});
    await rm(aside, { force: true });
    throw refuse(taken.owner);
  }
  await rm(aside, { force: true });
}

/** Undefined for what nobody of ours wrote whole: it owns nothing. */
function parse(text: string): Owner | undefined {
  try {
    return Owner.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function isRunning({ pid, birth }: Owner): boolean {
  if (birth !== null) return birthOf(pid) === birth;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Boot and clock ticks since it, by which a process differs from a later one of the same number. Linux only. */
function birthOf(pid: number): string | undefined {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // Behind the name, which may hold anything, the third field comes first; the start time is the 22nd.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? undefined : `${boot} ${fields[19]}`;
  } catch {
    return undefined;
  }
}
