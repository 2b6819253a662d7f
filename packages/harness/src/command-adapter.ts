/**
 * Owns the adapter of a harness that is nothing but a command: everything is configuration, with placeholders
 * that are filled in at launch. The way to run a harness Mortise has no folder for.
 */
import { z } from "zod";
import {
  type EndKind,
  endingByExitCode,
  type HarnessAdapter,
  type LaunchTarget,
  lacks,
  type ToolUse,
} from "./adapter.js";

const END_KINDS = ["completed", "turn-limit", "token-limit", "agent-crash", "proxy-failure"] as const;

const ToolTemplate = z.strictObject({
  name: z.string().min(1).describe("Name of the tool."),
  arguments: z
    .record(z.string(), z.unknown())
    .describe("Its arguments; `{command}`, `{path}` and `{text}` in strings are replaced."),
});

export const CommandHarness = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9_-]+$/)
    .describe("Name of the harness."),
  version: z.string().default("unknown").describe("Version, as recorded with what it does."),
  argv: z
    .array(z.string())
    .min(1)
    .describe(
      "Command. `{runtime}`, `{home}`, `{workspace}`, `{model_url}` (with `/v1`), `{model_origin}` (without), `{token}`, `{model}`, `{instruction}`, `{context_tokens}` and `{max_output_tokens}` are replaced.",
    ),
  environment: z.record(z.string(), z.string()).default({}).describe("Environment, with the same places."),
  files: z
    .record(z.string(), z.string())
    .default({})
    .describe("Files written before the start, path to content, both with the same places."),
  wireApi: z.enum(["chat", "responses", "messages"]).default("chat").describe("Model API it speaks."),
  instruction: z
    .string()
    .default("{instruction}")
    .describe("What a task's instruction becomes; `{instruction}` is replaced."),
  exitCodes: z
    .record(z.string().regex(/^[0-9]{1,3}$/), z.enum(END_KINDS))
    .default({})
    .describe("What exit codes other than 0 mean; one that is not listed is a crash of the agent."),
  transcript: z.array(z.string()).default([]).describe("Glob patterns of its transcript below its home."),
  tools: z
    .strictObject({ run: ToolTemplate.optional(), write: ToolTemplate.optional() })
    .default({})
    .describe("Its tools for running a command and writing a file."),
  streams: z.boolean().default(true).describe("Whether it asks for streams."),
});

export type CommandHarness = z.infer<typeof CommandHarness>;

export function commandAdapter(harness: CommandHarness): HarnessAdapter {
  const { run, write } = harness.tools;
  const unknown = lacks("not known of a configured command");
  return {
    name: harness.name,
    version: harness.version,
    licence: "proprietary",
    runtime: { kind: "installed" },
    needs: { interpreter: "none", binaries: [], programs: [] },
    programs: [],
    wireApis: [harness.wireApi],
    instruct: (instruction) => fill(harness.instruction, { instruction }),
    launch(target) {
      const places = placesOf(target);
      const [program, ...rest] = harness.argv.map((word) => fill(word, places));
      return {
        argv: [program!, ...rest],
        environment: { HOME: target.home, PATH: target.path, ...fillValues(harness.environment, places) },
        files: Object.entries(harness.files).map(([path, content]) => ({
          path: fill(path, places),
          content: fill(content, places),
        })),
      };
    },
    ending(end) {
      const named: EndKind | undefined = harness.exitCodes[String(end.exitCode)];
      const { kind, reason } = endingByExitCode(end);
      return { kind: named ?? kind, reason };
    },
    transcript: harness.transcript,
    tools: () => ({
      ...(run && { run: (command: string) => use(run, { command }) }),
      ...(write && { write: (path: string, text: string) => use(write, { path, text }) }),
    }),
    behaviour: {
      streams: harness.streams,
      parallelCalls: true,
      subAgent: unknown,
      compaction: unknown,
      overflow: "ends",
      truncatedText: unknown,
      truncatedCall: unknown,
      cut: "retries",
      overload: "retries",
    },
  };
}

function placesOf(target: LaunchTarget): Record<string, string> {
  return {
    runtime: target.runtime,
    home: target.home,
    workspace: target.workspace,
    model_url: `${target.modelUrl}/v1`,
    model_origin: target.modelUrl,
    token: target.key,
    model: target.model,
    instruction: target.instruction,
    context_tokens: String(target.contextTokens),
    max_output_tokens: String(target.maxOutputTokens),
  };
}

/** One pass over the text, so that what is put in is never read for places itself. */
function fill(text: string, places: Readonly<Record<string, string>>): string {
  return text.replace(/\{([a-z_]+)\}/g, (whole, name: string) => places[name] ?? whole);
}

function fillValues(values: Readonly<Record<string, string>>, places: Readonly<Record<string, string>>) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, fill(value, places)]));
}

function use(template: z.infer<typeof ToolTemplate>, places: Readonly<Record<string, string>>): ToolUse {
  const filled = Object.entries(template.arguments).map(([name, value]) => [
    name,
    typeof value === "string" ? fill(value, places) : value,
  ]);
  return { name: template.name, arguments: Object.fromEntries(filled) };
}
