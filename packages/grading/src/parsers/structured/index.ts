/** Owns the list of parsers for formats that no one language owns. */
export { junitXml } from "./junit-xml.js";
export { tapLog } from "./tap.js";
