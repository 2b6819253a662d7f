/**
 * Owns the home a harness finds in a sandbox: fresh, with its files in it, and the property of whoever runs there.
 * Does not know what the files say.
 */
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import { type LaunchFile, TOOLBOX } from "@mortise/harness";
import type { Sandbox } from "../backend/types.js";
import { packTar, type TarMember } from "../patch/tar.js";
import { HARNESS_HOME, ROOT_HOME } from "./places.js";

const COPY_TIMEOUT_MS = 30_000;
const SHOWN_BYTES = 400;
const COPY = 'require("node:fs").cpSync(process.argv[1], process.argv[2], { recursive: true })';

/**
 * Makes the home and writes the files. Those put into a sandbox belong to the agent's usual user; root, who has no
 * capability to write past an owner, makes a copy of its own.
 * @throws MortiseError MORTISE_SANDBOX_SETUP
 */
export async function makeHome(
  sandbox: Pick<Sandbox, "exec" | "putTar">,
  home: string,
  files: readonly LaunchFile[],
): Promise<void> {
  if (home !== ROOT_HOME) {
    await sandbox.putTar("/", await packTar(members(home, files)));
    return;
  }
  const moved = files.map(({ path: name, content }) => ({
    path: path.posix.join(HARNESS_HOME, path.posix.relative(home, name)),
    content,
  }));
  await sandbox.putTar("/", await packTar(members(HARNESS_HOME, moved)));
  await copyAsRoot(sandbox, HARNESS_HOME, home);
}

/** The home itself first, so that it is there and its owner's also when no file lies in it. */
function members(home: string, files: readonly LaunchFile[]): TarMember[] {
  const relative = (absolute: string) => path.posix.relative("/", absolute);
  return [
    { name: relative(home), kind: "directory", mode: 0o755 },
    ...files.map((file) => ({
      name: relative(file.path),
      kind: "file" as const,
      mode: 0o644,
      content: Buffer.from(file.content),
    })),
  ];
}

async function copyAsRoot(sandbox: Pick<Sandbox, "exec">, from: string, to: string): Promise<void> {
  const { outcome, stderr } = await sandbox.exec({
    argv: [TOOLBOX.node, "-e", COPY, from, to],
    environment: {},
    cwd: "/",
    user: "root",
    timeoutMs: COPY_TIMEOUT_MS,
  });
  if (outcome.kind === "exited" && outcome.code === 0) return;
  const said = Buffer.from(stderr.bytes.subarray(-SHOWN_BYTES)).toString("utf8");
  throw new MortiseError({
    code: "MORTISE_SANDBOX_SETUP",
    message: `root got no home: ${JSON.stringify(outcome)} ${said}`,
  });
}
