/** Owns reading a file of JSON lines that the operator names. Does not know what a line means. */
import { readFile } from "node:fs/promises";
import { MortiseError } from "@mortise/contracts";

export interface JsonLine {
  /** file:line, for errors. */
  readonly source: string;
  readonly value: unknown;
}

/** @param field the configuration field that names the file. @throws MortiseError MORTISE_CONFIG_* naming the line */
export async function readJsonLines(path: string, field: string): Promise<JsonLine[]> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_CONFIG_UNREADABLE",
      message: `${path} cannot be read.`,
      cause,
      detail: { field },
    });
  }
  return text.split("\n").flatMap((line, at) => {
    if (line.trim() === "") return [];
    const source = `${path}:${at + 1}`;
    try {
      return [{ source, value: JSON.parse(line) as unknown }];
    } catch (cause) {
      const fix = "Write one JSON object a line.";
      throw new MortiseError({
        code: "MORTISE_CONFIG_INVALID",
        message: `${source} is not JSON.`,
        fix,
        cause,
        detail: { field },
      });
    }
  });
}
