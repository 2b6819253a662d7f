/** Owns showing which builds failed and of what. */
import { BUILD_CAUSES, type BuildState } from "@mortise/tasks/build";

export function failureLines(failed: readonly BuildState[]): string[] {
  return failed.flatMap(({ task, cause, message = "", fix }) => [
    `${task}: ${cause}: ${message.replace(`${task}: `, "").replaceAll("\n", "\n  ")}`,
    ...(fix === undefined ? [] : [`  fix: ${fix}`]),
  ]);
}

/** A line a cause, the most frequent first. */
export function causeTable(failed: readonly BuildState[]): string[] {
  const rows = BUILD_CAUSES.map((cause) => ({ cause, of: failed.filter((row) => row.cause === cause) }))
    .filter(({ of }) => of.length > 0)
    .sort((a, b) => b.of.length - a.of.length);
  const width = Math.max("cause".length, ...rows.map(({ cause }) => cause.length));
  return [
    `${"cause".padEnd(width)}  failed  first`,
    ...rows.map(
      ({ cause, of }) => `${cause.padEnd(width)}  ${String(of.length).padStart(6)}  ${of[0]!.task}`,
    ),
  ];
}
