"use strict";

/** The first element greater than a limit, or undefined. */
function firstAbove(xs, lim) {
  for (const el of xs) if (el > lim) return el;
  return undefined;
}

/** Where the largest element is; the first place on a tie, -1 for an empty list. */
function indexOfLargest(xs) {
  let at = -1;
  for (let i = 0; i < xs.length; i++) if (at < 0 || xs[i] > xs[at]) at = i;
  return at;
}

/** Whether no element is smaller than the one before it. */
function isAscending(xs) {
  for (let i = 1; i < xs.length; i++) if (xs[i] < xs[i - 1]) return false;
  return true;
}

module.exports = { firstAbove, indexOfLargest, isAscending };
