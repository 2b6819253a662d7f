"use strict";

const assert = require("node:assert");
const { take, drop, chunk, zip, distinct } = require("../index.js");
const { check } = require("./check.js");

check("take and drop split a list", () => {
  assert.deepStrictEqual(take([1, 2, 3], 2), [1, 2]);
  assert.deepStrictEqual(drop([1, 2, 3], 2), [3]);
});
check("take of a negative count is empty", () => assert.deepStrictEqual(take([1, 2], -1), []));
check("chunk keeps the rest", () => assert.deepStrictEqual(chunk([1, 2, 3], 2), [[1, 2], [3]]));
check("chunk refuses size 0", () => assert.throws(() => chunk([1], 0), RangeError));
check("zip stops at the shorter list", () => assert.deepStrictEqual(zip([1, 2], [3]), [[1, 3]]));
check("distinct keeps the first", () => assert.deepStrictEqual(distinct([2, 1, 2]), [2, 1]));
