/** Owns `mortise conformance`: what a real harness does against a real proxy, case by case. */
import { harnessNamed } from "@mortise/harnesses";
import type { Command } from "commander";
import { runConformance } from "../conformance/conformance.js";
import { progressLine, tableOf } from "../conformance/report.js";
import { EXIT_FAILURE, note, type OutputOptions, printResult } from "../output.js";
import { listenForInterrupts } from "../site/interrupts.js";

interface Flags {
  readonly wire: readonly string[];
  readonly case: readonly string[];
  readonly keep: boolean;
}

export function addConformance(program: Command, output: () => OutputOptions): void {
  program
    .command("conformance <harness>")
    .description(
      "run a harness of a pinned version through the standard cases against the proxy and a scripted policy",
    )
    .option("--wire <api...>", "only these model APIs: chat, responses, messages", [])
    .option("--case <name...>", "only these cases", [])
    .option("--keep", "keep the directories of the cases", false)
    .action(async (name: string, flags: Flags) => {
      const interrupts = listenForInterrupts(() => process.exit(EXIT_FAILURE));
      try {
        const report = await runConformance({
          adapter: harnessNamed(name),
          wireApis: flags.wire,
          cases: flags.case,
          keeps: flags.keep,
          signal: interrupts.signal,
          note,
          onResult: (result) => note(progressLine(result)),
        });
        printResult(output(), report, () => tableOf(report));
        if (report.failed > 0) process.exitCode = EXIT_FAILURE;
      } finally {
        interrupts.dispose();
      }
    });
}
