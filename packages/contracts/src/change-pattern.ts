/**
 * Owns what a pattern of a change filter covers (control.proto, ChangeFilter): the sandbox-manager leaves parts of a
 * change out by it, the verifier parts of a diff.
 *
 * F1  An exact pattern also covers what would stand in its path's way: an entry at a directory above it, or below it.
 * F2  A pattern for a name (two stars, a slash and the name) covers every path with such a part, at any level.
 */
const EVERY_LEVEL = "**/";

export function coveredBy(pattern: string): (path: string) => boolean {
  if (!pattern.startsWith(EVERY_LEVEL))
    return (path) => path === pattern || pattern.startsWith(`${path}/`) || path.startsWith(`${pattern}/`);
  const parts = pattern.slice(EVERY_LEVEL.length).split("*");
  const name = new RegExp(
    `^${parts.map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*")}$`,
  );
  return (path) => path.split("/").some((part) => name.test(part));
}
