/**
 * Fetching a revision of a data set, from a local server that answers as the hub does (the shape of its API, not
 * the hub): commits, siblings with digests, files behind a redirect.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { fetchFromHub, hubReference } from "../../src/tasks/hugging-face.js";

const COMMIT = "0123456789abcdef0123456789abcdef01234567";
const FILES: Record<string, string> = {
  "data/train-00000-of-00002.jsonl": '{"n":1}\n',
  "data/train-00001-of-00002.jsonl": '{"n":2}\n',
  "data/test-00000-of-00001.jsonl": '{"n":3}\n',
  "README.md": "text",
  "dataset_infos.json": "{}",
};

interface Hub {
  readonly server: Server;
  readonly requests: { readonly url: string; readonly token: string | undefined }[];
  /** Answers to give before the right one. */
  readonly failures: number[];
  damaged: boolean;
  host: string;
}

let hub: Hub;
let cache: string;
const notes: string[] = [];
const note = (line: string) => notes.push(line);

beforeEach(async () => {
  cache = mkdtempSync(join(tmpdir(), "mortise-hub-"));
  notes.length = 0;
  const server = createServer((request, response) => answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  hub = { server, requests: [], failures: [], damaged: false, host: `http://127.0.0.1:${port}` };
  vi.stubEnv("HF_ENDPOINT", hub.host);
  vi.stubEnv("MORTISE_CACHE", cache);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  hub.server.closeAllConnections();
  await new Promise((resolve) => hub.server.close(resolve));
  rmSync(cache, { recursive: true, force: true });
});

function answer(request: IncomingMessage, response: ServerResponse): void {
  const url = request.url ?? "";
  hub.requests.push({ url, token: request.headers.authorization });
  const failure = hub.failures.shift();
  if (failure !== undefined) return void response.writeHead(failure).end();
  if (/^\/api\/datasets\/owner\/set\/revision\/(main|[0-9a-f]{40})\?blobs=true$/.test(url)) {
    const siblings = Object.entries(FILES).map(([rfilename, content]) => ({
      rfilename,
      ...(rfilename.startsWith("data/")
        ? { lfs: { sha256: createHash("sha256").update(content).digest("hex") } }
        : {}),
    }));
    return void response.end(JSON.stringify({ id: "owner/set", sha: COMMIT, siblings }));
  }
  const file = new RegExp(`^/datasets/owner/set/resolve/${COMMIT}/(.+)$`).exec(url)?.[1];
  // Large files of the hub lie on another host: "localhost" is one to fetch, with the same server behind it.
  if (file !== undefined)
    return void response
      .writeHead(302, { location: `${hub.host.replace("127.0.0.1", "localhost")}/blob/${file}` })
      .end();
  const blob = FILES[/^\/blob\/(.+)$/.exec(url)?.[1] ?? ""];
  if (blob === undefined) return void response.writeHead(404).end();
  response.end(hub.damaged ? `${blob}!` : blob);
}

describe("a data set is named", () => {
  test("with a revision and, if need be, a split", () => {
    expect(hubReference("hf:a/b.c@refs/pr/1:train")).toEqual({
      dataset: "a/b.c",
      revision: "refs/pr/1",
      split: "train",
    });
    expect(hubReference(`hf:a/b@${COMMIT}`)).toEqual({ dataset: "a/b", revision: COMMIT });
    expect(hubReference("file.jsonl")).toBeUndefined();
  });

  test.each([
    ["hf:a/b", "hf:a/b names no revision."],
    ["hf:a", "hf:a is no name of a data set."],
  ])("%s is refused", (source, message) => {
    expect(() => hubReference(source)).toThrow(message);
  });
});

describe("a revision is fetched", () => {
  test("once: the files of the split, in order, whole, by commit", async () => {
    const fetched = await fetchFromHub({ dataset: "owner/set", revision: COMMIT, split: "train" }, note);
    expect(fetched.commit).toBe(COMMIT);
    expect(fetched.paths.map((path) => readFileSync(path, "utf8"))).toEqual(['{"n":1}\n', '{"n":2}\n']);
    expect(fetched.paths[0]).toBe(
      join(cache, "datasets/owner--set", COMMIT, "data/train-00000-of-00002.jsonl"),
    );
    const before = hub.requests.length;
    expect(await fetchFromHub({ dataset: "owner/set", revision: COMMIT, split: "train" }, note)).toEqual(
      fetched,
    );
    expect(hub.requests.length).toBe(before + 1);
  });

  test("a branch is told as the commit it is (H1)", async () => {
    const { commit } = await fetchFromHub({ dataset: "owner/set", revision: "main", split: "test" }, note);
    expect(commit).toBe(COMMIT);
    expect(notes[0]).toBe(`owner/set: main is ${COMMIT} now; name that commit to import the same again`);
  });

  test("the token goes to the hub and nowhere else (H3)", async () => {
    vi.stubEnv("HF_TOKEN", "secret-token");
    await fetchFromHub({ dataset: "owner/set", revision: COMMIT, split: "test" }, note);
    for (const { url, token } of hub.requests)
      expect([url, token]).toEqual([url, url.startsWith("/blob/") ? undefined : "Bearer secret-token"]);
    expect(hub.requests.some(({ url }) => url.startsWith("/blob/"))).toBe(true);
  });

  test("again after failures of the hub", async () => {
    hub.failures.push(503, 429);
    const { paths } = await fetchFromHub({ dataset: "owner/set", revision: COMMIT, split: "test" }, note);
    expect(paths).toHaveLength(1);
  });
});

describe("it is refused", () => {
  const fetching = (split?: string, dataset = "owner/set") =>
    fetchFromHub({ dataset, revision: COMMIT, ...(split === undefined ? {} : { split }) }, note);

  test("when several splits are there and none is named, or none has the name", async () => {
    await expect(fetching()).rejects.toThrow("owner/set has several splits: test, train.");
    await expect(fetching("dev")).rejects.toMatchObject({ fix: "Name one of test, train." });
  });

  test("when bytes are not those the hub names, and nothing of them stays (H2)", async () => {
    hub.damaged = true;
    await expect(fetching("test")).rejects.toThrow("has other bytes than the hub says.");
    expect(readdirSync(join(cache, "datasets/owner--set", COMMIT, "data"))).toEqual([]);
  });

  test("when the hub denies it or does not know it", async () => {
    await expect(fetching("test", "owner/other")).rejects.toThrow("answers 404.");
    hub.failures.push(401);
    await expect(fetching("test")).rejects.toMatchObject({
      fix: "Set HF_TOKEN to a token that may read it.",
    });
  });

  test("when there is no network, with what to do instead", async () => {
    hub.server.closeAllConnections();
    await new Promise((resolve) => hub.server.close(resolve));
    await expect(fetching("test")).rejects.toMatchObject({
      code: "MORTISE_TASK_SOURCE",
      message: expect.stringContaining("cannot be reached: connect ECONNREFUSED"),
      fix: "Where there is no network, download the files of the data set elsewhere and give their directory.",
    });
    expect(existsSync(join(cache, "datasets"))).toBe(false);
  });
});
