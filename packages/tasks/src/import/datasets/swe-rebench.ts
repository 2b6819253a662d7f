/**
 * Owns SWE-rebench, versions 1 and 2: `install_config` says how to install, test and read the log. Version 1 is
 * Python in SWE-bench's image layout and tests the files of the test patch; version 2 is of many languages, works
 * where the image works and runs its command as it is. Sources of facts: the data sets' cards.
 */
import { directivesOf } from "../evaluation/directives.js";
import { quoted } from "../evaluation/quoted.js";
import type { RowFields } from "../fields.js";
import type { Evaluation } from "../record.js";
import { isObject } from "../rows/row.js";
import { type Dataset, EVAL_SCRIPT, IMAGE, imageNamedAfter, type SharedPart } from "./dataset.js";

const COLUMNS = ["meta", "requirements", "environment", "license_name", "pr_description", "interface"];

export const sweRebench: Dataset = {
  name: "swe-rebench",
  title: "SWE-rebench",
  columns: COLUMNS,
  hasTestPatch: true,
  hasBaseCommit: true,
  patchMakesBug: false,
  recognises: (fields) => "install_config" in fields && !isSecond(fields),
  read(fields, shared) {
    const config = fields.object("install_config");
    return {
      language: "python",
      image: fields.text(IMAGE) ?? imageNamedAfter("swerebench/sweb.eval.x86_64.", shared.instance, "_1776_"),
      workdir: fields.text("workdir") ?? "/testbed",
      ...parserOf(fields, config),
      evaluation: evaluationOf(fields, config, shared),
    };
  },
};

export const sweRebench2: Dataset = {
  name: "swe-rebench-v2",
  title: "SWE-rebench V2",
  columns: COLUMNS,
  hasTestPatch: true,
  hasBaseCommit: true,
  patchMakesBug: false,
  recognises: (fields) => "install_config" in fields && isSecond(fields),
  read(fields) {
    const config = fields.object("install_config");
    const image = fields.required(IMAGE);
    const workdir = fields.text("workdir");
    const named = parserOf(fields, config);
    if (named.parser === undefined)
      fields.refuse("install_config.log_parser", "is absent", "Name the parser of the log.");
    return {
      language: fields.required("language").toLowerCase(),
      image,
      ...(workdir === undefined ? {} : { workdir }),
      ...named,
      evaluation: { kind: "built", prepare: [], install: [], test: testOf(fields, config), usesConda: false },
    };
  },
};

/** Version 2 says the language, and the base image its environment was built on. */
function isSecond(fields: Readonly<Record<string, unknown>>): boolean {
  const config = typeof fields.install_config === "string" ? fields.install_config : undefined;
  const hasBase = isObject(fields.install_config)
    ? "base_image_name" in fields.install_config
    : config?.includes('"base_image_name"') === true;
  return hasBase || "language" in fields;
}

/** The record's own parser, else the one of its `install_config`. */
export function parserOf(fields: RowFields, config: Record<string, unknown>): { parser?: string } {
  const parser = fields.text("log_parser") ?? config.log_parser;
  return typeof parser === "string" && parser !== "" ? { parser } : {};
}

function evaluationOf(
  fields: RowFields,
  config: Record<string, unknown>,
  { repo, tests }: SharedPart,
): Evaluation {
  const script = fields.text(EVAL_SCRIPT);
  if (script !== undefined) return { kind: "script", text: script };
  const commands = testOf(fields, config);
  const directives = tests === undefined ? [] : directivesOf(tests, repo);
  const last = commands.pop();
  return {
    kind: "built",
    prepare: exportsOf(config.env_vars),
    install: fields.commands("install_config.install", config.install),
    test: last === undefined ? [] : [...commands, [last, ...directives].join(" ")],
    usesConda: config.no_use_env !== true,
  };
}

function testOf(fields: RowFields, config: Record<string, unknown>): string[] {
  const commands = fields.commands("install_config.test_cmd", config.test_cmd);
  if (commands.length === 0)
    fields.refuse("install_config.test_cmd", "is absent", "Say how the tests are run.");
  return commands;
}

function exportsOf(variables: unknown): string[] {
  if (!isObject(variables)) return [];
  return Object.entries(variables)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `export ${name}=${quoted(String(value))}`);
}
