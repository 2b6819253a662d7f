/** Owns the environment every command in a sandbox starts from. Nothing of the manager's own is ever inherited. */
import type { Image } from "./backend/types.js";

const BASE_ENVIRONMENT: Readonly<Record<string, string>> = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LANG: "C.UTF-8",
};
/** Places the agent may write, whatever home an image's own user has. */
const WRITABLE = { HOME: "/tmp", TMPDIR: "/tmp" };

/** What an image says of itself, its PATH first of all, over what holds where it says nothing. */
export function environmentOf({ defaults }: Pick<Image, "defaults">): Record<string, string> {
  return { ...BASE_ENVIRONMENT, ...defaults.environment, ...WRITABLE };
}
