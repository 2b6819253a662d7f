/** Values a task takes from its host: only what the site allows, and kept out of texts. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the templates of task files are what is tested
import { MortiseError } from "@mortise/contracts";
import { describe, expect, test } from "vitest";
import { resolveVariables, withoutSecrets } from "../src/index.js";

describe("variables of the host", () => {
  const host = {
    environment: { NAME: "value", EMPTY: "", HOME: "/root" },
    allowed: ["NAME", "EMPTY", "UNSET"],
  };
  const resolve = (text: string) => resolveVariables({ A: text }, host, "environment.env").values.A;

  test.each([
    ["plain $NAME", "plain $NAME"],
    ["${NAME}/x", "value/x"],
    ["${NAME:-other}", "value"],
    ["${UNSET:-other}", "other"],
    ["${EMPTY:-other}", "other"],
    ["${EMPTY}", ""],
    ["${HOME:-hidden}", "hidden"],
    ["${UNSET:-}", ""],
  ])("%s becomes %s", (text, value) => expect(resolve(text)).toBe(value));

  test.each([
    ["${UNSET}", "is not set"],
    ["${HOME}", "tasks may not read"],
  ])("%s is refused by field: it %s", (text, why) => {
    expect(() => resolve(text)).toThrow(MortiseError);
    expect(() => resolve(text)).toThrow("environment.env.A");
    expect(() => resolve(text)).toThrow(why);
  });

  test("values of the host and of names like a secret's are kept out of texts", () => {
    const variables = { URL: "http://${NAME}/", API_KEY: "written-down", PORT: "8080" };
    const { secrets } = resolveVariables(variables, host, "environment.env");
    expect(withoutSecrets("value written-down written-down-too 8080", secrets)).toBe("*** *** ***-too 8080");
  });
});
