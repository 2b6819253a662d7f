#!/usr/bin/env node
/**
 * Owns the process of an agent runtime: `--config FILE`, drain on SIGTERM and SIGINT, exit 2 for an operator's mistake.
 * `--prepare` obtains the harnesses' own runtimes and ends: for images that are built where a registry can be reached.
 */
import { parseArgs } from "node:util";
import { AgentRuntimeConfig, MortiseError } from "@mortise/contracts";
import { fromUnknown, loadToml, operatorsError, parseStrict } from "@mortise/kernel";
import { prepareHarnesses } from "./prepare-harnesses.js";
import { AgentRuntime } from "./runtime.js";

const EXIT_FAILURE = 1;
const EXIT_OPERATOR = 2;

const USAGE = "Use: mortise-agent-runtime --config FILE [--prepare]";

function argumentsOf(): { file: string; isPreparing: boolean } {
  const options = { config: { type: "string" }, prepare: { type: "boolean", default: false } } as const;
  try {
    const { values } = parseArgs({ options, strict: true });
    if (values.config === undefined) throw new Error("--config is missing.");
    return { file: values.config, isPreparing: values.prepare };
  } catch (cause) {
    const { message } = cause as Error;
    throw new MortiseError({ code: "MORTISE_OPERATOR_USAGE", message, fix: USAGE, cause });
  }
}

try {
  const { file, isPreparing } = argumentsOf();
  const config = parseStrict(AgentRuntimeConfig, await loadToml(file), { source: file });
  if (isPreparing) {
    await prepareHarnesses(config, (line) => process.stdout.write(`${line}\n`));
    process.exit(0);
  }
  const runtime = await AgentRuntime.start(config);
  let isStopping = false;
  const stop = () => {
    if (isStopping) return;
    isStopping = true;
    void runtime.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        process.stderr.write(`${(error as Error).stack}\n`);
        process.exit(EXIT_FAILURE);
      },
    );
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
} catch (error) {
  const operators = operatorsError(error);
  const known = operators ?? fromUnknown(error, "MORTISE_TRANSPORT_INTERNAL");
  process.stderr.write(`${known.code}: ${known.message}\n  fix: ${known.fix}\n`);
  if (operators === undefined) process.stderr.write(`${(error as Error).stack}\n`);
  process.exit(operators === undefined ? EXIT_FAILURE : EXIT_OPERATOR);
}
