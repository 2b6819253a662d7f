/** What paths cost that nobody has to be authenticated for. */
import { expect, test } from "vitest";
import { target } from "../src/front/routes.js";

/** Node takes no longer request line. */
const LINE_BYTES = 16_000;

const fill = (piece: string) => piece.repeat(LINE_BYTES / piece.length);

// A pattern that looks again from every place takes seconds for one of these: far beyond the test's timeout together.
test.each([`${fill("/")}x`, `${fill("/event_logging")}-`, `${fill("/s/")}`, `${fill("/models/")}`])(
  "a long path holds nobody up (%#)",
  (url) => {
    for (let times = 0; times < 200; times++) {
      const { route } = target({ method: "POST", url, headers: {} });
      expect(route.kind).toBe("unknown");
    }
  },
);

test("slashes at the end, one or many, change nothing", () => {
  for (const end of ["", "/", "////"])
    expect(target({ method: "POST", url: `/v1/responses${end}?x=/`, headers: {} }).route.kind).toBe(
      "model-call",
    );
});
