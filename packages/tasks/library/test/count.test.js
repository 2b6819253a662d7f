"use strict";

const assert = require("node:assert");
const { countAbove, countBelow, countBetween, frequencies } = require("../index.js");
const { check } = require("./check.js");

check("countAbove counts the larger ones", () => assert.strictEqual(countAbove([1, 5, 9], 4), 2));
check("countBelow counts the smaller ones", () => assert.strictEqual(countBelow([1, 5, 9], 4), 1));
check("countBetween includes both limits", () => assert.strictEqual(countBetween([1, 2, 3, 4], 2, 3), 2));
check("frequencies of a list", () => assert.deepStrictEqual(frequencies([2, 1, 2]), [[2, 2], [1, 1]]));
