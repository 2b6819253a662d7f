import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Answer, edits, fails, startFakeModel, streams } from "./fake-model.js";

const MINI = fileURLToPath(new URL("../mini.cjs", import.meta.url));
const { locateFunction, viewOf } = createRequire(import.meta.url)(MINI) as {
  locateFunction(source: string, name: string): { start: number; end: number } | undefined;
  viewOf(source: string): { text: string };
};

const SOURCE = `"use strict";

/** Adds up. */
function sum(xs) {
  let s = 0; // so far
  for (const el of xs) s -= el;
  return s;
}

module.exports = { sum };
`;
const PROMPT = "# sum of xs\n(xs){let s=0;for(const el of xs)s-=el;return s;}";

let repository: string;
const file = () => readFileSync(join(repository, "src/sum.js"), "utf8");

beforeEach(() => {
  repository = mkdtempSync(join(tmpdir(), "mini-"));
  mkdirSync(join(repository, "src"));
  writeFileSync(join(repository, "src/sum.js"), SOURCE);
});
afterEach(() => rmSync(repository, { recursive: true, force: true }));

/** Runs mini as a child process against scripted answers. */
async function runMini(answers: Answer[], options: { args?: string[]; env?: Record<string, string> } = {}) {
  const model = await startFakeModel(answers);
  try {
    const child = spawn(process.execPath, [MINI, ...(options.args ?? [])], {
      cwd: repository,
      env: {
        PATH: process.env.PATH ?? "",
        OPENAI_BASE_URL: model.url,
        OPENAI_API_KEY: "secret-key",
        OPENAI_MODEL: "policy",
        MINI_INSTRUCTION: "Repair sum in src/sum.js: sum of xs\n",
        ...options.env,
      },
    });
    const output = { stdout: "", stderr: "" };
    child.stdout.on("data", (chunk) => {
      output.stdout += chunk;
    });
    child.stderr.on("data", (chunk) => {
      output.stderr += chunk;
    });
    const exitCode = await new Promise<number | null>((resolve) => child.on("close", resolve));
    return { exitCode, seen: model.seen, ...output };
  } finally {
    await model.close();
  }
}

const done = streams({ content: "done" });

describe("a repair", () => {
  test("shows the function, edits the file in its own layout, reports ok and stops", async () => {
    const { exitCode, seen, stdout } = await runMini([edits("s-=el", "s+=el"), done]);
    expect(exitCode).toBe(0);
    expect(stdout).toBe("done\n");
    expect(file()).toBe(SOURCE.replace("s -= el", "s+=el"));
    expect(seen.map((request) => request.url)).toEqual(["/v1/chat/completions", "/v1/chat/completions"]);
    expect(seen[0]?.authorization).toBe("Bearer secret-key");
    expect(seen[0]?.body).toMatchObject({
      model: "policy",
      stream: true,
      tools: [{ function: { name: "edit" } }],
    });
    expect(seen[0]?.body.messages).toEqual([{ role: "user", content: PROMPT }]);
    expect(seen[1]?.body.messages.slice(1)).toEqual([
      {
        role: "assistant",
        content: null,
        tool_calls: [
          {
            id: "call_0",
            type: "function",
            function: { name: "edit", arguments: '{"old":"s-=el","new":"s+=el"}' },
          },
        ],
      },
      { role: "tool", tool_call_id: "call_0", content: "ok" },
    ]);
    expect(seen[1]?.port).toBe(seen[0]?.port);
  });

  test("finds a piece that spans lines and comments", async () => {
    const { exitCode } = await runMini([
      edits("let s=0;for(const el of xs)", "let s = 1; for (const el of xs)"),
      done,
    ]);
    expect(exitCode).toBe(0);
    expect(file()).toContain("let s = 1; for (const el of xs) s -= el;");
  });

  test.each([
    ["absent", "s*=el"],
    ["ambiguous", "s"],
    ["empty", ""],
    ["outside the function", "module.exports"],
  ])("answers error to a piece that is %s and leaves the file alone", async (_, old) => {
    const { exitCode, seen } = await runMini([edits(old, "x"), done]);
    expect(exitCode).toBe(0);
    expect(seen[1]?.body.messages.at(-1)?.content).toBe("error");
    expect(file()).toBe(SOURCE);
  });

  test("answers error to arguments that are not JSON and to unknown tools", async () => {
    const calls = [
      { name: "edit", arguments: "s-=el" },
      { name: "test", arguments: "{}" },
    ];
    const { seen } = await runMini([streams({ calls }), done]);
    expect(seen[1]?.body.messages.slice(2).map((message) => message.content)).toEqual(["error", "error"]);
  });

  test("keeps its place after an edit that changes the length", async () => {
    const { exitCode } = await runMini([
      edits("s-=el", "s = s + el"),
      edits("return s", "return s + 1"),
      done,
    ]);
    expect(exitCode).toBe(0);
    expect(file()).toContain("s = s + el;\n  return s + 1;\n}");
  });

  test("works without streaming", async () => {
    const whole: Answer = (response) =>
      response.end(JSON.stringify({ choices: [{ message: { role: "assistant", content: "done" } }] }));
    const { exitCode, seen } = await runMini([whole], { args: ["--no-stream"] });
    expect(exitCode).toBe(0);
    expect(seen[0]?.body.stream).toBe(false);
  });

  test("may run the visible tests", async () => {
    writeFileSync(join(repository, "package.json"), '{"scripts":{"test":"echo sum is wrong; exit 3"}}');
    const answers = [streams({ calls: [{ name: "test", arguments: "{}" }] }), done];
    const { seen } = await runMini(answers, { env: { MINI_RUN_TESTS: "1" } });
    expect(seen[0]?.body.tools.map((tool) => tool.function.name)).toEqual(["edit", "test"]);
    expect(seen[1]?.body.messages.at(-1)?.content).toBe("sum is wrong\n\nfailed (3)");
  });

  test("reads the instruction and the repository from options", async () => {
    const elsewhere = join(repository, "instruction.md");
    writeFileSync(elsewhere, "Repair sum in sum.js: sum of xs\n");
    const args = ["--instruction", elsewhere, "--workdir", "src"];
    const { exitCode, seen } = await runMini([done], { args, env: { MINI_INSTRUCTION: "" } });
    expect(exitCode).toBe(0);
    expect(seen[0]?.body.messages[0]?.content).toBe(PROMPT);
  });
});

describe("trouble with the model", () => {
  const breaksOff: Answer = (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write('data: {"choices":[{"delta":{"content":"do"}}]}\n\n', () => response.destroy());
  };
  const endsEarly: Answer = (response) => {
    response.end('data: {"choices":[{"delta":{"content":"do"}}]}\n\n');
  };

  test.each([
    ["a 503", fails(503)],
    ["a 429", fails(429)],
    ["a closed connection", (response) => response.destroy()],
    ["a stream cut in the middle", breaksOff],
    ["a stream without an end", endsEarly],
    ["an error event", (response) => response.end('data: {"error":{"message":"lost the race"}}\n\n')],
  ] as [string, Answer][])("sends the same body again after %s", async (_, trouble) => {
    const { exitCode, seen } = await runMini([trouble, done]);
    expect(exitCode).toBe(0);
    expect(seen).toHaveLength(2);
    expect(seen[1]?.raw).toBe(seen[0]?.raw);
  });

  test.each([400, 401, 404])("stops at once on %i", async (status) => {
    const { exitCode, seen, stderr } = await runMini([fails(status), done]);
    expect(exitCode).toBe(4);
    expect(seen).toHaveLength(1);
    expect(stderr).toContain(`status ${status}`);
  });

  test("gives up after five attempts", async () => {
    const { exitCode, seen } = await runMini([]);
    expect(exitCode).toBe(3);
    expect(seen).toHaveLength(5);
  });

  test("tells a malformed reply apart", async () => {
    const { exitCode } = await runMini([(response) => response.end("data: not json\n\n")]);
    expect(exitCode).toBe(5);
  });

  test("stops at the turn limit", async () => {
    const again = edits("absent", "x");
    const { exitCode, seen } = await runMini([again, again, again, again, again]);
    expect(exitCode).toBe(6);
    expect(seen).toHaveLength(4);
  });
});

describe("trouble with the request", () => {
  test.each([
    ["no instruction", { MINI_INSTRUCTION: "" }, "Repair FUNCTION in FILE"],
    ["a missing file", { MINI_INSTRUCTION: "Repair sum in src/none.js: x" }, "cannot read"],
    ["a file outside", { MINI_INSTRUCTION: "Repair sum in ../x.js: x" }, "outside the working directory"],
    ["an unknown function", { MINI_INSTRUCTION: "Repair mean in src/sum.js: x" }, "does not define mean"],
    ["no key", { OPENAI_API_KEY: "" }, "OPENAI_API_KEY is not set"],
    ["a bad limit", { MINI_MAX_TURNS: "0" }, "max turns"],
  ])("exits with 2 for %s and says so", async (_, env: Record<string, string>, reason) => {
    const { exitCode, seen, stderr } = await runMini([done], { env });
    expect(exitCode).toBe(2);
    expect(stderr).toContain(reason);
    expect(seen).toHaveLength(0);
  });
});

describe("finding the function", () => {
  test.each([
    [
      "a call before the definition",
      "sum([1]);\nfunction sum(xs) { return { a: 1 }; }",
      "(xs) { return { a: 1 }; }",
    ],
    ["an arrow function", "const sum = (xs) => { return 1; };", "(xs) => { return 1; }"],
    ["a method", "class A { sum(xs) { return ')'; } }", "(xs) { return ')'; }"],
    ["a name in a comment", "// sum(x) {}\nasync function sum(xs) { return 2; }", "(xs) { return 2; }"],
  ])("sees past %s", (_, source, expected) => {
    const range = locateFunction(source, "sum");
    expect(range && source.slice(range.start, range.end)).toBe(expected);
  });

  test("canonical spacing keeps strings and signs apart", () => {
    expect(viewOf(`const a = "x  y" + b - -c; // end`).text).toBe(`const a="x  y"+b- -c;`);
  });
});
