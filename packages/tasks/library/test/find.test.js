"use strict";

const assert = require("node:assert");
const { firstAbove, indexOfLargest, isAscending } = require("../index.js");
const { check } = require("./check.js");

check("firstAbove finds the first", () => assert.strictEqual(firstAbove([1, 7, 9], 5), 7));
check("firstAbove of none is undefined", () => assert.strictEqual(firstAbove([1], 5), undefined));
check("indexOfLargest finds the place", () => assert.strictEqual(indexOfLargest([3, 8, 1]), 1));
check("indexOfLargest of nothing is -1", () => assert.strictEqual(indexOfLargest([]), -1));
check("isAscending accepts equal neighbours", () => assert.strictEqual(isAscending([1, 1, 2]), true));
check("isAscending rejects a fall", () => assert.strictEqual(isAscending([2, 1]), false));
check("indexOfLargest takes the first of a tie", () => assert.strictEqual(indexOfLargest([8, 3, 8]), 0));
