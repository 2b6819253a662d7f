/**
 * Owns the reference implementation: the Python package `tokenizers` in an environment of its own in the user's
 * cache, asked for the ids of texts. Reports why it cannot be had.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const VERSION = "0.23.3";
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "mortise", "tokenizers");
const ENVIRONMENT = join(CACHE, `python-tokenizers-${VERSION}`);
const SCRIPT = fileURLToPath(new URL("./encode.py", import.meta.url));

/** The interpreter that has the package, or why there is none. */
export async function referencePython(): Promise<{ python: string } | string> {
  const python = join(ENVIRONMENT, "bin", "python3");
  try {
    if (!existsSync(join(ENVIRONMENT, "complete"))) {
      await rm(ENVIRONMENT, { recursive: true, force: true });
      await run("python3", ["-m", "venv", ENVIRONMENT]);
      await run(python, ["-m", "pip", "install", "--quiet", "--no-deps", `tokenizers==${VERSION}`]);
      // Asked for by the package at import, for its downloads; nothing is downloaded here.
      await run(python, ["-m", "pip", "install", "--quiet", "huggingface-hub"]);
      await run(python, ["-c", "import tokenizers"]);
      await writeFile(join(ENVIRONMENT, "complete"), VERSION);
    }
    return { python };
  } catch (error) {
    return `the reference is absent: ${(error as Error).message.split("\n")[0]}`;
  }
}

/** Ids of each text, without the tokens a post-processor adds. */
export async function referenceIds(python: string, tokenizerJson: string, texts: readonly string[]) {
  const directory = await mkdtemp(join(tmpdir(), "mortise-tokenizers-"));
  const file = (name: string) => join(directory, name);
  try {
    await writeFile(file("tokenizer.json"), tokenizerJson);
    await writeFile(file("texts.json"), JSON.stringify(texts));
    await run(python, [SCRIPT, file("tokenizer.json"), file("texts.json"), file("ids.json")]);
    return JSON.parse(await readFile(file("ids.json"), "utf8")) as number[][];
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
