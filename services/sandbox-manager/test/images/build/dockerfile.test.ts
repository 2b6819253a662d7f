/** What of a Dockerfile is accepted, what is refused with which line, and what is made of the rest. */
import { MortiseError } from "@mortise/contracts";
import { describe, expect, test } from "vitest";
import { parseDockerfile } from "../../../src/images/build/dockerfile.js";
import { buildFailed, causeOf } from "../../../src/images/build/failure.js";
import {
  type BuildRules,
  checkDockerfile,
  checkTriggers,
  pinnedDockerfile,
} from "../../../src/images/build/rules.js";
import { declaredArguments } from "../../../src/images/build/variables.js";

const RULES: BuildRules = { args: {}, allowUnpinned: false, hasNetwork: false };

const bases = (text: string, rules: Partial<BuildRules> = {}) =>
  checkDockerfile(parseDockerfile(text), { ...RULES, ...rules }).map(({ reference }) => reference);

function refusal(text: string, rules: Partial<BuildRules> = {}): string {
  try {
    bases(text, rules);
  } catch (error) {
    if (error instanceof MortiseError) return `${error.code}: ${error.message} ${error.fix}`;
    throw error;
  }
  return "accepted";
}

describe("base images", () => {
  test("are named exactly, wherever they are used", () => {
    const digest = `sha256:${"a".repeat(64)}`;
    expect(
      bases(`ARG V=3.11\nFROM python:\${V}-slim AS Build\nFROM host/x@${digest}\nCOPY --from=build /a /a
COPY --from=0 /b /b\nCOPY --chown=1:1 --from=node:20.1 /c /c\nFROM build\nFROM scratch\n`),
    ).toEqual(["python:3.11-slim", `host/x@${digest}`, "node:20.1"]);
    expect(bases("ARG V=1\nFROM a:$V", { args: { V: "2" } })).toEqual(["a:2"]);
    expect(bases("ARG V\nFROM a:$" + "{V:-7}$" + "{V:+x}")).toEqual(["a:7"]);
  });

  test.each([
    ["FROM debian", "line 1: debian is whatever"],
    ["# x\nFROM debian:latest", "line 2"],
    ["FROM a:1\nCOPY --from=tools /x /x", "line 2: tools is whatever"],
    ["ARG V=latest\nFROM a:$V", "a:latest is whatever"],
    ["ARG V\nFROM a:$V", "depends on V"],
    ["FROM a:1 AS b\nARG V=2\nFROM c:$V", "depends on V"],
    ["FROM a:1$(id)", "is no name of an image"],
    ["FROM --platform=windows/amd64 a:1", "--platform=windows/amd64"],
    ["FROM A:1", "repository"],
    ["FROM a:1 AS b c", "FROM image [AS name]"],
    ["RUN x", "no FROM"],
  ])("%s is refused", (text, why) => {
    expect(refusal(text)).toContain("MORTISE_TASK_BUILD");
    expect(refusal(text)).toContain(why);
  });

  test("without a tag are a site's to allow", () => {
    expect(refusal("FROM debian")).toContain("sandbox.images.build.allowUnpinned");
    expect(bases("FROM debian", { allowUnpinned: true })).toEqual(["debian"]);
  });
});

describe("with a closed network", () => {
  test.each([
    "ADD http://host/x /x",
    "ADD HTTPS://host/x /x",
    'ADD ["https://host/x", "/x"]',
    "ADD a \\\n # comment\n\n https://host/x /x/",
    "add --chown=1 git@host:x /x",
    "ARG U=http://host\nADD $U /x",
    "ADD ht\\tp://host/x /x",
    'ADD "http://host/x" /x',
    "ONBUILD ADD http://host/x /x",
    "RUN true \\  \nADD http://host/x /x\nADD https://host/y /y",
    "RUN true \\\u00a0\nADD http://host/x /x",
  ])("%j is not fetched", (line) => {
    expect(refusal(`FROM a:1\n${line}`)).toContain("may be fetched by the engine");
  });

  test("files are added, and with a network everything is", () => {
    expect(bases('FROM a:1\nADD a.tar b-*.txt /x/\nADD ["c", "/c"]')).toEqual(["a:1"]);
    expect(bases("FROM a:1\nADD http://host/x /x", { hasNetwork: true })).toEqual(["a:1"]);
  });

  test("what a base brings along is looked at too", () => {
    const base = { line: 1, reference: "a:1" };
    expect(() => checkTriggers(["ADD http://host/x /x"], base, RULES)).toThrow("may be fetched");
    expect(() => checkTriggers(["COPY --from=other /x /x"], base, { ...RULES, hasNetwork: true })).toThrow(
      "copies from another image",
    );
    expect(() => checkTriggers(["RUN make", "COPY . /app"], base, RULES)).not.toThrow();
  });
});

describe("reading", () => {
  test.each([
    ["FROM a:1\nRUN <<EOF\nADD http://x /x\nEOF", "needs BuildKit"],
    ["FROM a:1\nRUN --mount=type=secret,id=k cat /run/secrets/k", "--mount=type=secret,id=k needs BuildKit"],
    ["FROM a:1\nHELLO x", '"HELLO" is no instruction'],
    ["# escape=`\nFROM a:1\nRUN x `\nADD http://x /x", "escape sign"],
    ["# other=1\n#ESCAPE = `\nFROM a:1", "escape sign"],
    [`FROM a:1\n#${"x".repeat(1 << 20)}`, "over 1048576 bytes"],
  ])("%j is refused", (text, why) => {
    expect(refusal(text)).toContain(why);
  });

  test("here-strings and shifts of a shell are commands", () => {
    expect(bases("# escape=\\\nFROM a:1\nRUN cat <<<word; echo $((1<<2))")).toEqual(["a:1"]);
  });

  test("arguments are those that are declared", () => {
    const { instructions } = parseDockerfile('ARG A=1 B\nFROM x:1\nARG "C"\nARG D="a b" E=\'c\'');
    expect([...declaredArguments(instructions)]).toEqual(["A", "B", "C", "D", "E"]);
  });
});

test("bases are replaced where they stand, and each stage is marked", () => {
  const text = "ARG V=1\nFROM --platform=$BUILDPLATFORM \\\n  a:$V AS One # no comment here\n";
  expect(refusal(text)).toContain("FROM image [AS name]");
  const dockerfile = parseDockerfile(
    "ARG V=1\r\nFROM --platform=$BUILDPLATFORM \\\r\n  a:$V AS One\r\nRUN x \\\n  y\nFROM one\nCOPY --chown=1 --from=b:2 \\\n /x /y\nCOPY --from=one /z /z",
  );
  expect(pinnedDockerfile(dockerfile, RULES, (name) => `sha256:of-${name}`, "k=v")).toBe(
    "ARG V=1\nFROM sha256:of-a:1 AS one\nLABEL k=v io.mortise.base=sha256:of-a:1\nRUN x \\\n  y\nFROM one\nLABEL k=v\nCOPY --from=sha256:of-b:2 --chown=1 /x /y\nCOPY --from=one /z /z",
  );
});

test.each([
  ["network", ["Could not resolve host: pypi.org"], "The command '/bin/sh -c x' returned a non-zero code: 6"],
  [
    "network",
    ["Error: getaddrinfo EAI_AGAIN host"],
    "The command '/bin/sh -c x' returned a non-zero code: 1",
  ],
  ["out-of-space", ["tar: write error: No space left on device"], "... returned a non-zero code: 2"],
  ["out-of-memory", [], "The command '/bin/sh -c x' returned a non-zero code: 137"],
  ["command-failed", ["error: no rule"], "The command '/bin/sh -c make' returned a non-zero code: 2"],
  [
    "missing-file",
    [],
    "COPY failed: file not found in build context or excluded by .dockerignore: stat x: file does not exist",
  ],
  ["dockerfile", [], "dockerfile parse error line 3: unknown instruction: X"],
  ["engine", [], "unexpected EOF"],
] as const)("%s: %j %s", (cause, output, message) => {
  expect(causeOf({ output, message })).toBe(cause);
});

test("whose fault a failure is decides about another attempt", () => {
  const of = (cause: Parameters<typeof buildFailed>[2], network = "bridge") =>
    buildFailed("t", { step: "2/3 : RUN x", output: ["last words"], message: "m" }, cause, network);
  expect(of("command-failed")).toMatchObject({ code: "MORTISE_TASK_BUILD", disposition: "terminal" });
  expect(of("command-failed").message).toContain("command-failed in step 2/3 : RUN x: m\n  last words");
  expect(of("network")).toMatchObject({ code: "MORTISE_SANDBOX_IMAGE_BUILD", disposition: "retry" });
  expect(of("network", "none")).toMatchObject({
    code: "MORTISE_TASK_BUILD",
    fix: expect.stringContaining("sandbox.images.build.network"),
  });
  expect(of("out-of-space")).toMatchObject({ disposition: "retry" });
});
