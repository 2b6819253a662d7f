/** Where agents can run on this machine: what is missing is said, and its tests are skipped. */
import { tmpdir } from "node:os";
import { RuncBackend } from "@mortise/sandbox-manager";

const runc = await new RuncBackend({ stateDirectory: tmpdir(), runc: "runc" }).availability();
if (!runc.ok) console.log(`agent runtime in runc skipped: ${runc.reason}`);
export const isRoot = process.getuid?.() === 0;
if (!isRoot) console.log("agent runtime skipped: an image's files keep their owners, which needs root");

export const PLACES = (["runc", "chroot"] as const).filter(
  (place) => isRoot && (place === "chroot" || runc.ok),
);
