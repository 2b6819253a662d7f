/** What is named ahead is made ready in order, one at a time, and only while it is still wanted. */
import { create } from "@bufbuild/protobuf";
import { PrewarmRequestSchema, type TaskRef } from "@mortise/contracts";
import { createLog } from "@mortise/kernel";
import { beforeEach, expect, test } from "vitest";
import { Prewarmer } from "../src/shelf/prewarmer.js";
import type { ShelvedTask } from "../src/shelf/tasks.js";

let begun: string[];
let released: number;
let next: PromiseWithResolvers<void>;
let prewarmer: Prewarmer;

beforeEach(() => {
  begun = [];
  released = 0;
  next = Promise.withResolvers<void>();
  prewarmer = new Prewarmer({
    tasks: {
      get: async (ref: TaskRef | undefined) => {
        begun.push(ref!.id);
        await next.promise;
        next = Promise.withResolvers<void>();
        return {} as ShelvedTask;
      },
    },
    templates: {
      lease: async () => ({ value: undefined as never, release: () => void released++ }),
    },
    harnesses: { get: async () => undefined as never },
    remotes: { get: () => undefined },
    log: createLog({ service: "test", level: "silent" }),
  });
});

const want = (run: string, ...ids: string[]) =>
  prewarmer.want(
    create(PrewarmRequestSchema, { run, harness: "h", tasks: ids.map((id) => ({ id, digest: "d" })) }),
  );
const finishOne = async () => {
  const n = begun.length;
  next.resolve();
  await expect.poll(() => begun.length > n || released === n).toBe(true);
};

test("one at a time, runs in turns, and nothing stays leased", async () => {
  expect(want("a", "a1", "a2", "a3")).toBe(3);
  want("b", "b1");
  await expect.poll(() => begun).toEqual(["a1"]);
  for (const id of ["a2", "b1", "a3"]) {
    await finishOne();
    await expect.poll(() => begun.at(-1)).toBe(id);
  }
  next.resolve();
  await prewarmer.idle();
  expect(released).toBe(4);
});

test("the latest word of a run counts", async () => {
  want("a", "a1", "a2", "a3");
  await expect.poll(() => begun).toEqual(["a1"]);
  want("a", "a4");
  await finishOne();
  await expect.poll(() => begun).toEqual(["a1", "a4"]);
  next.resolve();
  await prewarmer.idle();
  expect(begun).toEqual(["a1", "a4"]);
});

test("a task that fails holds nothing up, and after a stop nothing is begun", async () => {
  want("a", "a1", "a2", "a3");
  await expect.poll(() => begun).toEqual(["a1"]);
  next.reject(new Error("no such image"));
  next = Promise.withResolvers<void>();
  await expect.poll(() => begun).toEqual(["a1", "a2"]);
  prewarmer.stop();
  next.resolve();
  await prewarmer.idle();
  expect([begun, released, want("a", "a9")]).toEqual([["a1", "a2"], 1, 0]);
});
