/**
 * Owns the home a harness finds in a sandbox: fresh, with its files in it, and the property of whoever runs there.
 * Does not know what the files say.
 */
import path from "node:path";
import type { LaunchFile } from "@mortise/harness";
import { packTar, type TarMember } from "../patch/tar.js";

/** What is unpacked at `/`: the home itself, so that it is there also when no file lies in it, and the files. */
export function homeArchive(home: string, files: readonly LaunchFile[]): Promise<Uint8Array> {
  const relative = (absolute: string) => path.posix.relative("/", absolute);
  const members: TarMember[] = [
    { name: relative(home), kind: "directory", mode: 0o755 },
    ...files.map((file) => ({
      name: relative(file.path),
      kind: "file" as const,
      mode: 0o644,
      content: Buffer.from(file.content),
    })),
  ];
  return packTar(members);
}
