/** Owns reading Ant's JUnit task as Project Lombok prints it: `[junit] [PASS] name`. */
import { linewise } from "../line-parser.js";

const RESULT = /^\[junit\]\s+\[(PASS|FAIL|ERR)\]\s+(.*)$/;

export const ant = linewise({
  name: "ant",
  reads: "Ant's JUnit task",
  startsWith: "[",
  read: (line) => {
    const result = line.startsWith("[junit]") ? RESULT.exec(line) : null;
    return result === null ? undefined : [result[2]!, result[1] === "PASS" ? "passed" : "failed"];
  },
});
