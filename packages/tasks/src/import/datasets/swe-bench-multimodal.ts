/**
 * Owns SWE-bench Multimodal: version 5 of SWE-bench's records with `image_assets`, the pictures of the issue and
 * of both patches. Sources of facts: SWE-bench/SWE-bench, docs/guides/datasets.md and harness/run_evaluation.py
 * (pictures of a patch are fetched and put beside it, pictures of the issue are links).
 *
 * The agent is told the links the issue's text does not have already. Pictures of a patch are files no text patch
 * holds, and a task is graded without a network: such records are refused.
 */
import type { RowFields } from "../fields.js";
import { isObject } from "../rows/row.js";
import { type Dataset, EVAL_SCRIPT, IMAGE } from "./dataset.js";

const PATCH_PICTURES = ["patch", "test_patch"] as const;

export const sweBenchMultimodal: Dataset = {
  name: "swe-bench-multimodal",
  title: "SWE-bench Multimodal",
  columns: ["issue_id", "issue_url", "pr_url"],
  hasTestPatch: true,
  hasBaseCommit: true,
  patchMakesBug: false,
  recognises: (fields) => "base_commit" in fields && hasPictures(fields.image_assets),
  read(fields) {
    const assets = fields.object("image_assets");
    for (const name of PATCH_PICTURES) refusePictures(fields, name, assets[name]);
    const statement = withLinks(fields.text("problem_statement") ?? "", linksOf(fields, assets));
    return {
      language: fields.text("language")?.toLowerCase() ?? "javascript",
      image: fields.required(["image", ...IMAGE]),
      workdir: fields.text("workdir") ?? "/testbed",
      parser: fields.required("log_parser"),
      evaluation: { kind: "script", text: fields.required(EVAL_SCRIPT) },
      statement,
    };
  },
};

/** Whether any list of pictures, as an object or as JSON of one, has something in it. */
function hasPictures(value: unknown): boolean {
  if (typeof value === "string") return /"\s*:\s*\[\s*[^\]\s]/.test(value);
  return isObject(value) && Object.values(value).some((list) => Array.isArray(list) && list.length > 0);
}

function refusePictures(fields: RowFields, name: string, value: unknown): void {
  if (value === undefined || value === null || (Array.isArray(value) && value.length === 0)) return;
  fields.refuse(
    `image_assets.${name}`,
    "names files that no text patch holds, and a task is graded without a network",
    "Leave the record out.",
  );
}

function linksOf(fields: RowFields, assets: Readonly<Record<string, unknown>>): string[] {
  const value = assets.problem_statement ?? [];
  const links = Array.isArray(value) ? value.map(linkOf) : [undefined];
  const known = links.filter((link) => link !== undefined);
  if (known.length < links.length)
    fields.refuse(
      "image_assets.problem_statement",
      "is no list of links",
      "Write it as a list of http(s) addresses.",
    );
  return [...new Set(known)];
}

/** A link, or an object with one in `url`, as the harness takes both kinds for patches. */
function linkOf(value: unknown): string | undefined {
  const link = isObject(value) ? value.url : value;
  return typeof link === "string" && /^https?:\/\/\S+$/.test(link) ? link : undefined;
}

function withLinks(statement: string, links: readonly string[]): string {
  const absent = links.filter((link) => !statement.includes(link));
  if (absent.length === 0) return statement;
  return `${statement.trimEnd()}\n\nImages of this issue:\n${absent.map((link) => `- ${link}\n`).join("")}`;
}
