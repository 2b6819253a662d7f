/** Owns running one child to its end: captured, or on this terminal. Signals reach it; none is left behind. */
import { spawn } from "node:child_process";
import os from "node:os";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];
/** What a shell reports for a process that signal n ended: 128 + n. */
const exitCodeOf = (signal) => 128 + (os.constants.signals[signal] ?? 0);

/**
 * Passes on a signal that was sent to this process alone. A terminal sends Ctrl-C to the whole foreground
 * group: there the child already has it, and a second one would read as impatience.
 */
function forwardSignals(child, onSignal = () => {}) {
  const forward = (signal) => {
    if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
    onSignal(signal);
  };
  for (const signal of SIGNALS) process.on(signal, forward);
  child.once("close", () => {
    for (const signal of SIGNALS) process.off(signal, forward);
  });
}

/** Runs a command quietly. @returns its exit code and everything it printed, in order. */
export function capture(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    let interrupted;
    const append = (chunk) => {
      output += chunk;
    };
    child.stdout.setEncoding("utf8").on("data", append);
    child.stderr.setEncoding("utf8").on("data", append);
    forwardSignals(child, (signal) => {
      interrupted = signal;
    });
    child.once("error", reject);
    child.once("close", (code) => {
      if (interrupted !== undefined) process.exit(exitCodeOf(interrupted));
      resolve({ code: code ?? 1, output });
    });
  });
}

/** Runs a command on this terminal. @returns its exit code; 128 + n when signal n ended it. */
export function foreground(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, stdio: "inherit" });
    forwardSignals(child);
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(signal === null ? (code ?? 1) : exitCodeOf(signal)));
  });
}
