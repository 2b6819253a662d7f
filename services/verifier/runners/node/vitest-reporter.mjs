/** Reports every result of a Vitest run on the channel. Runs in Vitest's own process, beside its other reporters. */
import { createRequire } from "node:module";

const { take } = createRequire(import.meta.url)("./start.cjs");

const OUTCOMES = {
  passed: "passed",
  pass: "passed",
  failed: "failed",
  fail: "failed",
  skipped: "skipped",
  skip: "skipped",
  todo: "skipped",
};

export default class ChannelReporter {
  #send = take().send;
  #isDone = false;

  /** Vitest 3 and up. */
  onTestRunEnd(modules, errors) {
    const results = [...modules].flatMap((module) => [
      ...[...module.children.allTests()].map((test) => ({
        file: module.relativeModuleId ?? module.moduleId,
        titles: titlesOf(test),
        outcome: OUTCOMES[test.result().state],
      })),
      ...module
        .errors()
        .map(() => ({ file: module.relativeModuleId ?? module.moduleId, titles: [], outcome: "error" })),
    ]);
    this.#report(results, errors);
  }

  /** Vitest before 3. */
  onFinished(files = [], errors = []) {
    const results = files.flatMap((file) => [
      ...testsOf(file, []).map(({ titles, outcome }) => ({ file: file.name, titles, outcome })),
      ...(file.result?.errors ?? []).map(() => ({ file: file.name, titles: [], outcome: "error" })),
    ]);
    this.#report(results, errors);
  }

  #report(results, errors) {
    if (this.#isDone) return;
    this.#isDone = true;
    for (const { file, titles, outcome } of results)
      if (outcome !== undefined)
        this.#send({ nodeid: [file, ...titles].join(" > "), file, titles, phase: "call", outcome });
    const isFailed =
      errors.length > 0 || results.some(({ outcome }) => outcome === "failed" || outcome === "error");
    this.#send({
      finish: true,
      exitstatus: isFailed ? 1 : 0,
      collected: results.filter(({ titles }) => titles.length > 0).length,
    });
  }
}

function titlesOf(test) {
  const titles = [test.name];
  for (let parent = test.parent; parent?.type === "suite"; parent = parent.parent)
    titles.unshift(parent.name);
  return titles;
}

function testsOf(task, above) {
  return (task.tasks ?? []).flatMap((one) => {
    const titles = [...above, one.name];
    if (one.type === "suite") return testsOf(one, titles);
    return [{ titles, outcome: OUTCOMES[one.result?.state ?? one.mode] }];
  });
}
