/** Reports every result of a Jest session on the channel. Runs in Jest's own process, beside its other reporters. */
"use strict";

const path = require("node:path");
const { take } = require("./start.cjs");

const OUTCOMES = {
  passed: "passed",
  failed: "failed",
  pending: "skipped",
  skipped: "skipped",
  todo: "skipped",
};

module.exports = class ChannelReporter {
  #send = take().send;
  #root;

  constructor(globalConfig) {
    this.#root = globalConfig.rootDir;
  }

  onTestResult(test, { testResults, testExecError, failureMessage }) {
    const file = path.relative(this.#root, test.path);
    for (const { ancestorTitles, title, status } of testResults) {
      const titles = [...ancestorTitles, title];
      const outcome = OUTCOMES[status];
      if (outcome !== undefined)
        this.#send({ nodeid: [file, ...titles].join(" > "), file, titles, phase: "call", outcome });
    }
    if (testResults.length === 0 && (testExecError || failureMessage))
      this.#send({ nodeid: file, file, titles: [], phase: "collect", outcome: "error" });
  }

  onRunComplete(_contexts, { numFailedTests, numFailedTestSuites, numTotalTests, wasInterrupted }) {
    const isFailed = numFailedTests > 0 || numFailedTestSuites > 0 || wasInterrupted;
    this.#send({ finish: true, exitstatus: isFailed ? 1 : 0, collected: numTotalTests });
  }
};
