/**
 * Owns what other packages may use of the archiver: its definition and the read side of an archive.
 */
export type { ArchivedRow } from "./archive/parquet.js";
export { readArchive, readBlob } from "./archive/read.js";
export { readTurns } from "./archive/read-turns.js";
export { archiver } from "./service.js";
export { TABLES } from "./tables/sources.js";
