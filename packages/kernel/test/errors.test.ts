/** What of the file system's refusals is the operator's to mend, by errors a real file system gives. */
import { readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { operatorsError } from "../src/index.js";

function thrownBy(act: () => void): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

test("a missing file is named by its path", () => {
  const path = join(tmpdir(), "mortise-absent", "file");
  expect(operatorsError(thrownBy(() => readFileSync(path)))).toMatchObject({
    code: "MORTISE_OPERATOR_FILES",
    detail: { path },
  });
});

test.skipIf(process.platform !== "linux")(
  "a disk that is full while a file is written has no path to name",
  () => {
    const error = thrownBy(() => writeFileSync("/dev/full", "x"));
    expect(error).not.toHaveProperty("path");
    expect(operatorsError(error)).toMatchObject({
      code: "MORTISE_OPERATOR_DISK_FULL",
      message: expect.stringContaining("ENOSPC"),
    });
  },
);

test("a refusal with neither path nor a disk is nobody's by itself", () => {
  const error = Object.assign(new Error("refused"), { code: "EACCES" });
  expect(operatorsError(error)).toBeUndefined();
});
