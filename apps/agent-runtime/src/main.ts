#!/usr/bin/env node
/** Owns the process of an agent runtime: `--config FILE`, drain on SIGTERM and SIGINT, exit 2 for an operator's mistake. */
import { parseArgs } from "node:util";
import { AgentRuntimeConfig, MortiseError } from "@mortise/contracts";
import { fromUnknown, loadToml, operatorsError, parseStrict } from "@mortise/kernel";
import { AgentRuntime } from "./runtime.js";

const EXIT_FAILURE = 1;
const EXIT_OPERATOR = 2;

function configFile(): string {
  try {
    const { values } = parseArgs({ options: { config: { type: "string" } }, strict: true });
    if (values.config !== undefined) return values.config;
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_OPERATOR_USAGE",
      message: (cause as Error).message,
      fix: "Use: mortise-agent-runtime --config FILE",
      cause,
    });
  }
  throw new MortiseError({
    code: "MORTISE_OPERATOR_USAGE",
    message: "--config is missing.",
    fix: "Use: mortise-agent-runtime --config FILE",
  });
}

try {
  const file = configFile();
  const config = parseStrict(AgentRuntimeConfig, await loadToml(file), { source: file });
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
