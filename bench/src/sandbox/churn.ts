/**
 * Measures what sandboxes leave behind: descriptors, mounts and control groups of this host before and after so many
 * of them, four at a time, each with a command, a change and a fork.
 */
import { readdirSync, readFileSync } from "node:fs";
import { rounded } from "../proxy/statistics.js";
import { run, type SandboxStand, timed } from "./stand.js";

const AT_ONCE = 4;

/** @param directory in which the backend keeps its state */
export async function measureChurn(
  stand: SandboxStand,
  directory: string,
  sandboxes: number,
): Promise<object> {
  await once(stand);
  const before = counts(directory);
  let left = sandboxes;
  const some = async (): Promise<void> => {
    while (left-- > 0) await once(stand);
  };
  const { ms } = await timed(() => Promise.all(Array.from({ length: AT_ONCE }, some)));
  return {
    sandboxes,
    atOnce: AT_ONCE,
    perSandboxMs: rounded(ms / sandboxes),
    before,
    after: counts(directory),
  };
}

async function once(stand: SandboxStand): Promise<void> {
  const template = await stand.create();
  await run(template, ["sh", "-c", "echo changed > new; rm -r src/module-3"]);
  const snapshot = await template.snapshot();
  const fork = await stand.create({ image: snapshot });
  await template.destroy();
  await snapshot.release();
  await run(fork, ["sh", "-c", "cat new > copy"]);
  await fork.quiesce();
  await fork.destroy();
}

/** Control groups of the whole host, those among them that are dead and still held: other work shows in it. */
function counts(directory: string) {
  const memoryGroups = /^memory\s+\S+\s+([0-9]+)/m.exec(textOf("/proc/cgroups"))?.[1];
  return {
    descriptors: readdirSync("/proc/self/fd").length,
    mounts: textOf("/proc/self/mountinfo")
      .split("\n")
      .filter((line) => line.includes(directory)).length,
    memoryControlGroupsOfHost: memoryGroups === undefined ? undefined : Number(memoryGroups),
    residentMiB: rounded(process.memoryUsage.rss() / 2 ** 20, 0),
  };
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
