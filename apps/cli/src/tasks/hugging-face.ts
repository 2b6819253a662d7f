/**
 * Owns fetching one revision of a Hugging Face data set: which files hold its rows, and these files in the cache,
 * each checked against the digest the hub gives. Does not read rows (packages/tasks/src/import).
 *
 * H1  What is fetched is a commit. A branch or tag is turned into the commit it names now, which is told.
 * H2  A file is in the cache whole or not at all.
 * H3  The token goes to the hub only, not where it redirects a download to.
 */
import { createHash } from "node:crypto";
import { createWriteStream, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { MortiseError } from "@mortise/contracts";
import { defaultCache } from "@mortise/harness";
import { retry } from "@mortise/kernel";
import { z } from "zod";

export interface HubReference {
  /** `owner/name`. */
  readonly dataset: string;
  /** Commit, branch or tag. */
  readonly revision: string;
  readonly split?: string;
}

export interface HubFiles {
  /** 40 hexadecimal digits. */
  readonly commit: string;
  /** Paths in the cache, in the order of their names. */
  readonly paths: readonly string[];
}

const REFERENCE = /^hf:([\w.-]+\/[\w.-]+)(?:@([\w./-]+?))?(?::([\w-]+))?$/;
const ROW_FILE = /\.(parquet|jsonl|json)$/;
/** Beside rows, a data set has descriptions of itself. */
const NO_ROWS = /(^|\/)(dataset_infos?|config|README|\.[^/]*)\.json$/;
const PATIENCE = { attempts: 4, baseMs: 500, maxMs: 8_000 };

const Info = z.object({
  sha: z.string().regex(/^[0-9a-f]{40}$/),
  siblings: z.array(
    z.object({
      rfilename: z.string(),
      lfs: z.object({ sha256: z.string() }).nullish(),
    }),
  ),
});

/** `hf:owner/name@revision` or `hf:owner/name@revision:split`; undefined for anything that is no such name. */
export function hubReference(source: string): HubReference | undefined {
  if (!source.startsWith("hf:")) return undefined;
  const [, dataset, revision, split] = REFERENCE.exec(source) ?? [];
  if (dataset === undefined || revision === undefined)
    throw refused(
      source,
      dataset === undefined ? "is no name of a data set" : "names no revision",
      "Write hf:owner/name@commit, with :split behind it where there are several.",
    );
  return { dataset, revision, ...(split === undefined ? {} : { split }) };
}

/** Fetches what is not in the cache yet. Throws MORTISE_TASK_SOURCE. */
export async function fetchFromHub(reference: HubReference, note: (line: string) => void): Promise<HubFiles> {
  const { dataset, revision } = reference;
  const info = await infoOf(dataset, revision);
  if (info.sha !== revision)
    note(`${dataset}: ${revision} is ${info.sha} now; name that commit to import the same again`);
  const root = join(defaultCache(), "datasets", dataset.replace("/", "--"), info.sha);
  const files = chosenFiles(reference, info.siblings);
  const paths: string[] = [];
  for (const { rfilename, lfs } of files) {
    const path = join(root, rfilename);
    if (!existsSync(path)) {
      note(`fetching ${rfilename}`);
      await download(
        `${endpoint()}/datasets/${dataset}/resolve/${info.sha}/${encodePath(rfilename)}`,
        path,
        lfs?.sha256,
      );
    }
    paths.push(path);
  }
  return { commit: info.sha, paths };
}

type Sibling = z.infer<typeof Info>["siblings"][number];

function chosenFiles({ dataset, split }: HubReference, siblings: readonly Sibling[]): Sibling[] {
  const files = siblings
    .filter(({ rfilename }) => ROW_FILE.test(rfilename) && !NO_ROWS.test(rfilename) && isBelow(rfilename))
    .toSorted((a, b) => (a.rfilename < b.rfilename ? -1 : 1));
  const splits = [...new Set(files.map(({ rfilename }) => splitOf(rfilename)))];
  if (files.length === 0)
    throw refused(
      dataset,
      "has no parquet, JSONL or JSON files",
      "Download and convert it, and import the file.",
    );
  if (split === undefined && splits.length > 1)
    throw refused(
      dataset,
      `has several splits: ${splits.join(", ")}`,
      `Name one: hf:${dataset}@commit:${splits[0]}.`,
    );
  const chosen = split === undefined ? files : files.filter(({ rfilename }) => splitOf(rfilename) === split);
  if (chosen.length > 0) return chosen;
  throw refused(dataset, `has no split ${split}`, `Name one of ${splits.join(", ")}.`);
}

/** `data/train-00000-of-00002.parquet` is of `train`. */
function splitOf(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return name.replace(/(-\d+-of-\d+)?\.\w+$/, "");
}

/** A name the hub gives becomes a path here. */
function isBelow(path: string): boolean {
  return !path.startsWith("/") && !path.includes("\\") && !path.split("/").includes("..");
}

function encodePath(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

async function infoOf(dataset: string, revision: string): Promise<z.infer<typeof Info>> {
  const url = `${endpoint()}/api/datasets/${dataset}/revision/${encodeURIComponent(revision)}?blobs=true`;
  const response = await request(url);
  const info = Info.safeParse(await response.json().catch(() => undefined));
  if (info.success) return info.data;
  throw refused(url, "does not answer as the hub does", "Check HF_ENDPOINT.");
}

/** H2 */
async function download(url: string, path: string, sha256: string | undefined): Promise<void> {
  mkdirSync(dirname(path), { recursive: true });
  const partial = `${path}.${process.pid}.partial`;
  const isWhole = await retry(
    async () => {
      const response = await request(url);
      const hash = createHash("sha256");
      const body = Readable.fromWeb(response.body as ReadableStream);
      body.on("data", (chunk: Buffer) => hash.update(chunk));
      await pipeline(body, createWriteStream(partial));
      return sha256 === undefined || hash.digest("hex") === sha256;
    },
    { ...PATIENCE, isRetryable: (error) => !(error instanceof MortiseError) },
  ).catch((error: unknown) => {
    rmSync(partial, { force: true });
    throw error instanceof MortiseError ? error : unreachable(url, error);
  });
  if (isWhole) return renameSync(partial, path);
  rmSync(partial, { force: true });
  throw refused(
    url,
    "has other bytes than the hub says",
    "Import again; if it stays so, download the file elsewhere.",
  );
}

/** A reply with status 200. Failures of the hub and of the way to it are tried again. */
async function request(url: string): Promise<Response> {
  const token = process.env.HF_TOKEN;
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await retry(async () => {
    const reply = await fetch(url, { headers });
    if (reply.status >= 500 || reply.status === 429) throw new Error(`status ${reply.status}`);
    return reply;
  }, PATIENCE).catch((error: unknown) => {
    throw unreachable(url, error);
  });
  if (response.ok && response.body !== null) return response;
  const isDenied = response.status === 401 || response.status === 403;
  throw refused(
    url,
    `answers ${response.status}`,
    isDenied ? "Set HF_TOKEN to a token that may read it." : "Check the name and the revision.",
  );
}

function endpoint(): string {
  return (process.env.HF_ENDPOINT ?? "https://huggingface.co").replace(/\/$/, "");
}

function unreachable(url: string, cause: unknown): MortiseError {
  const inner = cause instanceof Error ? (cause.cause ?? cause) : cause;
  return new MortiseError({
    code: "MORTISE_TASK_SOURCE",
    message: `${url}: cannot be reached: ${inner instanceof Error ? inner.message : String(inner)}.`,
    fix: "Where there is no network, download the files of the data set elsewhere and give their directory.",
    cause,
    detail: { source: url },
  });
}

function refused(source: string, what: string, fix: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_TASK_SOURCE",
    message: `${source} ${what}.`,
    fix,
    detail: { source },
  });
}
