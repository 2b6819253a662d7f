/**
 * Owns tests/test.sh of an imported task: it runs eval.sh, prints one log on standard output, and ends with the
 * exit code of the tests. Does not judge; only tasks graded by an exit code write a reward, as Harbor has it.
 */
import type { TaskRecord } from "../record.js";

const START = `#!/bin/sh
tests=$(cd "$(dirname "$0")" && pwd)
`;

const AS_IT_IS = `${START}exec bash "$tests/eval.sh" 2>&1
`;

/** Parsers read between marks; a script that makes none has its whole output between them. */
const MARKED = `${START}exec 2>&1
echo '>>>>> Start Test Output'
bash "$tests/eval.sh"
code=$?
echo '>>>>> End Test Output'
echo "Test Exit Code: $code"
exit "$code"
`;

const BY_EXIT_CODE = `${START}log=$(mktemp)
bash "$tests/eval.sh" > "$log" 2>&1
cat "$log"
reward=0
if [ "$(grep '^OPENSWE_EXIT_CODE=' "$log" | tail -n 1)" = OPENSWE_EXIT_CODE=0 ]; then reward=1; fi
mkdir -p /logs/verifier
echo "$reward" > /logs/verifier/reward.txt
`;

export function testScript({ evaluation, isExitCodeOnly }: TaskRecord): string {
  if (isExitCodeOnly) return BY_EXIT_CODE;
  const isMarked = evaluation.kind === "built" || evaluation.text.includes(">>>>> Start Test Output");
  return isMarked ? AS_IT_IS : MARKED;
}
