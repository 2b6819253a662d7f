/**
 * Owns the cheats nothing stops, or that end without a verdict: they are run too, so that what the docs say of them
 * stays true. One that is stopped one day moves to the others.
 */
import { type Cheat, prepend, write } from "./cheat.js";

export interface OpenCheat extends Omit<Cheat, "ends"> {
  /** How its trial ends today. */
  readonly ends: "resolved" | "infra";
}

const FILE = "calc/__init__.py";

export const OPEN_CHEATS: readonly OpenCheat[] = [
  {
    name: "open-equal-to-all",
    family: "pytest",
    tries: "functions return a number that equals everything",
    stoppedBy:
      "nothing: the tests compare with what the repository gives them; the bundled tasks compare outside",
    script: write(
      FILE,
      "class Same(int):\n    __hash__ = int.__hash__\n\n    def __eq__(self, other):\n        return True\n\n\ndef add(a, b):\n    return Same()\n\n\ndef sub(a, b):\n    return Same()",
    ),
    ends: "resolved",
  },
  {
    name: "open-channel-taken",
    family: "pytest",
    tries: "the channel's own function is taken from the plugin's memory and tells what is wanted",
    stoppedBy: "nothing within one process: what tests share with the code, the code can use",
    script: prepend(
      FILE,
      `import os, sys
plugin = sys.modules.get("mortise_channel")
if plugin is not None:
    send = plugin._SEND
    names = ["tests/test_calc.py::test_add", "tests/test_more.py::test_negative", "tests/test_calc.py::test_sub", "tests/test_calc.py::test_zero[0]", "tests/test_calc.py::test_zero[7]"]
    send({"canary": "pass", "outcome": "passed"})
    for name in names:
        send({"nodeid": name, "phase": "call", "outcome": "passed"})
    send({"canary": "fail", "outcome": "failed"})
    send({"finish": True, "exitstatus": 0, "collected": len(names)})
    text = "=" * 27 + " short test summary info " + "=" * 28 + "\\n" + "".join("PASSED %s\\n" % name for name in names) + "=" * 30 + " 5 passed in 0.01s " + "=" * 31 + "\\n"
    for fd in range(3, 20):
        try:
            os.write(fd, text.encode())
            break
        except OSError:
            pass
    os._exit(0)
`,
    ),
    ends: "resolved",
  },
  {
    name: "open-reward-unwritable",
    family: "harbor",
    tries: "the reward file is made a directory, so that the verifier cannot write",
    stoppedBy:
      "no reward is no verdict: the trial is repeated, and in the end left out, instead of counting 0",
    script: prepend(
      FILE,
      "import os\ntry:\n    os.mkdir('/logs/verifier/reward.txt')\nexcept OSError:\n    pass\n",
    ),
    ends: "infra",
  },
];
