/**
 * Owns the spellings of a list of test names: a list, a JSON list as text (SWE-bench), a Python list as text
 * (records printed rather than serialised), nothing at all. Does not know which list it is.
 */

/** The names, duplicates kept; an empty value is an empty list, undefined when it is no list of names. */
export function readTestList(value: unknown): readonly string[] | undefined {
  if (value === null) return [];
  if (Array.isArray(value)) return value.every((name) => typeof name === "string") ? value : undefined;
  if (typeof value !== "string") return undefined;
  const text = value.trim();
  if (text === "") return [];
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === "string" ? undefined : readTestList(parsed);
  } catch {
    return readPythonList(text);
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  "\\": "\\",
  "'": "'",
  '"': '"',
};
/** One string of a Python list: its quote, then anything but the bare quote, escapes kept. */
const PYTHON_STRING = /\s*(['"])((?:(?!\1)[^\\]|\\[\s\S])*)\1\s*(,|$)/y;

function readPythonList(text: string): readonly string[] | undefined {
  if (!text.startsWith("[") || !text.endsWith("]")) return undefined;
  const inner = text.slice(1, -1);
  const names: string[] = [];
  PYTHON_STRING.lastIndex = 0;
  while (inner.slice(PYTHON_STRING.lastIndex).trim() !== "") {
    const string = PYTHON_STRING.exec(inner);
    if (string === null) return undefined;
    names.push(unescaped(string[2]!));
    if (string[3] === "") break;
  }
  return names;
}

function unescaped(text: string): string {
  return text.replace(/\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[\s\S])/g, (whole, code: string) =>
    code.length > 1 ? String.fromCharCode(Number.parseInt(code.slice(1), 16)) : (ESCAPES[code] ?? whole),
  );
}
