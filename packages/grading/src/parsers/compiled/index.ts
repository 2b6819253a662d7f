/** Owns the list of parsers for Go, Rust and C. */
export { ctest, googletest, jq, micropython, redis } from "./c.js";
export { cargo } from "./cargo.js";
export { doctest } from "./doctest.js";
export { gotest } from "./gotest.js";
