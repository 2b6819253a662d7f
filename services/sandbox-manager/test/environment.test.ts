/** What a command in a sandbox finds in its environment before anybody adds to it. */
import { expect, test } from "vitest";
import { environmentOf } from "../src/environment.js";

test("an image's own PATH and variables stand; its user's home does not", () => {
  const environment = { PATH: "/opt/conda/bin:/usr/bin", SETTING: "of the image", HOME: "/root" };
  expect(environmentOf({ defaults: { environment } })).toEqual({
    PATH: "/opt/conda/bin:/usr/bin",
    SETTING: "of the image",
    HOME: "/tmp",
    TMPDIR: "/tmp",
    LANG: "C.UTF-8",
  });
});

test("an image that says nothing gets the usual places", () => {
  expect(environmentOf({ defaults: { environment: {} } }).PATH).toContain("/usr/bin");
});
