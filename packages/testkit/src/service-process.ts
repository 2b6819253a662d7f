/** Owns waiting for a process that logs lines of JSON: until it is ready, and until it has ended. Does not start one. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";

export interface ReadyOptions {
  /** The event it says when it is ready. */
  readonly event?: string;
  /** Told everything it writes, also afterwards. */
  readonly onOutput?: (text: string) => void;
}

/**
 * The log line a process is ready by. Rejects with what it wrote when it ends before.
 * @param child with its standard output piped; its errors count where they are piped too
 */
export function whenReady(
  child: ChildProcess,
  name: string,
  { event = "service.ready", onOutput }: ReadyOptions = {},
): Promise<Record<string, unknown>> {
  let output = "";
  let isReady = false;
  return new Promise((resolve, reject) => {
    const take = (chunk: Buffer) => {
      const text = chunk.toString();
      onOutput?.(text);
      if (isReady) return;
      output += text;
      const ready = output.split("\n").find((line) => line.includes(`"${event}"`) && line.endsWith("}"));
      if (ready === undefined) return;
      isReady = true;
      resolve(JSON.parse(ready) as Record<string, unknown>);
    };
    child.stdout?.on("data", take);
    child.stderr?.on("data", take);
    child.once("exit", (code) => reject(new Error(`${name} ended with ${code}:\n${output.slice(-10_000)}`)));
  });
}

/** Ends a process, unless it has ended; resolves with its exit code, null when a signal ended it. */
export async function endProcess(
  child: ChildProcess,
  signal: NodeJS.Signals = "SIGTERM",
): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const exited = once(child, "exit") as Promise<[number | null]>;
  child.kill(signal);
  return (await exited)[0];
}
