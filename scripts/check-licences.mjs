#!/usr/bin/env node
/**
 * Owns the licence check of dependencies: every package of the lockfile carries a licence the project may use.
 *
 * usage: check-licences.mjs [--input FILE]   FILE: output of `pnpm licenses list --json` instead of running it
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { obtainPnpm } from "./bootstrap/pnpm.mjs";

const ALLOWED = new Set([
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "BlueOak-1.0.0",
  "CC0-1.0",
  "ISC",
  "MIT",
  "Unlicense",
]);

/** Packages whose licence is not on the list, each with the reason why it may stay. */
const EXCEPTIONS = [
  {
    name: /^lightningcss(-|$)/,
    licence: "MPL-2.0",
    reason: "file-level copyleft; part of the test runner, used unmodified and not distributed",
  },
];

/** Evaluates an SPDX expression: OR needs one allowed side, AND needs both. */
function isAllowed(expression) {
  const tokens = expression.match(/\(|\)|[^\s()]+/g) ?? [];
  let at = 0;
  const term = () => {
    const token = tokens[at++];
    if (token !== "(") return ALLOWED.has(token);
    const inner = anyOf();
    at++;
    return inner;
  };
  const allOf = () => {
    let allowed = term();
    while (tokens[at] === "AND") {
      at++;
      const right = term();
      allowed = allowed && right;
    }
    return allowed;
  };
  const anyOf = () => {
    let allowed = allOf();
    while (tokens[at] === "OR") {
      at++;
      const right = allOf();
      allowed = allowed || right;
    }
    return allowed;
  };
  return tokens.length > 0 && anyOf() && at === tokens.length;
}

async function listing() {
  const { values } = parseArgs({ options: { input: { type: "string" } } });
  if (values.input !== undefined) return readFileSync(values.input, "utf8");
  const pnpm = await obtainPnpm();
  const { code, output } = await pnpm(["licenses", "list", "--json"]);
  if (code !== 0) throw new Error(`pnpm licenses list failed:\n${output}`);
  // Warnings share the stream with the object, which is one line or a block between the outermost braces.
  return output.slice(output.indexOf("{"), output.lastIndexOf("}") + 1);
}

const packages = Object.entries(JSON.parse(await listing())).flatMap(([licence, rows]) =>
  rows.map(({ name, versions }) => ({ licence, name, versions })),
);
const refused = packages.filter(
  ({ licence, name }) =>
    !isAllowed(licence) &&
    !EXCEPTIONS.some((exception) => exception.name.test(name) && exception.licence === licence),
);
for (const { licence, name, versions } of refused) process.stderr.write(`${name}@${versions}: ${licence}\n`);
process.stdout.write(`licences: ${packages.length} packages, ${refused.length} refused\n`);
if (packages.length === 0) process.stderr.write("no package was listed: the check proves nothing\n");
process.exitCode = packages.length === 0 || refused.length > 0 ? 1 : 0;
