/**
 * Owns names as bytes: strings with one character a byte, because names in an image need not be UTF-8, and how they
 * are shown to people. Does not touch the file system.
 */

/** The bytes of a byte string. */
export function bytesOf(path: string): Buffer {
  return Buffer.from(path, "latin1");
}

/** The byte string of an ordinary string. */
export function byteString(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

/** A byte string as text: UTF-8 where it is, with `%xx` for other bytes and for control characters. */
export function shownPath(path: string): string {
  const bytes = bytesOf(path);
  const text = bytes.toString("utf8");
  const readable = Buffer.from(text, "utf8").equals(bytes) ? text : path;
  const isText = readable !== path || /^[\x20-\x7e]*$/.test(path);
  const escaped = isText ? /[\p{Cc}%]/gu : /[^\x20-\x7e]|%/g;
  return readable.replace(escaped, (char) => `%${char.charCodeAt(0).toString(16).padStart(2, "0")}`);
}

/** Whether `path` is `directory` or lies below it. The empty string is the root. */
export function isWithin(path: string, directory: string): boolean {
  return directory === "" || path === directory || path.startsWith(`${directory}/`);
}

export function joined(directory: string, name: string): string {
  return directory === "" ? name : `${directory}/${name}`;
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

export function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

export function compareBytes(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
