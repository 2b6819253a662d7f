#!/usr/bin/env node
/**
 * Owns the generated reference pages: docs/reference/{subjects,errors,config}.md, from the built contracts.
 *
 * usage: generate-docs.mjs [--check] [--out DIRECTORY]   --check writes nothing and fails when a page is stale
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { root } from "./bootstrap/paths.mjs";
import { renderConfig } from "./reference/config.mjs";
import { renderErrors } from "./reference/errors.mjs";
import { renderSubjects } from "./reference/subjects.mjs";

const { values } = parseArgs({
  options: {
    check: { type: "boolean", default: false },
    out: { type: "string", default: join(root, "docs", "reference") },
  },
});
const out = resolve(values.out);
const contractsDirectory = join(root, "packages", "contracts");
const contracts = await import(pathToFileURL(join(contractsDirectory, "dist", "index.js")).href);
// The schemas are objects of the contracts' own zod, so its own converter reads them.
const { z } = createRequire(join(contractsDirectory, "package.json"))("zod");

const pages = {
  "subjects.md": renderSubjects(contracts),
  "errors.md": renderErrors(contracts),
  "config.md": renderConfig(contracts, (schema) => z.toJSONSchema(schema, { io: "input" })),
};
if (values.check) {
  const stale = Object.entries(pages).filter(([name, text]) => {
    const file = join(out, name);
    return !existsSync(file) || readFileSync(file, "utf8") !== text;
  });
  for (const [name] of stale)
    process.stderr.write(`docs/reference/${name} is stale: run \`node scripts/generate-docs.mjs\`\n`);
  process.stdout.write(`generated docs: ${Object.keys(pages).length} pages, ${stale.length} stale\n`);
  process.exitCode = stale.length === 0 ? 0 : 1;
} else {
  mkdirSync(out, { recursive: true });
  for (const [name, text] of Object.entries(pages)) writeFileSync(join(out, name), text);
}
