/**
 * Owns the wire protocols harnesses speak, one folder each: a request body becomes one conversation, a sampled
 * reply becomes events or an object, a failure becomes the status and body its clients understand.
 */
export * from "./chat/dialect.js";
export * from "./echo.js";
export * from "./messages/count-tokens.js";
export * from "./messages/dialect.js";
export * from "./responses/dialect.js";
export * from "./types.js";
