/**
 * Owns running the host's own git. Does not know what it is run for.
 *
 * G1  The program is named by an absolute path of the host; nothing of a root filesystem is executed.
 * G2  A git directory it works in was made here. Configuration, hooks, references and alternates of an image are never
 *     read by it: only objects, index files and the files of a working tree are, as data.
 * G3  Its environment is made here, whole: no configuration of user or system, no prompt, no transport, no lazy fetch.
 */
import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { pipeline } from "node:stream/promises";
import { sealFailed } from "../seal-errors.js";

const PLACES = ["/usr/bin/git", "/usr/local/bin/git", "/bin/git"];
/** `ls-files --sparse`. */
const OLDEST = [2, 35] as const;
const MAX_STDERR_BYTES = 4096;

/** Options that hold even where a configuration file says otherwise. */
const FIXED = [
  ["core.fsmonitor", ""],
  ["core.hooksPath", "/dev/null"],
  ["core.attributesFile", "/dev/null"],
  ["core.excludesFile", "/dev/null"],
  ["core.logAllRefUpdates", "false"],
  ["core.protectNTFS", "false"],
  ["core.protectHFS", "false"],
  ["core.untrackedCache", "false"],
  ["protocol.allow", "never"],
  ["gc.auto", "0"],
  ["safe.directory", "*"],
].flatMap(([key, value]) => ["-c", `${key}=${value}`]);

export interface GitCall {
  /** Made by us (G2); also the working directory of the process. */
  readonly gitDirectory: string;
  readonly argv: readonly string[];
  readonly workTree?: string;
  readonly indexFile?: string;
  readonly input?: AsyncIterable<Uint8Array> | Uint8Array;
  /** Takes the output as it comes; without it, the output is returned. */
  readonly onOutput?: (chunk: Buffer) => void;
}

export class HostGit {
  readonly program: string;

  private constructor(program: string) {
    this.program = program;
  }

  /** @throws MORTISE_SANDBOX_SEAL when there is no git, or only one that is too old */
  static async find(configured: string | undefined): Promise<HostGit> {
    const program = (configured === undefined ? PLACES : [configured]).find(isExecutable);
    const fix = `Install git ${OLDEST.join(".")} or newer on this host.`;
    if (program === undefined || !program.startsWith("/"))
      throw sealFailed(`git is needed to hide history and is not at ${configured ?? PLACES.join(", ")}`, {
        fix,
      });
    const git = new HostGit(program);
    const version = (await git.run({ gitDirectory: "/", argv: ["--version"] })).toString("latin1");
    const [major = 0, minor = 0] = [.../(\d+)\.(\d+)/.exec(version)!.slice(1)].map(Number);
    if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]))
      throw sealFailed(`${program} is ${version.trim()}, too old`, { fix });
    return git;
  }

  /** @returns standard output; @throws MORTISE_SANDBOX_SEAL with git's own words when it fails */
  async run(call: GitCall): Promise<Buffer> {
    const child = spawn(this.program, [...FIXED, ...call.argv], {
      cwd: call.gitDirectory,
      env: environmentOf(call),
      stdio: ["pipe", "pipe", "pipe"],
    });
    const output: Buffer[] = [];
    child.stdout.on("data", call.onOutput ?? ((chunk: Buffer) => output.push(chunk)));
    let complaint = "";
    child.stderr.on("data", (chunk: Buffer) => {
      complaint = (complaint + chunk.toString("latin1")).slice(0, MAX_STDERR_BYTES);
    });
    const ended = new Promise<string | undefined>((resolve) => {
      child.on("error", (error) => resolve(error.message));
      child.on("close", (code, signal) =>
        resolve(code === 0 ? undefined : `it ended with ${code ?? signal}`),
      );
    });
    const fed = feed(child.stdin, call.input);
    const failure = await ended;
    const inputFailure = await fed;
    if (failure === undefined && inputFailure === undefined) return Buffer.concat(output);
    throw sealFailed(`git ${call.argv[0]}: ${failure ?? "its input broke off"}: ${complaint.trim()}`, {
      cause: inputFailure,
    });
  }
}

function isExecutable(program: string): boolean {
  try {
    accessSync(program, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** A program that ends early closes its input; its exit status says why, so the broken pipe is not the news. */
async function feed(stdin: NodeJS.WritableStream, input: GitCall["input"]): Promise<unknown> {
  try {
    await pipeline(input instanceof Uint8Array ? [input] : (input ?? []), stdin);
    return undefined;
  } catch (error) {
    return error;
  }
}

function environmentOf({ gitDirectory, workTree, indexFile }: GitCall): NodeJS.ProcessEnv {
  return {
    PATH: "/usr/bin:/bin",
    LC_ALL: "C",
    TZ: "UTC",
    HOME: "/nonexistent",
    XDG_CONFIG_HOME: "/nonexistent",
    GIT_DIR: gitDirectory,
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_ATTR_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_NO_REPLACE_OBJECTS: "1",
    GIT_NO_LAZY_FETCH: "1",
    GIT_ALLOW_PROTOCOL: "none",
    ...(workTree !== undefined && { GIT_WORK_TREE: workTree }),
    ...(indexFile !== undefined && { GIT_INDEX_FILE: indexFile }),
  };
}
