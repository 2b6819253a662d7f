/** The behaviour scan on transcripts written by hand, one claim each. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { patchedFiles, shellFacts } from "../src/behaviour/shell-command.js";
import { simpleCommands } from "../src/behaviour/shell-words.js";
import { scanBehaviour, summariseBehaviour, type TranscriptCall } from "../src/index.js";

type Use = readonly [name: string, args: object | string, result?: string];

const callOf = ([name, args, result]: Use): TranscriptCall => ({
  name,
  arguments: typeof args === "string" ? args : JSON.stringify(args),
  isCut: false,
  result,
});

/** One call a turn, then an answer in words. */
function scan(harness: string, uses: readonly Use[], answer = "Done.") {
  const turns = [
    ...uses.map((use) => ({ text: "", calls: [callOf(use)] })),
    ...(answer === "" ? [] : [{ text: answer, calls: [] }]),
  ];
  return scanBehaviour({ harness, offered: undefined, turns });
}

const claude = (uses: readonly Use[], answer?: string) => scan("claude-code", uses, answer);
const read = (path: string): Use => ["Read", { file_path: path }];
const edit = (path: string): Use => ["Edit", { file_path: path, old_string: "a", new_string: "b" }];
const bash = (command: string, result = ""): Use => ["Bash", { command }, result];

describe("columns", () => {
  test("files read before the first edit are counted once, however they are spelled or shown", () => {
    const uses = [
      read("/w/src/a.py"),
      bash("cat src/a.py | head -5; sed -n '1,20p' ./src/b.py"),
      edit("/w/src/a.py"),
      read("/w/src/c.py"),
    ];
    expect(claude(uses)).toMatchObject({ filesReadBeforeEdit: 2, editedFiles: 1, rereadsEdited: false });
  });

  test("rereading an edited file counts only behind the edit", () => {
    expect(claude([read("/w/a.py"), edit("/w/a.py")]).rereadsEdited).toBe(false);
    expect(claude([edit("/w/a.py"), read("/w/b.py")]).rereadsEdited).toBe(false);
    expect(claude([edit("/w/a.py"), bash("tail -n 3 a.py")]).rereadsEdited).toBe(true);
    expect(claude([edit("/w/a.py"), read("/w/ba.py")]).rereadsEdited).toBe(false);
  });

  test("reproducing first is running something before the code is changed; the script may be written first", () => {
    expect(claude([bash("python repro.py"), edit("/w/a.py")]).reproducesFirst).toBe(true);
    const written: Use = ["Write", { file_path: "/w/reproduce_issue.py", content: "x" }];
    expect(claude([written, bash("python reproduce_issue.py"), edit("/w/a.py")]).reproducesFirst).toBe(true);
    expect(claude([edit("/w/a.py"), bash("python repro.py")]).reproducesFirst).toBe(false);
    expect(claude([bash("ls -la"), edit("/w/a.py")]).reproducesFirst).toBe(false);
  });

  test("running tests, and running them after the last edit", () => {
    expect(claude([bash("pytest -q"), edit("/w/a.py")])).toMatchObject({
      runsTests: true,
      testsAfterEdit: false,
    });
    expect(claude([edit("/w/a.py"), bash("cd /w && timeout 60 python -m pytest tests")])).toMatchObject({
      runsTests: true,
      testsAfterEdit: true,
    });
  });

  test("what needs an edit is null without one", () => {
    expect(claude([read("/w/a.py")])).toMatchObject({
      filesReadBeforeEdit: null,
      reproducesFirst: null,
      rereadsEdited: null,
      testsAfterEdit: null,
      editedFiles: 0,
    });
  });

  test("the end: a call of the harness's own, an answer, or none", () => {
    expect(scan("openhands", [["finish", { message: "ok" }]], "").finish).toBe("tool");
    expect(
      scan("mini-swe-agent", [["bash", { command: "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT" }]], "")
        .finish,
    ).toBe("tool");
    expect(claude([edit("/w/a.py")]).finish).toBe("answer");
    expect(claude([edit("/w/a.py")], "").finish).toBe("none");
    expect(scanBehaviour({ harness: "pi", offered: undefined, turns: [] }).finish).toBe("none");
  });

  test.each([
    ["claude-code", bash("false", "Exit code 1")],
    ["pi", ["bash", { command: "false" }, "(no output)\n\nCommand exited with code 1"]],
    [
      "codex",
      [
        "exec_command",
        { cmd: "false" },
        "Chunk ID: 8\nWall time: 0.0 seconds\nProcess exited with code 1\nOutput:\n",
      ],
    ],
    [
      "openhands",
      ["terminal", { command: "false" }, "[The command completed with exit code 1.]\n[Command finished]"],
    ],
    ["mini-swe-agent", ["bash", { command: "false" }, "<returncode>1</returncode>\n<output>\n</output>"]],
  ] as [string, Use][])("%s tells that a command failed", (harness, use) => {
    expect(scan(harness, [use]).failedCommands).toBe(1);
    const passed = [use[0], use[1], use[2]?.replace(/1(\D*)$/, "0$1")] as const;
    expect(scan(harness, [passed]).failedCommands).toBe(0);
  });

  test("a file that holds the words of a failure is none", () => {
    const shown: Use = ["Read", { file_path: "/w/log.txt" }, "Exit code 1"];
    expect(claude([shown]).failedCommands).toBe(0);
  });

  test("malformed calls: cut, no object, not offered, refused; they change nothing", () => {
    const turn = (call: Partial<TranscriptCall>) => ({
      text: "",
      calls: [{ name: "Edit", arguments: '{"file_path":"/w/a.py"}', isCut: false, result: "ok", ...call }],
    });
    const offered = new Set(["Edit"]);
    const malformed = [
      turn({ isCut: true }),
      turn({ arguments: "{ not json" }),
      turn({ arguments: "[1]" }),
      turn({ name: "no_such_tool" }),
      turn({ result: "<tool_use_error>InputValidationError: Edit failed</tool_use_error>" }),
    ];
    const found = scanBehaviour({ harness: "claude-code", offered, turns: [...malformed, turn({})] });
    expect(found).toMatchObject({ calls: 6, malformedCalls: 5, editedFiles: 1 });
    expect(scanBehaviour({ harness: "claude-code", offered, turns: malformed }).rereadsEdited).toBeNull();
  });

  test("an editor that shows, a patch as text, an edit tool that names no file", () => {
    const view: Use = ["file_editor", { command: "view", path: "/w/a.py" }];
    const change: Use = ["file_editor", { command: "str_replace", path: "/w/a.py" }];
    expect(scan("openhands", [view, change, view])).toMatchObject({
      callsBy: { read: 2, edit: 1 },
      filesReadBeforeEdit: 1,
      rereadsEdited: true,
    });
    const patch: Use = [
      "apply_patch",
      "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** End Patch",
    ];
    const cat: Use = ["exec_command", { cmd: "cat src/a.py" }];
    expect(scan("codex", [cat, patch, cat])).toMatchObject({
      malformedCalls: 0,
      editedFiles: 1,
      filesReadBeforeEdit: 1,
      rereadsEdited: true,
    });
    expect(
      scan("mini", [
        ["test", {}],
        ["edit", { old: "a", new: "b" }],
      ]),
    ).toMatchObject({
      reproducesFirst: true,
      runsTests: true,
      callsBy: { test: 1, edit: 1 },
    });
  });
});

describe("over many trials", () => {
  test("shares are of the trials that have an answer; failures count among the resolved", () => {
    const trials = [
      {
        behaviour: claude([bash("false", "Exit code 1"), edit("/w/a.py"), read("/w/a.py")]),
        isResolved: true,
      },
      { behaviour: claude([edit("/w/a.py")]), isResolved: true },
      { behaviour: claude([read("/w/a.py")], ""), isResolved: undefined },
      { behaviour: claude([bash("false", "Exit code 1")]), isResolved: false },
    ];
    expect(summariseBehaviour(trials)).toMatchObject({
      trials: 4,
      callsPerTrial: 1.5,
      rereadsEdited: 0.5,
      explicitFinish: 0.75,
      solvedDespiteFailure: 0.5,
      runsTests: 0,
      malformedShare: 0,
    });
  });

  test("of none nothing is claimed", () => {
    expect(summariseBehaviour([])).toMatchObject({ trials: 0, runsTests: null, malformedShare: null });
  });
});

describe("shell commands", () => {
  test.each([
    ["pytest", true],
    ["FOO=1 python3.12 -m pytest -x tests/test_a.py", true],
    ["uv run pytest", true],
    ["poetry run pytest -q", true],
    ["npm test", true],
    ["pnpm run test:unit", true],
    ["yarn jest", true],
    ["npx vitest run", true],
    ["node --test", true],
    ["go test ./...", true],
    ["cargo nextest run", true],
    ["./gradlew :app:test", true],
    ["make check", true],
    ["python manage.py test polls", true],
    ["python tests/runtests.py admin", true],
    ["cd x && bundle exec rspec", true],
    ["bash -lc 'ls'", false],
    ["echo pytest", false],
    ["cat pytest.ini", false],
    ["pip install pytest", false],
    ["npm install", false],
    ["git log -- tests", false],
  ])("%s runs tests: %s", (command, runs) => {
    expect(shellFacts(command).runsTests).toBe(runs);
  });

  test("reads and edits", () => {
    expect(shellFacts("cat a.py b.py > c.txt 2>err.log; sed -i 's/a/b/' d.py")).toMatchObject({
      reads: ["a.py", "b.py"],
      edits: ["c.txt", "d.py"],
    });
    expect(shellFacts("grep -rn 'x > y' src | head -n 20")).toMatchObject({ edits: [], searches: true });
    expect(shellFacts("cat <<'EOF' > new.py\ncat secret.py > other\nEOF\necho done >> log")).toMatchObject({
      reads: [],
      edits: ["new.py", "log"],
    });
    expect(shellFacts("python x.py >/dev/null 2>&1").edits).toEqual([]);
    expect(shellFacts("echo hi | tee -a notes.md").edits).toEqual(["notes.md"]);
    const patch = "*** Begin Patch\n*** Add File: x.txt\n+hi\n*** Delete File: y.txt\n*** End Patch";
    expect(shellFacts(`apply_patch <<'EOF'\n${patch}\nEOF`).edits).toEqual(["x.txt", "y.txt"]);
    expect(patchedFiles(patch)).toEqual(["x.txt", "y.txt"]);
  });

  test("quotes, escapes, comments and separators", () => {
    expect(
      simpleCommands(`a "b c" 'd;e' f\\ g # no; comment\nh&&i||j;k|l &`).map(({ words }) => words),
    ).toEqual([["a", "b c", "d;e", "f g"], ["h"], ["i"], ["j"], ["k"], ["l"]]);
  });

  test("any text is cut without end or fault", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(..."ab'\"\\ \n;|&<>()#$`12=") }), (script) => {
        for (const { words } of simpleCommands(script))
          for (const word of words) expect(word).toBeTypeOf("string");
        expect(shellFacts(script).reads).toBeInstanceOf(Array);
      }),
    );
  });
});
