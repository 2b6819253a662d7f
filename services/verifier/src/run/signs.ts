/**
 * Owns the signs in a script's output that machinery was absent or failed: a program, a network, a disk. What is graded
 * can print any of them, so they can only take a zero back, never a success.
 */
const MAX_LINE_CHARACTERS = 1_000;

const SIGNS: readonly (readonly [reason: string, sign: RegExp])[] = [
  [
    "a program is absent",
    /^\S+: (?:line )?\d+: (?:exec: )?\S+: (?:command )?not found$|: command not found$/,
  ],
  ["a program is absent", /^env: .*: No such file or directory$|^exec: .*: not found$/],
  ["a module of the tests is absent", /No module named '?(?:pytest|nose|unittest2|tox)'?$/],
  [
    "no name resolution",
    /Could not resolve host|Temporary failure in name resolution|getaddrinfo (?:ENOTFOUND|EAI_AGAIN)/,
  ],
  [
    "the network was needed",
    /^curl: \(\d+\) |^wget: unable to |Network is unreachable|Failed to fetch: `?https?:/,
  ],
  [
    "packages were to be fetched",
    /Could not find a version that satisfies the requirement|error: Failed to (?:download|fetch)/,
  ],
  ["no space left on the device", /No space left on device|Disk quota exceeded/],
  ["no memory", /Cannot allocate memory/],
];

/** What the output says of the machinery, each reason once with its first line. */
export function signsIn(...outputs: readonly Uint8Array[]): string[] {
  const found = new Map<string, string>();
  for (const output of outputs)
    for (const line of Buffer.from(output).toString().split("\n")) {
      if (line.length > MAX_LINE_CHARACTERS) continue;
      const sign = SIGNS.find(([, pattern]) => pattern.test(line.trimEnd()));
      if (sign !== undefined && !found.has(sign[0])) found.set(sign[0], line.trim());
    }
  return [...found].map(([reason, line]) => `${reason}: ${line}`);
}
