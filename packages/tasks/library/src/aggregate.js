"use strict";

/** Adds up a list; 0 for an empty one. */
function sum(xs) {
  let s = 0;
  for (const el of xs) s += el;
  return s;
}

/** Multiplies a list; 1 for an empty one. */
function product(xs) {
  let s = 1;
  for (const el of xs) s *= el;
  return s;
}

/** Arithmetic mean; NaN for an empty list. */
function mean(xs) {
  return sum(xs) / xs.length;
}

/** Largest minus smallest; -Infinity for an empty list. */
function spread(xs) {
  return Math.max(...xs) - Math.min(...xs);
}

/** The sums of all prefixes, shortest first. */
function runningSums(xs) {
  let s = 0;
  return xs.map((x) => (s += x));
}

module.exports = { sum, product, mean, spread, runningSums };
