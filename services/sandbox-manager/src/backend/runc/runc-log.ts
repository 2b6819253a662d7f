/** Owns what runc's own log says, without the times in it: one cause has the same words every time. */

/** A line of logrus' text form; the message is quoted as Go does where it has to be. */
const LINE = /^time="[^"]*" level=\w+ msg=(?<message>.*)$/;

/** The messages, a line each; lines of another form as they are. */
export function messagesOf(log: string): string {
  return log
    .trim()
    .split("\n")
    .map((line) => unquoted(LINE.exec(line)?.groups?.message ?? line))
    .join("\n");
}

function unquoted(text: string): string {
  if (!text.startsWith('"')) return text;
  try {
    return JSON.parse(text) as string;
  } catch {
    // Go has escapes that JSON has not.
    return text;
  }
}
