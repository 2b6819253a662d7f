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
  const transcript = await takeTranscript(sandbox, {
    home: HOME,
    globs: [".agent/sessions/**/*.jsonl"],
    secrets: ["token-1"],
  });
  expect(transcript).toMatchObject({ nFiles: 2, isTruncated: false });
  expect(await filesIn(transcript!.archive)).toEqual([
    [".agent/sessions/a.jsonl", "one"],
    [".agent/sessions/b/2.jsonl", "two"],
  ]);
});

test("secrets are blotted out, and nothing moves", async () => {
  const sandbox = sandboxWith({ [`${HOME}/log`]: [file("a.json", "key=token-1;token-1 end")] });
  const place = { home: HOME, globs: ["log/*.json"], secrets: ["token-1", ""] };
  const transcript = await takeTranscript(sandbox, place);
  expect(await filesIn(transcript!.archive)).toEqual([["log/a.json", "key=*******;******* end"]]);
});

test("a link is no file, wherever it leads", async () => {
  const sandbox = sandboxWith({
    [`${HOME}/log`]: [{ name: "x.json", kind: "symlink", mode: 0o777, target: "/etc/passwd" }],
  });
  expect(
    await takeTranscript(sandbox, { home: HOME, globs: ["log/*.json"], secrets: ["token-1"] }),
  ).toBeUndefined();
});

test("a harness that wrote nothing has no transcript", async () => {
  expect(
    await takeTranscript(sandboxWith({}), { home: HOME, globs: ["log/*.json"], secrets: ["token-1"] }),
  ).toBeUndefined();
});

const failing = (error: unknown) => ({
  getTar: async (): Promise<Uint8Array> => {
    throw error;
  },
});

test("what cannot be read is said, and is no reason to lose the trial", async () => {
  const sandbox = failing(new Error("archive holds more than 1 bytes"));
  const place = { home: HOME, globs: ["log/*.json"], secrets: [] };
  expect(await takeTranscript(sandbox, place)).toMatchObject({ nFiles: 0, isTruncated: true });
  const absent = failing(Object.assign(new Error("no such directory"), { statusCode: 404 }));
  expect(await takeTranscript(absent, place)).toBeUndefined();
});

test("a sandbox that is lost stays lost", async () => {
  const sandbox = failing(new MortiseError({ code: "MORTISE_SANDBOX_LOST", message: "gone" }));
  await expect(
    takeTranscript(sandbox, { home: HOME, globs: ["log/*.json"], secrets: ["token-1"] }),
  ).rejects.toMatchObject({
    code: "MORTISE_SANDBOX_LOST",
  });
});

test("what is too much is left out whole, and that is said", async () => {
  const sandbox = sandboxWith({
    [`${HOME}/log`]: [file("a.json", "small"), file("b.json", new Uint8Array(MAX_TRANSCRIPT_BYTES))],
  });
  const transcript = await takeTranscript(sandbox, {
    home: HOME,
    globs: ["log/*.json"],
    secrets: ["token-1"],
  });
  expect(transcript).toMatchObject({ nFiles: 1, isTruncated: true });
  expect(await filesIn(transcript!.archive)).toEqual([["log/a.json", "small"]]);
});
