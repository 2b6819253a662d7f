"use strict";

/** The first n elements. */
function take(xs, n) {
  return xs.slice(0, Math.max(0, n));
}

/** Everything after the first n elements. */
function drop(xs, n) {
  return xs.slice(Math.max(0, n));
}

/** Cuts a list into pieces of a size; the last may be shorter. */
function chunk(xs, size) {
  if (!(size >= 1)) throw new RangeError("chunk: size must be at least 1");
  const pieces = [];
  for (let i = 0; i < xs.length; i += size) pieces.push(xs.slice(i, i + size));
  return pieces;
}

/** Pairs up two lists; as long as the shorter one. */
function zip(xs, ys) {
  return take(xs, ys.length).map((x, i) => [x, ys[i]]);
}

/** Each distinct element once, in order of first appearance. */
function distinct(xs) {
  return [...new Set(xs)];
}

module.exports = { take, drop, chunk, zip, distinct };
