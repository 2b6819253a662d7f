/**
 * Owns reading and writing a checkpoint as a Hugging Face directory: config.json, model.safetensors (or shards
 * with an index), tokenizer.json, tokenizer_config.json. Any such directory of a supported architecture opens,
 * and what is written here opens in other tools.
 * Does not own versions, retention or atomic publication (the trainer does).
 */
import { mkdir, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { type DecoderConfig, decoderConfigFromHf, hfFromDecoderConfig } from "../decoder-config.js";
import { ChatTemplate } from "../text/chat-template.js";
import { Tokenizer, type TokenizerFiles } from "../text/tokenizer.js";
import { readSafetensors, type Tensor, writeSafetensors } from "./safetensors.js";

/** What of a checkpoint turns conversations into ids and back. */
export interface CheckpointText {
  readonly tokenizerFiles: TokenizerFiles;
  readonly tokenizer: Tokenizer;
  readonly chatTemplate: ChatTemplate;
  /** Ids that end a turn: eos_token_id of generation_config.json and config.json, and the tokenizer's eos_token. */
  readonly eosIds: ReadonlySet<number>;
}

export interface Checkpoint extends CheckpointText {
  readonly directory: string;
  readonly config: DecoderConfig;
  /** config.json as it is in the directory. */
  readonly hfConfig: Readonly<Record<string, unknown>>;
  /** One safetensors file; shards are joined. */
  readonly weights: Uint8Array;
}

type Json = Readonly<Record<string, unknown>>;

function broken(
  directory: string,
  file: string,
  message: string,
  fix: string,
  cause?: unknown,
): MortiseError {
  return new MortiseError({
    code: "MORTISE_POLICY_CHECKPOINT",
    message: `${join(directory, file)}: ${message}`,
    fix,
    cause,
    detail: { directory, file },
  });
}

/** undefined when the file does not exist. */
async function readIfPresent(directory: string, file: string): Promise<Buffer | undefined> {
  try {
    return await readFile(join(directory, file));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw broken(directory, file, "cannot be read.", "Check the path and its permissions.", cause);
  }
}

async function readRequired(directory: string, file: string): Promise<Buffer> {
  const bytes = await readIfPresent(directory, file);
  if (bytes === undefined)
    throw broken(directory, file, "is missing.", `Add ${file} to the checkpoint directory.`);
  return bytes;
}

function parseJson(directory: string, file: string, text: string): Json {
  try {
    const json: unknown = JSON.parse(text);
    if (typeof json === "object" && json !== null && !Array.isArray(json)) return json as Json;
  } catch (cause) {
    throw broken(directory, file, "is not JSON.", `Correct ${file}.`, cause);
  }
  throw broken(directory, file, "is not a JSON object.", `Correct ${file}.`);
}

const INDEX_FILE = "model.safetensors.index.json";

/** Joins the shards that the index names; every tensor must be where the index says. */
async function readShards(directory: string, index: Json): Promise<Uint8Array> {
  const map = index.weight_map;
  if (typeof map !== "object" || map === null) {
    throw broken(
      directory,
      INDEX_FILE,
      "weight_map is missing.",
      "Restore the index of the sharded checkpoint.",
    );
  }
  const placements = Object.entries(map as Record<string, unknown>);
  const tensors: [string, Tensor][] = [];
  for (const shard of new Set(placements.map(([, file]) => file))) {
    if (typeof shard !== "string" || shard.includes("/") || shard.includes("\\")) {
      throw broken(
        directory,
        INDEX_FILE,
        `weight_map names ${JSON.stringify(shard)}.`,
        "Shards are files beside the index.",
      );
    }
    const file = readSafetensors(await readRequired(directory, shard), join(directory, shard));
    for (const [name, place] of placements) if (place === shard) tensors.push([name, file.read(name)]);
  }
  return writeSafetensors(tensors);
}

async function readWeights(directory: string): Promise<Uint8Array> {
  const single = await readIfPresent(directory, "model.safetensors");
  if (single !== undefined) return single;
  const index = await readIfPresent(directory, INDEX_FILE);
  if (index !== undefined)
    return readShards(directory, parseJson(directory, INDEX_FILE, index.toString("utf8")));
  throw broken(
    directory,
    "model.safetensors",
    "is missing.",
    `Add model.safetensors, or ${INDEX_FILE} with its shards.`,
  );
}

async function readTokenizerFiles(directory: string): Promise<TokenizerFiles> {
  const jinja = await readIfPresent(directory, "chat_template.jinja");
  return {
    tokenizerJson: (await readRequired(directory, "tokenizer.json")).toString("utf8"),
    tokenizerConfigJson: (await readRequired(directory, "tokenizer_config.json")).toString("utf8"),
    ...(jinja === undefined ? {} : { chatTemplateJinja: jinja.toString("utf8") }),
  };
}

function endIds(sources: readonly Json[], tokenizer: Tokenizer, tokenizerConfig: Json): Set<number> {
  const ids = new Set<number>();
  for (const source of sources) {
    for (const id of [source.eos_token_id].flat()) if (typeof id === "number") ids.add(id);
  }
  const eos = tokenizerConfig.eos_token;
  const text = typeof eos === "string" ? eos : (eos as { content?: string } | null | undefined)?.content;
  const id = text === undefined ? undefined : tokenizer.idOf(text);
  if (id !== undefined) ids.add(id);
  return ids;
}

async function readJsonIfPresent(directory: string, file: string): Promise<Json | undefined> {
  const bytes = await readIfPresent(directory, file);
  return bytes && parseJson(directory, file, bytes.toString("utf8"));
}

/**
 * Opens the tokenizer and chat template of a checkpoint; of config.json only what ends a turn, and it may be
 * missing, as may the weights. @throws MortiseError naming the file, the field and the fix.
 */
export async function openCheckpointText(
  directory: string,
): Promise<CheckpointText & { hfConfig: Json | undefined }> {
  const tokenizerFiles = await readTokenizerFiles(directory);
  const tokenizer = new Tokenizer(tokenizerFiles);
  const hfConfig = await readJsonIfPresent(directory, "config.json");
  const generationConfig = await readJsonIfPresent(directory, "generation_config.json");
  const tokenizerConfig = parseJson(directory, "tokenizer_config.json", tokenizerFiles.tokenizerConfigJson);
  return {
    tokenizerFiles,
    tokenizer,
    chatTemplate: new ChatTemplate(tokenizerFiles),
    eosIds: endIds([generationConfig ?? {}, hfConfig ?? {}], tokenizer, tokenizerConfig),
    hfConfig,
  };
}

/** Opens and validates a checkpoint. @throws MortiseError naming the file, the field and the fix. */
export async function openCheckpoint(directory: string): Promise<Checkpoint> {
  const hfConfig = parseJson(
    directory,
    "config.json",
    (await readRequired(directory, "config.json")).toString("utf8"),
  );
  const config = decoderConfigFromHf(hfConfig, join(directory, "config.json"));
  const text = await openCheckpointText(directory);
  const { tokenizer } = text;
  if (tokenizer.vocabSize > config.vocabSize) {
    throw broken(
      directory,
      "config.json",
      `vocab_size is ${config.vocabSize}, but tokenizer.json has ids up to ${tokenizer.vocabSize - 1}.`,
      "Use the tokenizer that belongs to these weights.",
    );
  }
  return { ...text, directory, config, hfConfig, weights: await readWeights(directory) };
}

export interface CheckpointContents {
  readonly config: DecoderConfig;
  /** Written as it is when given, so that fields unknown here survive; else derived from `config`. */
  readonly hfConfig?: Readonly<Record<string, unknown>>;
  readonly weights: Uint8Array;
  readonly tokenizerFiles: TokenizerFiles;
}

async function writeDurably(path: string, content: string | Uint8Array): Promise<void> {
  const file = await open(path, "w", 0o644);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Writes and fsyncs every file. The directory is created; making it visible atomically is the caller's rename. */
export async function writeCheckpoint(directory: string, contents: CheckpointContents): Promise<void> {
  await mkdir(directory, { recursive: true });
  const { tokenizerJson, tokenizerConfigJson, chatTemplateJinja } = contents.tokenizerFiles;
  const hfConfig = contents.hfConfig ?? hfFromDecoderConfig(contents.config);
  await writeDurably(join(directory, "config.json"), `${JSON.stringify(hfConfig, null, 2)}\n`);
  await writeDurably(join(directory, "tokenizer.json"), tokenizerJson);
  await writeDurably(join(directory, "tokenizer_config.json"), tokenizerConfigJson);
  if (chatTemplateJinja !== undefined)
    await writeDurably(join(directory, "chat_template.jinja"), chatTemplateJinja);
  await writeDurably(join(directory, "model.safetensors"), contents.weights);
}
