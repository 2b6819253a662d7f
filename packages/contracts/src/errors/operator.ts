/** Owns the errors of what an operator can mend on the machine or the command line. */
import type { CatalogueRow } from "./row.js";

export const OPERATOR_ERRORS = {
  MORTISE_OPERATOR_ARCHIVE: {
    disposition: "terminal",
    meaning: "The archive directory cannot be continued.",
    fix: "Set archiver.directory to a new directory, or restore position.json there.",
  },
  MORTISE_OPERATOR_BAD_ID: {
    disposition: "terminal",
    meaning: "An id contains characters outside [A-Za-z0-9_-].",
    fix: "Use letters, digits, '_' and '-' only.",
  },
  MORTISE_OPERATOR_BUILD_FAILED: {
    disposition: "terminal",
    meaning: "The sources do not compile.",
    fix: "On an unchanged clone, remove node_modules and every dist folder and start again.",
  },
  MORTISE_OPERATOR_DISK_FULL: {
    disposition: "terminal",
    meaning: "Too little free disk space to start.",
    fix: "Free the stated amount of space, or set another state directory.",
  },
  MORTISE_OPERATOR_FILES: {
    disposition: "terminal",
    meaning: "A file or directory cannot be read or written.",
    fix: "Check that the named path exists, that its owner and permissions let this user in, and that its file system is writable.",
  },
  MORTISE_OPERATOR_INSTALL_FAILED: {
    disposition: "terminal",
    meaning: "Installing the dependencies failed.",
    fix: "Mend what the last lines of the installer name and start again.",
  },
  MORTISE_OPERATOR_LOCKFILE_OUTDATED: {
    disposition: "terminal",
    meaning: "A package.json asks for something the lockfile does not have.",
    fix: "Run `npx pnpm install` and commit pnpm-lock.yaml, or undo the change.",
  },
  MORTISE_OPERATOR_NATS_MISSING: {
    disposition: "terminal",
    meaning: "No usable nats-server (2.12 or newer) could be found or installed.",
    fix: "Install nats-server 2.12 or newer, or set NATS_URL to a running one; each attempt is listed with its reason.",
  },
  MORTISE_OPERATOR_NATS_TOO_OLD: {
    disposition: "terminal",
    meaning: "The NATS server is older than 2.12.",
    fix: "Upgrade the server that NATS_URL names, or unset NATS_URL.",
  },
  MORTISE_OPERATOR_NODE_TOO_OLD: {
    disposition: "terminal",
    meaning: "The command was started by a Node older than 20.",
    fix: "Install Node 20 or newer.",
  },
  MORTISE_OPERATOR_NO_PNPM: {
    disposition: "terminal",
    meaning: "Neither npx nor corepack is there to bring pnpm.",
    fix: "Install npm, which carries npx.",
  },
  MORTISE_OPERATOR_PORT_IN_USE: {
    disposition: "terminal",
    meaning: "A configured port is occupied.",
    fix: "Free the port or set the named field to another one; 0 takes a free one, except of nats.url.",
  },
  MORTISE_OPERATOR_RECORDING: {
    disposition: "terminal",
    meaning: "A recording cannot be read.",
    fix: "Give JSON lines of events, each with ev and id; a req event has method, url, headers and body.",
  },
  MORTISE_OPERATOR_REGISTRY_UNREACHABLE: {
    disposition: "terminal",
    meaning: "The npm registry could not be reached.",
    fix: "Check the network, the registry and the proxy settings.",
  },
  MORTISE_OPERATOR_PROTOCOLS: {
    disposition: "terminal",
    meaning: "Two results were measured under different protocols.",
    fix: "Measure both under one protocol; what is meant to differ is named with --vary.",
  },
  MORTISE_OPERATOR_RUN_EXISTS: {
    disposition: "terminal",
    meaning: "A run with this id exists already.",
    fix: "Choose another id, or resume it.",
  },
  MORTISE_OPERATOR_RUN_UNKNOWN: {
    disposition: "terminal",
    meaning: "There is no run with this id.",
    fix: "List the runs with `mortise runs list`.",
  },
  MORTISE_OPERATOR_SERVICE_DOWN: {
    disposition: "terminal",
    meaning: "A process of the run keeps ending right after its start.",
    fix: "Read the end of the named log; `--resume` continues the run once the cause is mended.",
  },
  MORTISE_OPERATOR_SITE_DOWN: {
    disposition: "terminal",
    meaning: "The services of the site are not up.",
    fix: "Start them with `mortise site up --site <file>`.",
  },
  MORTISE_OPERATOR_SITE_UP: {
    disposition: "terminal",
    meaning: "The services of the site are up already.",
    fix: "Use the site as it is, or end it with `mortise site down --site <file>`.",
  },
  MORTISE_OPERATOR_USAGE: {
    disposition: "terminal",
    meaning: "The command line is wrong.",
    fix: "See `mortise --help`.",
  },
} as const satisfies Record<string, CatalogueRow>;
