"use strict";

// A test file calls `check(title, fn)`; a failure is printed and makes the process exit with 1.
exports.check = function check(title, fn) {
  try {
    fn();
    console.log(`ok ${title}`);
  } catch (error) {
    console.log(`not ok ${title}: ${error.message.split("\n")[0]}`);
    process.exitCode = 1;
  }
};
