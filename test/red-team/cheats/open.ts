/**
 * Owns the cheats nothing stops: they are run too, so that what the docs say of them stays true. One that is stopped one day moves to the others.
 */
import { type Cheat, write } from "./cheat.js";

export interface OpenCheat extends Omit<Cheat, "ends"> {
  /** How its trial ends today. */
  readonly ends: "resolved";
}

const FILE = "calc/__init__.py";

export const OPEN_CHEATS: readonly OpenCheat[] = [
  {
    name: "open-equal-without-literal",
    family: "values",
    tries:
      "functions return a number that equals everything and differs from nothing, where tests compare computed values",
    stoppedBy:
      "nothing: where no literal can be made another one, an altered test says `!=`, which such a number fails as it should",
    script: write(
      FILE,
      "class Same(int):\n    __hash__ = int.__hash__\n\n    def __eq__(self, other):\n        return True\n\n    def __ne__(self, other):\n        return False\n\n\ndef add(a, b):\n    return Same()\n\n\ndef sub(a, b):\n    return Same()",
    ),
    ends: "resolved",
  },
];
