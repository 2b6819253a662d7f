#!/usr/bin/env node
/**
 * Owns the boundary check: no import crosses a line of .dependency-cruiser.mjs, and the check proves that it
 * looked: a tool that cannot parse TypeScript sees no module, finds no violation and passes.
 *
 * usage: check-boundaries.mjs [--root DIRECTORY]
 */
import { existsSync, globSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { cruise } from "dependency-cruiser";
import configuration from "../.dependency-cruiser.mjs";
import { root as projectRoot } from "./bootstrap/paths.mjs";

/** Fewer modules than this means that the tool did not read the project. */
const MODULES_MIN = 50;

const { values } = parseArgs({ options: { root: { type: "string", default: projectRoot } } });
const root = resolve(values.root);
// Sources and tests by name: dist/ must stay visible as a target, since that is where workspace imports resolve.
const folders = ["packages", "services", "apps", "harnesses"]
  .flatMap((parent) =>
    existsSync(join(root, parent)) ? readdirSync(join(root, parent)).map((name) => `${parent}/${name}`) : [],
  )
  .flatMap((directory) => [`${directory}/src`, `${directory}/test`])
  .filter((folder) => existsSync(join(root, folder)));
// Adapters lie in their harness's folder, not below a src/.
const adapters = globSync("harnesses/{*.ts,*/adapter.ts}", { cwd: root });

const { forbidden, options } = configuration;
const { output } = await cruise(
  [...folders, ...adapters],
  { ...options, baseDir: root, validate: true, ruleSet: { forbidden } },
  undefined,
  {},
);
const own = output.modules.filter(
  ({ source }) => adapters.includes(source) || folders.some((folder) => source.startsWith(`${folder}/`)),
);
const { violations } = output.summary;

for (const { rule, from, to } of violations) process.stderr.write(`${rule.name}: ${from} -> ${to}\n`);
const blind = own.length <= MODULES_MIN;
if (blind) {
  process.stderr.write(
    `only ${own.length} modules were read (more than ${MODULES_MIN} expected): the check proves nothing\n`,
  );
}
process.stdout.write(`boundaries: ${own.length} modules, ${violations.length} violations\n`);
process.exitCode = blind || violations.length > 0 ? 1 : 0;
