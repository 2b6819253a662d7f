/** Which token files are taken: one that nobody could send is refused at the start, not at each call. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { AgentRuntimeConfig } from "@mortise/contracts";
import { afterAll, expect, test } from "vitest";
import { authorization } from "../src/front/authorization.js";

const directory = mkdtempSync(path.join(tmpdir(), "mortise-authorization-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function withToken(content: string | Uint8Array) {
  const tokenFile = path.join(directory, "token");
  writeFileSync(tokenFile, content);
  return () => authorization(AgentRuntimeConfig.parse({ auth: { tokenFile } }));
}

test.each([
  ["nothing", "\n"],
  ["two lines", "one\ntwo\n"],
  ["two words", "one two\n"],
  ["bytes that are no text", new Uint8Array([0xff, 0, 1])],
])("a file with %s is refused by its field", (_, content) => {
  expect(withToken(content)).toThrow(
    expect.objectContaining({ code: "MORTISE_CONFIG_INVALID", detail: { field: "auth.tokenFile" } }),
  );
});

test("a file with one token, with or without a line's end, is taken", () => {
  for (const content of ["a-token", "a-token\n", "a-token\r\n"]) expect(withToken(content)).not.toThrow();
});

test("a directory in its place is told as such", () => {
  const asked = () => authorization(AgentRuntimeConfig.parse({ auth: { tokenFile: directory } }));
  expect(asked).toThrow(expect.objectContaining({ code: "MORTISE_CONFIG_UNREADABLE" }));
});
