/** What tests ask of a runtime: the fixture task, as a site's manager would ask it. */
import path from "node:path";
import { INVOCATION_SCHEMA, type StartInvocation } from "@mortise/contracts";
import { packBelow, TreeStore } from "@mortise/sandbox-manager";

const REPOSITORY = path.join(
  import.meta.dirname,
  "../../../services/sandbox-manager/test/fixtures/tasks/add-numbers/environment/repository",
);

export const REPAIRED = "exports.add = (a, b) => a + b;\n";

let count = 0;

/** @param scratch directory the tree's digest is taken in */
export async function startRequest(
  scratch: string,
  model: { readonly address: string },
  changes: Partial<StartInvocation> = {},
): Promise<StartInvocation> {
  const { digest } = new TreeStore(path.join(scratch, "trees"), undefined).put({
    kind: "directory",
    directory: REPOSITORY,
  });
  const tar = Buffer.from(await packBelow(REPOSITORY, "/")).toString("base64");
  return {
    schema: INVOCATION_SCHEMA,
    kind: "start",
    id: `r1.trial-${++count}`,
    harness: "scripted",
    instruction: "Repair it.",
    model: { url: `http://${model.address}`, token: "the-session-token", name: "policy", listenerKey: "" },
    image: { kind: "host" },
    workspace: { kind: "tar", digest, tar },
    workdir: "/workspace",
    environment: { SETTING: "of-the-task" },
    user: "agent",
    secrets: [],
    limits: {
      timeoutMs: 60_000,
      cpus: 1,
      memoryBytes: 512 * 1024 * 1024,
      pids: 128,
      diskBytes: 64 * 1024 * 1024,
      outputBytes: 65_536,
      patchFileBytes: 1024 * 1024,
      patchBytes: 4 * 1024 * 1024,
    },
    ...changes,
  };
}
