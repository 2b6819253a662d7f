/** Owns `mortise templates verify`: whether a checkpoint's chat template can be served exactly, and how. */
import type { Command } from "commander";
import { Option } from "commander";
import { EXIT_FAILURE, type OutputOptions, printResult } from "../output.js";
import { verificationLines, verifyCheckpointTemplate } from "../templates/verify.js";

interface Flags {
  readonly history: "auto" | "keep" | "branch" | "strip";
  readonly lateSystem: "to-user" | "merge-up" | "keep";
  readonly thinking: "template" | "on" | "off";
}

export function addTemplates(program: Command, output: () => OutputOptions): void {
  program
    .command("templates")
    .description("chat templates of checkpoints")
    .command("verify")
    .description(
      "compare turn-by-turn rendering with the chat template's rendering of whole conversations, and read replies back; needs tokenizer.json, tokenizer_config.json and the template, no weights",
    )
    .argument("<directory>", "checkpoint directory")
    .addOption(
      new Option("--history <policy>", "policy.history of the run")
        .choices(["auto", "keep", "branch", "strip"])
        .default("auto"),
    )
    .addOption(
      new Option("--late-system <policy>", "policy.lateSystem of the run")
        .choices(["to-user", "merge-up", "keep"])
        .default("to-user"),
    )
    .addOption(
      new Option("--thinking <switch>", "policy.thinking of the run")
        .choices(["template", "on", "off"])
        .default("template"),
    )
    .action(async (directory: string, flags: Flags) => {
      const found = await verifyCheckpointTemplate(directory, flags);
      printResult(output(), { templates: found }, () => verificationLines(found));
      if (!found.isSound) process.exitCode = EXIT_FAILURE;
    });
}
