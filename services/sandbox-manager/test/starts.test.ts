/** The bound on containers being started at once. */
import { expect, test } from "vitest";
import { Starts } from "../src/backend/runc/starts.js";

test("starts wait for their turn, in order, until an earlier one is up or has ended", async () => {
  const starts = new Starts(2);
  const begun: number[] = [];
  const up = new Set<number>();
  const ends = Array.from({ length: 5 }, () => Promise.withResolvers<number>());
  const all = ends.map(({ promise }, at) =>
    starts.pass(
      () => {
        begun.push(at);
        return promise;
      },
      () => up.has(at),
    ),
  );
  await expect.poll(() => begun).toEqual([0, 1]);
  up.add(1);
  await expect.poll(() => begun).toEqual([0, 1, 2]);
  ends[0]!.resolve(0);
  await expect.poll(() => begun).toEqual([0, 1, 2, 3]);
  ends[2]!.reject(new Error("refused"));
  await expect(all[2]).rejects.toThrow("refused");
  await expect.poll(() => begun).toEqual([0, 1, 2, 3, 4]);
  for (const [at, { resolve }] of ends.entries()) resolve(at);
  expect(await Promise.all([all[0], all[1], all[3], all[4]])).toEqual([0, 1, 3, 4]);
});
