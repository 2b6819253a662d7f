/** Owns the list of parsers for Java projects. */
export { ant } from "./ant.js";
export { gradle } from "./gradle.js";
export { maven } from "./maven.js";
