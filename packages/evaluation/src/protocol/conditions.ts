/**
 * Owns whether two results were measured under the same conditions, and what differs where not. Model, harness and tasks
 * are what one compares; everything else has to agree.
 *
 * Q1  Two results without a recorded protocol are compared as they are; one without and one with are not.
 * Q2  Names of protocols do not count; their settings do, each by its own name.
 * Q3  One harness in two versions is two harnesses. Two harnesses are a comparison of harnesses.
 * Q4  A task must be the same task on both sides, judged by the same graders.
 */

/** What one result was measured under. */
export interface Conditions {
  /** As recorded, defaults filled in; undefined where the run names none. */
  readonly protocol: Readonly<Record<string, unknown>> | undefined;
  readonly harness: string | null;
  /** As the sandboxes reported them. */
  readonly harnessVersions: readonly string[];
  /** Of every task with a trial: digest of its directory and the graders that judged it. */
  readonly tasks: ReadonlyMap<string, { readonly digest: string; readonly graders: ReadonlySet<string> }>;
}

export interface Difference {
  /** `limits.maxTurns`, `harness.version`, `tasks`, `graders`, … */
  readonly field: string;
  readonly before: string;
  readonly after: string;
}

const NAME = "name";
const NAMED_TASKS = 4;
const ABSENT = "–";

/** Empty where the two may be compared. */
export function differencesOf(before: Conditions, after: Conditions): Difference[] {
  if (before.protocol === undefined && after.protocol === undefined) return []; // Q1
  return [
    ...protocolDifferences(before.protocol, after.protocol),
    ...versionDifference(before, after),
    ...taskDifferences(before, after),
  ];
}

function protocolDifferences(before: Conditions["protocol"], after: Conditions["protocol"]): Difference[] {
  if (before === undefined || after === undefined) {
    const told = (one: Conditions["protocol"]) => (one === undefined ? "none recorded" : String(one[NAME]));
    return [{ field: "protocol", before: told(before), after: told(after) }];
  }
  const [a, b] = [settingsOf(before), settingsOf(after)];
  return [...new Set([...a.keys(), ...b.keys()])]
    .filter((field) => field !== NAME && a.get(field) !== b.get(field)) // Q2
    .sort()
    .map((field) => ({ field, before: a.get(field) ?? ABSENT, after: b.get(field) ?? ABSENT }));
}

/** Every value by the path of its keys; a list is one value. */
function settingsOf(value: object, prefix = ""): Map<string, string> {
  const found = new Map<string, string>();
  for (const [key, inner] of Object.entries(value)) {
    if (inner === undefined) continue;
    const field = `${prefix}${key}`;
    if (typeof inner === "object" && inner !== null && !Array.isArray(inner))
      for (const [path, text] of settingsOf(inner, `${field}.`)) found.set(path, text);
    else found.set(field, typeof inner === "string" ? inner : JSON.stringify(inner));
  }
  return found;
}

/** Q3 */
function versionDifference(before: Conditions, after: Conditions): Difference[] {
  if (before.harness !== after.harness) return [];
  return differing("harness.version", before.harnessVersions, after.harnessVersions);
}

/** Q4 */
function taskDifferences(before: Conditions, after: Conditions): Difference[] {
  const common = [...before.tasks.keys()].filter((task) => after.tasks.has(task)).sort();
  const other = common.filter((task) => before.tasks.get(task)!.digest !== after.tasks.get(task)!.digest);
  const digests = ({ tasks }: Conditions) =>
    other
      .slice(0, NAMED_TASKS)
      .map((task) => `${task}@${tasks.get(task)!.digest.slice(0, 12)}`)
      .join(", ");
  const graders = ({ tasks }: Conditions) => common.flatMap((task) => [...tasks.get(task)!.graders]);
  return [
    ...(other.length === 0
      ? []
      : [
          {
            field: other.length > NAMED_TASKS ? `tasks (${other.length})` : "tasks",
            before: digests(before),
            after: digests(after),
          },
        ]),
    ...differing("graders", graders(before), graders(after)),
  ];
}

/** Of two sets of names. One that is empty says nothing: nothing was judged, or nothing was reported. */
function differing(field: string, before: readonly string[], after: readonly string[]): Difference[] {
  const [a, b] = [before, after].map((names) => [...new Set(names)].sort().join(", "));
  return a === "" || b === "" || a === b ? [] : [{ field, before: a!, after: b! }];
}
