"use strict";

/** How many elements are greater than a limit. */
function countAbove(xs, lim) {
  let s = 0;
  for (const el of xs) if (el > lim) s++;
  return s;
}

/** How many elements are less than a limit. */
function countBelow(xs, lim) {
  let s = 0;
  for (const el of xs) if (el < lim) s++;
  return s;
}

/** How many elements lie between two limits, both included. */
function countBetween(xs, low, high) {
  return xs.length - countBelow(xs, low) - countAbove(xs, high);
}

/** How often each element occurs, as [element, times] in order of first appearance. */
function frequencies(xs) {
  const times = new Map();
  for (const x of xs) times.set(x, (times.get(x) ?? 0) + 1);
  return [...times];
}

module.exports = { countAbove, countBelow, countBetween, frequencies };
