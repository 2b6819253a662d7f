/** Tasks on the shelf: what is graded belongs to the very state of the directory that was asked for. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { SiteConfig } from "@mortise/contracts";
import { taskDigest } from "@mortise/tasks";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ProcessBackend } from "../src/backend/process/backend.js";
import { TaskShelf } from "../src/shelf/tasks.js";

const ID = "add-numbers";
const base = mkdtempSync(path.join(tmpdir(), "mortise-shelf-"));
const tasks = path.join(base, "tasks");
const directory = path.join(tasks, ID);
const backend = new ProcessBackend({ stateDirectory: path.join(base, "state"), warn: () => {} });
let shelf: TaskShelf;

beforeAll(async () => {
  cpSync(path.join(import.meta.dirname, "fixtures/tasks", ID), directory, { recursive: true });
  await backend.start();
  const elsewhere = { directory: base };
  const site = { nats: { url: "nats://x" }, identity: elsewhere, state: elsewhere };
  shelf = new TaskShelf(backend, SiteConfig.parse({ ...site, tasks: { directory: tasks } }));
});
afterAll(async () => {
  await backend.stop();
  rmSync(base, { recursive: true, force: true });
});

const take = () => shelf.get({ $typeName: "mortise.v1.TaskRef", id: ID, digest: taskDigest(directory) });

test("a task rebuilt in its place is graded by its own hidden tests", async () => {
  const before = await take();
  const earlier = await shelf.tests(before);
  writeFileSync(path.join(directory, "tests", "added.txt"), "stricter\n");
  const after = await take();
  expect((await shelf.tests(after)).digest).not.toBe(earlier.digest);
  expect((await shelf.tests(before)).digest).toBe(earlier.digest);
});

test("hidden tests that changed after the task was taken are refused, not used", async () => {
  writeFileSync(path.join(directory, "tests", "added.txt"), "as indexed\n");
  const taken = await take();
  writeFileSync(path.join(directory, "tests", "added.txt"), "altered\n");
  await expect(shelf.tests(taken)).rejects.toMatchObject({ code: "MORTISE_TASK_DIGEST" });
});
