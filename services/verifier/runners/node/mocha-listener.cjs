/**
 * Reports every result of a Mocha run on the channel. Mocha's runner is listened to from before any test file is loaded.
 * Two canaries, one that passes and one that fails, are run by a runner of their own around the tests, without a
 * reporter: whatever makes failing tests pass makes the second pass too.
 */
"use strict";

const path = require("node:path");

exports.listen = (mocha, { send, wish }) => {
  const load = (name) => require(path.join(mocha, "lib", name));
  const Runner = load("runner.js");
  const Suite = load("suite.js");
  const Test = load("test.js");
  const originalRun = Runner.prototype.run;
  const canaries = new WeakSet();

  Runner.prototype.run = function run(done, ...rest) {
    if (canaries.has(this)) return originalRun.call(this, done, ...rest);
    let isFailed = false;
    let count = 0;
    const report = (outcome) => (test) => {
      if (outcome === "failed") isFailed = true;
      if (test.type === "test") count++;
      const titles = titlesOf(test);
      const file = test.file ? path.relative(process.cwd(), test.file) : "";
      send({ nodeid: [file, ...titles].join(" > "), file, titles, phase: "call", outcome });
    };
    this.on("pass", report("passed")).on("fail", report("failed")).on("pending", report("skipped"));
    const ended = (...results) => {
      canary(wish.canaries[1], false, (outcome) => {
        send({ canary: "fail", outcome });
        send({ finish: true, exitstatus: isFailed ? 1 : 0, collected: count });
        if (done) done(...results);
      });
    };
    canary(wish.canaries[0], true, (outcome) => {
      send({ canary: "pass", outcome });
      originalRun.call(this, ended, ...rest);
    });
    return this;
  };

  function canary(name, passes, told) {
    const root = new Suite("", undefined, true);
    const body = () => {
      if (!passes) throw new Error("a canary");
    };
    root.addTest(new Test(name, body));
    const runner = new Runner(root, { delay: false, cleanReferencesAfterRun: false });
    canaries.add(runner);
    let outcome = "silent";
    runner.on("pass", () => {
      outcome = "passed";
    });
    runner.on("fail", () => {
      outcome = "failed";
    });
    runner.run(() => told(outcome));
  }
};

function titlesOf(test) {
  const titles = [test.title];
  for (let parent = test.parent; parent && !parent.root; parent = parent.parent) titles.unshift(parent.title);
  return titles;
}
