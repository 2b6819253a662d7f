/** Session tokens by themselves. */
import { expect, test } from "vitest";
import { SessionTokens } from "../src/session/token.js";

test("session tokens carry their terms, sealed: another secret or any change is refused", () => {
  const terms = {
    run: "r",
    trial: "t",
    isEvaluation: true,
    rngKey: "1/x/t",
    budget: { turns: 4, promptTokens: 0, responseTokens: 0, wallClockMs: 0, turnsWithoutCall: 0 },
  };
  const tokens = new SessionTokens("secret");
  const token = tokens.issue(terms);
  expect(tokens.verify(token)).toEqual(terms);
  expect(tokens.issue(terms)).toBe(token);
  expect(new SessionTokens("other").verify(token)).toBeUndefined();
  const bytes = Buffer.from(token, "base64url");
  for (let at = 0; at < bytes.length; at += 7) {
    const changed = Buffer.from(bytes);
    changed[at]! ^= 1;
    expect(tokens.verify(changed.toString("base64url"))).toBeUndefined();
  }
});
