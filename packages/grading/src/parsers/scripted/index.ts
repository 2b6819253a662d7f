/** Owns the list of parsers for PHP and Ruby. */
export { phpunit } from "./phpunit.js";
export { cucumber, minitest, rspecJson, rubyUnit } from "./ruby.js";
