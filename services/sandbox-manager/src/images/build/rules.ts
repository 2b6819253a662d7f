/**
 * Owns what a Dockerfile may ask for: base images named exactly, and with a closed network nothing that the engine
 * would fetch by itself. Finds the bases and writes the Dockerfile with each replaced by what it was resolved to.
 *
 * D1  Whatever cannot be told from the text is refused, never guessed.
 */
import { MortiseError } from "@mortise/contracts";
import { parseReference } from "../reference.js";
import { BASE_LABEL } from "./built-image.js";
import { type Dockerfile, type Instruction, instructionOf, refused } from "./dockerfile.js";
import { type BuildArguments, expanded, globalArguments } from "./variables.js";

/** A use of an image from outside the Dockerfile. */
export interface BaseUse {
  readonly line: number;
  /** With its variables replaced. */
  readonly reference: string;
}

export interface BuildRules {
  readonly args: Readonly<Record<string, string>>;
  readonly allowUnpinned: boolean;
  readonly hasNetwork: boolean;
}

const SCRATCH = "scratch";
/** Sources of ADD that no expansion and no quoting can turn into something else. */
const PLAIN_SOURCE = /^[A-Za-z0-9_./*?+,=@~%:-]+$/;
const REMOTE = /^(?:[a-z][a-z0-9+.-]*:\/\/|git@|github\.com\/)/i;

/** Every image a Dockerfile starts from or copies from. Throws MORTISE_TASK_BUILD with the line and the fix. */
export function checkDockerfile(dockerfile: Dockerfile, rules: BuildRules): BaseUse[] {
  for (const each of dockerfile.instructions) checkFetching(each, rules);
  const bases = usesOf(dockerfile, rules);
  for (const base of bases) checkPinned(base, rules);
  return bases;
}

/** Instructions an image brings along for whoever builds on it. */
export function checkTriggers(triggers: readonly string[], base: BaseUse, rules: BuildRules): void {
  for (const trigger of triggers) checkTrigger(instructionOf(trigger, base.line), rules);
}

/** What it copies from would be looked up by the engine, whenever it is run. */
function checkTrigger(instruction: Instruction, rules: BuildRules): void {
  if (instruction.flags.some((flag) => flag.startsWith("--from=")))
    throw refused(instruction.line, "a trigger (ONBUILD) copies from another image");
  checkFetching(instruction, rules);
}

/**
 * The Dockerfile with its bases replaced and a label at the start of each stage, so that also what a failed build
 * leaves can be found. @param replacement of a reference
 */
export function pinnedDockerfile(
  dockerfile: Dockerfile,
  rules: BuildRules,
  replacement: (reference: string) => string,
  label: string,
): string {
  const lines: (string | undefined)[] = [...dockerfile.lines];
  const replace = ({ line, lastLine }: Instruction, text: string) => {
    for (let at = line - 1; at < lastLine; at++) lines[at] = undefined;
    lines[line - 1] = text;
  };
  for (const stage of stagesOf(dockerfile, rules)) {
    const { from, reference, name } = stage;
    const base = stage.isOutside ? replacement(reference) : reference;
    replace(
      from,
      `FROM ${base}${name === undefined ? "" : ` AS ${name}`}\nLABEL ${label}${stage.isOutside ? ` ${BASE_LABEL}=${base}` : ""}`,
    );
    for (const copy of stage.copies)
      replace(copy.instruction, `COPY --from=${replacement(copy.reference)} ${copy.others}`);
  }
  return lines.filter((line) => line !== undefined).join("\n");
}

interface Stage {
  readonly from: Instruction;
  readonly reference: string;
  readonly name: string | undefined;
  /** Not an earlier stage, and not empty. */
  readonly isOutside: boolean;
  /** COPY from images outside. */
  readonly copies: {
    readonly instruction: Instruction;
    readonly reference: string;
    readonly others: string;
  }[];
}

function usesOf(dockerfile: Dockerfile, rules: BuildRules): BaseUse[] {
  return stagesOf(dockerfile, rules).flatMap(({ from, reference, isOutside, copies }) => [
    ...(isOutside ? [{ line: from.line, reference }] : []),
    ...copies.map((copy) => ({ line: copy.instruction.line, reference: copy.reference })),
  ]);
}

function stagesOf({ instructions }: Dockerfile, { args }: BuildRules): Stage[] {
  const values = globalArguments(instructions, args);
  const stages: Stage[] = [];
  const isStage = (name: string) => stages.some((stage) => stage.name === name.toLowerCase());
  for (const instruction of instructions) {
    if (instruction.name === "FROM") {
      const { reference, name } = partsOfFrom(instruction, values);
      const isOutside = reference !== SCRATCH && !isStage(reference);
      stages.push({ from: instruction, reference, name, isOutside, copies: [] });
      continue;
    }
    if (instruction.name !== "COPY") continue;
    const copy = copyOf(instruction);
    const isNumber = copy !== undefined && /^\d+$/.test(copy.reference);
    if (copy !== undefined && !isNumber && !isStage(copy.reference)) stages.at(-1)?.copies.push(copy);
  }
  return stages;
}

function partsOfFrom({ flags, rest, line }: Instruction, values: BuildArguments) {
  const platform = flags.find(
    (flag) => !/^--platform=(\$\{?(?:BUILD|TARGET)PLATFORM\}?|linux\/\w+)$/.test(flag),
  );
  if (platform !== undefined) throw refused(line, `${platform} is not supported`);
  const [, image = "", , name] = /^(\S+)(\s+as\s+(\S+))?\s*$/i.exec(rest) ?? [];
  if (image === "") throw refused(line, "FROM is not `FROM image [AS name]`");
  if (name !== undefined && !/^[a-z][a-z0-9-_.]*$/i.test(name))
    throw refused(line, `${JSON.stringify(name)} is no name of a stage`);
  return { reference: expanded(image, values, line), name: name?.toLowerCase() };
}

function copyOf(instruction: Instruction): Stage["copies"][number] | undefined {
  const { flags, rest, line } = instruction;
  const from = flags.filter((flag) => flag.startsWith("--from="));
  if (from.length === 0) return undefined;
  const reference = from[0]!.slice("--from=".length);
  if (from.length > 1 || /["'\\$]/.test(reference)) throw refused(line, `${from.join(" ")} cannot be told`);
  const others = [...flags.filter((flag) => flag !== from[0]), rest].join(" ");
  return { instruction, reference, others };
}

function checkFetching(instruction: Instruction, rules: BuildRules): void {
  const { name, rest, line } = instruction;
  if (name === "ONBUILD") checkTrigger(instructionOf(rest, line), rules);
  if (name !== "ADD" || rules.hasNetwork) return;
  const plain = (source: string) => PLAIN_SOURCE.test(source) && !REMOTE.test(source);
  const odd = sourcesOf(rest).find((source) => !plain(source));
  if (odd === undefined) return;
  throw refused(
    line,
    `ADD ${JSON.stringify(odd.slice(0, 200))} may be fetched by the engine, and builds have no network here`,
    'Put the file into environment/ and COPY it, or set sandbox.images.build.network = "bridge".',
  );
}

/** Both forms, without the destination. */
function sourcesOf(rest: string): string[] {
  if (!rest.startsWith("[")) return rest.split(/\s+/).slice(0, -1);
  try {
    return (JSON.parse(rest) as unknown[]).slice(0, -1).map(String);
  } catch {
    // The builder takes what is no JSON as words.
    return rest.split(/\s+/).slice(0, -1);
  }
}

function checkPinned({ reference, line }: BaseUse, { allowUnpinned }: BuildRules): void {
  const { digest, target } = readable(reference, line);
  if (digest !== undefined || target !== "latest" || allowUnpinned) return;
  throw refused(
    line,
    `${reference} is whatever its registry calls latest today`,
    "Name the base image by digest or an exact tag, or set sandbox.images.build.allowUnpinned = true.",
  );
}

function readable(reference: string, line: number) {
  try {
    return parseReference(reference);
  } catch (error) {
    if (!(error instanceof MortiseError)) throw error;
    throw refused(line, error.message);
  }
}
