/**
 * Owns the script file of the scripted engine: JSON lines, the first a header, each further one a reply and
 * the requests it answers. docs/engines.md describes the format. Does not play anything.
 */
import { MortiseError } from "@mortise/contracts";
import { parseStrict } from "@mortise/kernel";
import type { Tokenizer } from "@mortise/policy";
import { z } from "zod";
import { readJsonLines } from "../json-lines.js";
import type { GenerateRequest } from "../types.js";
import type { ChooseReply, ScriptedReply } from "./scripted-engine.js";

const ms = z.number().min(0);
const id = z.int().min(0);

const Header = z.strictObject({ format: z.literal("mortise.engine-script"), schema: z.literal(1) });

const Line = z
  .strictObject({
    when: z
      .strictObject({
        turn: z.int().min(0).optional(),
        affinity: z.string().optional(),
        contains: z.string().min(1).optional(),
      })
      .default({}),
    times: z.union([z.int().min(1), z.literal("always")]).default(1),
    text: z.string().optional(),
    ids: z.array(id).optional(),
    logProbabilities: z.array(z.number().max(0)).nullable().optional(),
    firstTokenMs: ms.default(0),
    tokenMs: ms.default(0),
    failAfter: z.int().min(0).optional(),
  })
  .refine((line) => (line.text === undefined) !== (line.ids === undefined), {
    error: "give either text or ids",
    path: ["ids"],
  });

type ScriptLine = z.infer<typeof Line>;

interface Entry {
  readonly line: ScriptLine;
  readonly reply: ScriptedReply;
  left: number;
}

/**
 * Reads a script. The first line that fits a request and is not used up answers it.
 * @throws MortiseError MORTISE_CONFIG_* naming file, line and field
 */
export async function readScript(path: string, tokenizer: Tokenizer): Promise<ChooseReply> {
  const [header, ...lines] = await readJsonLines(path, "engine.file");
  parseStrict(Header, header?.value, { source: header?.source ?? path });
  const entries = lines.map(({ value, source }) => entryOf(value, source, tokenizer));
  return (request) => {
    const entry = entries.find((one) => one.left > 0 && fits(one.line, request, tokenizer));
    if (!entry) return undefined;
    entry.left--;
    return entry.reply;
  };
}

function entryOf(raw: unknown, source: string, tokenizer: Tokenizer): Entry {
  const line = parseStrict(Line, raw, { source });
  const ids = line.ids ?? [...tokenizer.encode(line.text!)];
  const beyond = ids.find((one) => one >= tokenizer.vocabSize);
  if (beyond !== undefined) throw invalid(source, "ids", `${beyond} is not in the vocabulary`);
  const { logProbabilities } = line;
  if (logProbabilities && logProbabilities.length !== ids.length)
    throw invalid(source, "logProbabilities", `${logProbabilities.length} for ${ids.length} ids`);
  const reply: ScriptedReply = {
    ids,
    ...(logProbabilities !== undefined && { logProbabilities }),
    firstTokenMs: line.firstTokenMs,
    tokenMs: line.tokenMs,
    ...(line.failAfter !== undefined && { failAfter: line.failAfter }),
  };
  return { line, reply, left: line.times === "always" ? Number.POSITIVE_INFINITY : line.times };
}

function fits({ when }: ScriptLine, request: GenerateRequest, tokenizer: Tokenizer): boolean {
  if (when.turn !== undefined && when.turn !== request.turnIndex) return false;
  if (when.affinity !== undefined && when.affinity !== request.affinity) return false;
  return when.contains === undefined || tokenizer.decode(request.contextIds).includes(when.contains);
}

function invalid(source: string, field: string, reason: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_CONFIG_INVALID",
    message: `${source}: ${field}: ${reason}.`,
    detail: { source, field },
  });
}
