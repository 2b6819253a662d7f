/**
 * Owns calling functions of the C library: declared by prototype, loaded once a thread and on first use, so that
 * what never calls one runs where there is no glibc or musl. Does not know what any of them is for.
 */
import { constants } from "node:os";
import koffi from "koffi";

export type Call = (...parameters: unknown[]) => number;

/** A failed call: `code` and `errno` as Node's own errors have them. */
export type CallError = Error & { readonly code: string; readonly errno: number; readonly syscall: string };

const CODES = new Map(Object.entries(constants.errno).map(([code, errno]) => [errno, code]));

/** The functions of these prototypes, by the names given here; nothing is loaded before it is asked for. */
export function libraryOf<Name extends string>(prototypes: Readonly<Record<Name, string>>) {
  let loaded: Record<Name, Call> | undefined;
  return (): Record<Name, Call> => {
    if (loaded !== undefined) return loaded;
    const library = koffi.load(null as unknown as string);
    const declared = Object.entries<string>(prototypes).map(([name, prototype]) => [
      name,
      library.func(prototype) as unknown as Call,
    ]);
    loaded = Object.fromEntries(declared) as Record<Name, Call>;
    return loaded;
  };
}

/** The error of the call that has just failed on this thread. */
export function callError(syscall: string, errno = koffi.errno()): CallError {
  const code = CODES.get(errno) ?? `errno ${errno}`;
  return Object.assign(new Error(`${syscall}: ${code}`), { code, errno, syscall });
}

/** A call's result. @throws CallError below 0 */
export function checked(syscall: string, result: number): number {
  if (result < 0) throw callError(syscall);
  return result;
}
