/** A transcript is files by name and size, whatever else an agent put beside them. */
import { gunzipSync } from "node:zlib";
import { MortiseError } from "@mortise/contracts";
import { expect, test } from "vitest";
import { MAX_TRANSCRIPT_BYTES, takeTranscript } from "../../src/harness/transcript.js";
import { packTar, type TarMember, unpackTar } from "../../src/patch/tar.js";

const HOME = "/home/agent";
const file = (name: string, content: string | Uint8Array): TarMember => ({
  name,
  kind: "file",
  mode: 0o600,
  content: Buffer.from(content),
});

/** A sandbox whose directories hold these members, as a backend packs them. */
function sandboxWith(directories: Readonly<Record<string, readonly TarMember[]>>) {
  return {
    async getTar(directory: string): Promise<Uint8Array> {
      const members = directories[directory];
      if (members === undefined)
        throw new MortiseError({ code: "MORTISE_SANDBOX_SETUP", message: `${directory} is not a directory` });
      return packTar(members);
    },
  };
}

async function filesIn(archive: Uint8Array): Promise<[string, string][]> {
  const members = await unpackTar(gunzipSync(archive), 1024 * 1024 * 1024);
  return members.map(({ name, content }) => [name, Buffer.from(content).toString("utf8")]);
}

test("files that match are kept under their names below the home, sorted", async () => {
  const sandbox = sandboxWith({
    [`${HOME}/.agent/sessions`]: [
      { name: "b", kind: "directory", mode: 0o755 },
      file("b/2.jsonl", "two"),
      file("a.jsonl", "one"),
      file("notes.txt", "no transcript"),
    ],
  });
  const transcript = await takeTranscript(sandbox, HOME, [".agent/sessions/**/*.jsonl"]);
  expect(transcript).toMatchObject({ nFiles: 2, isTruncated: false });
  expect(await filesIn(transcript!.archive)).toEqual([
    [".agent/sessions/a.jsonl", "one"],
    [".agent/sessions/b/2.jsonl", "two"],
  ]);
});

test("a link is no file, wherever it leads", async () => {
  const sandbox = sandboxWith({
    [`${HOME}/log`]: [{ name: "x.json", kind: "symlink", mode: 0o777, target: "/etc/passwd" }],
  });
  expect(await takeTranscript(sandbox, HOME, ["log/*.json"])).toBeUndefined();
});

test("a harness that wrote nothing has no transcript", async () => {
  expect(await takeTranscript(sandboxWith({}), HOME, ["log/*.json"])).toBeUndefined();
});

test("another failure of the sandbox is not taken for an absence", async () => {
  const sandbox = {
    getTar: async () => {
      throw new MortiseError({ code: "MORTISE_SANDBOX_LOST", message: "gone" });
    },
  };
  await expect(takeTranscript(sandbox, HOME, ["log/*.json"])).rejects.toMatchObject({
    code: "MORTISE_SANDBOX_LOST",
  });
});

test("what is too much is left out whole, and that is said", async () => {
  const sandbox = sandboxWith({
    [`${HOME}/log`]: [file("a.json", "small"), file("b.json", new Uint8Array(MAX_TRANSCRIPT_BYTES))],
  });
  const transcript = await takeTranscript(sandbox, HOME, ["log/*.json"]);
  expect(transcript).toMatchObject({ nFiles: 1, isTruncated: true });
  expect(await filesIn(transcript!.archive)).toEqual([["log/a.json", "small"]]);
});
