/**
 * Sealing where sandboxes are: in an overlay whose lower layer has the history, on another file system than the store;
 * and what forks of it show. Needs root and git, and mounts.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { mount, unmount } from "../../src/backend/runc/syscalls.js";
import { hideHistory } from "../../src/sealing/hide-history.js";
import { searchForAnswers } from "../../src/sealing/search/search-for-answers.js";
import { canSeal, PATIENT, TestRoot } from "./repositories.js";

let present: TestRoot;
let memory: string;
const mounts: string[] = [];
beforeEach(() => {
  present = new TestRoot();
  memory = mkdtempSync(path.join(present.base, "memory-"));
});
afterEach(() => {
  for (const target of mounts.splice(0).reverse()) unmount(target);
  present.remove();
});

function mounted(type: string, target: string, options: string): string {
  mkdirSync(target, { recursive: true });
  mount(type, target, type, 0, options);
  mounts.push(target);
  return target;
}

function overlay(name: string, lower: readonly string[]): string {
  const [upper, work] = ["upper", "work"].map((part) => path.join(memory, `${name}-${part}`));
  for (const directory of [upper!, work!]) mkdirSync(directory);
  const options = `lowerdir=${lower.join(":")},upperdir=${upper},workdir=${work}`;
  return mounted("overlay", path.join(present.base, name), options);
}

describe.skipIf(!canSeal)("sealing in an overlay", PATIENT, () => {
  test("leaves the layer below alone, and forks are clean", async () => {
    const fix = present.commitFix();
    mounted("tmpfs", memory, "size=64m");
    const template = overlay("template", [present.root]);
    const { head } = await hideHistory(template, present.request());
    expect(await searchForAnswers(template, present.request())).toMatchObject({ isClean: true, nGaps: 0 });
    expect(present.git("rev-parse", "later")).toBe(fix);

    unmount(template);
    mounts.pop();
    const fork = overlay("fork", [path.join(memory, "template-upper"), present.root]);
    const inside = path.join(fork, "app");
    expect(present.gitIn(inside, "status", "--porcelain")).toBe("");
    expect(present.gitIn(inside, "rev-list", "--all")).toBe(head);
    rmSync(path.join(inside, "README.md"));
    expect(present.gitIn(inside, "status", "--porcelain")).toBe("D README.md");
  });
});
