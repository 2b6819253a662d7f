/** Owns the errors of configuration files. */
import type { CatalogueRow } from "./row.js";

export const CONFIG_ERRORS = {
  MORTISE_CONFIG_INVALID: {
    disposition: "terminal",
    meaning: "A configuration value is impossible.",
    fix: "Correct the named field to an allowed value.",
  },
  MORTISE_CONFIG_SYNTAX: {
    disposition: "terminal",
    meaning: "A configuration file is not valid TOML.",
    fix: "Correct the file at the named line.",
  },
  MORTISE_CONFIG_UNKNOWN_KEY: {
    disposition: "terminal",
    meaning: "A configuration key does not exist.",
    fix: "Use the nearest valid name given, or remove the key.",
  },
  MORTISE_CONFIG_UNREADABLE: {
    disposition: "terminal",
    meaning: "A configuration file cannot be read.",
    fix: "Check the path and its permissions.",
  },
} as const satisfies Record<string, CatalogueRow>;
