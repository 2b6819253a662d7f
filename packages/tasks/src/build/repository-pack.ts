/**
 * Owns getting one commit of a repository as a pack of objects, without history, equal bytes for equal commits on
 * machines with the same git. Needs git on this host. Does not build.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { MortiseError } from "@mortise/contracts";

const run = promisify(execFile);
const MAX_PACK_BYTES = 1024 ** 3;
/** The other side is asked for a commit that may be no branch's tip. */
const UPLOAD_PACK = "git -c uploadpack.allowAnySHA1InWant=true -c safe.directory='*' upload-pack";

/**
 * @param repositories a directory with `owner/name`, `owner__name` (or with `.git`), or the start of a URL that goes on
 *   with `/owner/name.git`
 * @param into path of the pack. Rejects with MORTISE_TASK_SOURCE.
 */
export async function writeRepositoryPack(
  repositories: string,
  { repository, commit }: { repository: string; commit: string },
  into: string,
  signal?: AbortSignal,
): Promise<void> {
  const source = placeOf(repositories, repository);
  const scratch = await mkdtemp(join(tmpdir(), "mortise-repository-"));
  const git = (args: string[], input?: string) => gitIn(scratch, args, input, signal);
  try {
    await git(["init", "--quiet", "--bare"]);
    const isLocal = !/^[a-z]+:\/\//.test(source);
    const upload = isLocal ? [`--upload-pack=${UPLOAD_PACK}`] : [];
    const from = isLocal ? `file://${source}` : source;
    await git(["fetch", "--quiet", "--no-tags", "--depth=1", ...upload, from, commit]);
    const { stdout } = await git(["rev-list", "--objects", "--no-object-names", commit]);
    const objects = stdout.toString().trim().split("\n").sort().join("\n");
    const alike = ["--threads=1", "--window=0", "--depth=0", "--no-reuse-delta", "--no-reuse-object"];
    const pack = await git(["pack-objects", "--quiet", "--stdout", ...alike], `${objects}\n`);
    await writeFile(into, pack.stdout);
  } catch (cause) {
    if (signal?.aborted) throw signal.reason;
    const { stderr = "", message } = cause as Error & { stderr?: Buffer | string };
    throw new MortiseError({
      code: "MORTISE_TASK_SOURCE",
      message: `${repository} at ${commit} cannot be taken from ${source}: ${stderr.toString().trim() || message}`,
      fix: "Clone it with its history below the directory --repositories names, as owner/name, or correct that.",
      cause: cause as Error,
      detail: { field: "base_commit", source },
    });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function placeOf(repositories: string, repository: string): string {
  if (/^[a-z]+:\/\//.test(repositories)) return `${repositories.replace(/\/+$/, "")}/${repository}.git`;
  const names = [repository, repository.replace("/", "__")].flatMap((name) => [name, `${name}.git`]);
  const found = names.map((name) => join(repositories, name)).find((path) => existsSync(path));
  return found ?? join(repositories, repository);
}

/** Without the user's configuration, and asking nobody for a password. */
function gitIn(
  directory: string,
  args: string[],
  input: string | undefined,
  signal: AbortSignal | undefined,
) {
  const running = run("git", args, {
    cwd: directory,
    encoding: "buffer",
    maxBuffer: MAX_PACK_BYTES,
    env: {
      PATH: process.env.PATH,
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_TERMINAL_PROMPT: "0",
    },
    ...(signal === undefined ? {} : { signal }),
  });
  // One that ends without reading says why by its exit code.
  running.child.stdin?.on("error", () => undefined).end(input ?? "");
  return running;
}
