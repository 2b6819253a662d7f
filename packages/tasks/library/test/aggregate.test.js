"use strict";

const assert = require("node:assert");
const { sum, product, mean, spread, runningSums } = require("../index.js");
const { check } = require("./check.js");

check("sum of a list", () => assert.strictEqual(sum([1, 2, 3]), 6));
check("product of a list", () => assert.strictEqual(product([2, 3, 4]), 24));
check("mean of a list", () => assert.strictEqual(mean([1, 2, 6]), 3));
check("mean of nothing is NaN", () => assert.ok(Number.isNaN(mean([]))));
check("spread of a list", () => assert.strictEqual(spread([4, 9, 2]), 7));
check("runningSums of a list", () => assert.deepStrictEqual(runningSums([1, 2, 3]), [1, 3, 6]));
