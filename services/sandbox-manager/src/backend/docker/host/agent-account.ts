/**
 * Owns giving the agent's user a name in a running container whose image has none: some programs refuse to run for a
 * number. Accounts are added, none is changed; whatever is no plain file is the image's own matter.
 */
import { closeSync, constants, lstatSync, openSync, writeSync } from "node:fs";
import path from "node:path";
import { readWithoutFollowing } from "../../../patch/snapshot.js";
import { resolveDirectory } from "../../files.js";
import { SANDBOX_UID } from "../../types.js";

const { O_APPEND, O_NOFOLLOW, O_WRONLY } = constants;

/** @param root the container's root as this host sees it; nothing of the agent's runs yet */
export function addAgentAccount(root: string): void {
  addLine(root, "passwd", `agent:x:${SANDBOX_UID}:${SANDBOX_UID}::/tmp:/bin/sh`);
  addLine(root, "group", `agent:x:${SANDBOX_UID}:`);
}

function addLine(root: string, name: string, line: string): void {
  if (!lstatSync(path.join(root, "etc"), { throwIfNoEntry: false })?.isDirectory()) return;
  const file = path.join(resolveDirectory(root, "etc"), name);
  if (!lstatSync(file, { throwIfNoEntry: false })?.isFile()) return;
  const present = Buffer.from(readWithoutFollowing(file)).toString("latin1");
  if (present.split("\n").some((one) => one.split(":")[2] === String(SANDBOX_UID))) return;
  const separator = present === "" || present.endsWith("\n") ? "" : "\n";
  const fd = openSync(file, O_WRONLY | O_APPEND | O_NOFOLLOW);
  try {
    writeSync(fd, `${separator}${line}\n`);
  } finally {
    closeSync(fd);
  }
}
