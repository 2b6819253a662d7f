/**
 * Owns backends that are not part of Mortise: a module the site names, the factory in it, and the check that what it
 * makes speaks the interface of types.ts. Does not know what one does.
 *
 * I1  A plug-in is code of this process: it may do what the sandbox-manager may, and its word about `isInsecure` and
 *     about the proof of a network is taken. What is checked here keeps mistakes out, not enemies.
 * I2  Whatever is missing is found before a trial needs it, a sandbox's methods as soon as there is a sandbox.
 */
import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { MortiseError } from "@mortise/contracts";
import type { ImageSpec, Sandbox, SandboxBackend, SandboxSpec, TreeSource } from "./types.js";

/** Of `SandboxBackend` and `Sandbox`. Raised when a plug-in written for the one before would no longer work. */
export const BACKEND_INTERFACE_VERSION = 1;

/** What the module exports. */
export interface BackendPlugIn {
  /** The `BACKEND_INTERFACE_VERSION` it was written for, as a number of its own. */
  readonly interfaceVersion: number;
  /** Makes the backend without touching the host: `start` does that, and only for the one that is chosen. */
  createBackend(context: PlugInContext): SandboxBackend | Promise<SandboxBackend>;
}

export interface PlugInContext {
  /** From the site file; what is made must have it as its `name`. */
  readonly name: string;
  /** For this backend alone; it need not exist yet. */
  readonly stateDirectory: string;
  /** `sandbox.plugins.<name>.options`, as they are. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Writes a line to the manager's log. */
  readonly warn: (message: string) => void;
}

type MethodsOf<T> = {
  [Key in keyof T]-?: T[Key] extends (...given: never[]) => unknown ? Key : never;
}[keyof T];

/** Complete, or this does not compile. */
const BACKEND_METHODS: Readonly<Record<MethodsOf<SandboxBackend>, true>> = {
  availability: true,
  start: true,
  prepareImage: true,
  prepareTree: true,
  readTree: true,
  create: true,
  stop: true,
};
const SANDBOX_METHODS: Readonly<Record<MethodsOf<Sandbox>, true>> = {
  exec: true,
  putTar: true,
  getTar: true,
  quiesce: true,
  diff: true,
  stats: true,
  setNetwork: true,
  proveNetwork: true,
  snapshot: true,
  destroy: true,
};

/** For the module and for its factory; the host is not touched yet, and nothing is downloaded. */
const LOAD_LIMIT_MS = 60_000;

/**
 * @param limitMs after so long without an end the module is refused, as is its factory
 * @throws MortiseError MORTISE_SANDBOX_BACKEND that names the field, and what is wrong with the module
 */
export async function loadPlugIn(
  module: string,
  context: PlugInContext,
  limitMs = LOAD_LIMIT_MS,
): Promise<SandboxBackend> {
  const field = `sandbox.plugins.${context.name}.module: ${module}`;
  if (!existsSync(module)) throw refused(field, "there is no such file", "Correct the path.");
  const { interfaceVersion, createBackend } = await imported(field, module, limitMs);
  if (interfaceVersion !== BACKEND_INTERFACE_VERSION)
    throw refused(
      field,
      `it speaks version ${String(interfaceVersion)} of the interface, this Mortise version ${BACKEND_INTERFACE_VERSION}`,
      "Use the release of the plug-in for this Mortise; it must export interfaceVersion.",
    );
  if (typeof createBackend !== "function")
    throw refused(
      field,
      "it exports no function createBackend",
      "Export one; docs/sandboxes.md has an example.",
    );
  const made = await factoryResult(field, () => createBackend(context), limitMs);
  const missing = missingOf(made, BACKEND_METHODS);
  if (typeof made?.isInsecure !== "boolean") missing.push("isInsecure (true or false)");
  if (missing.length > 0)
    throw refused(
      field,
      `what createBackend makes has no ${missing.join(", ")}`,
      "Implement SandboxBackend.",
    );
  if (made.name !== context.name)
    throw refused(
      field,
      `the backend calls itself ${JSON.stringify(made.name)} and the site calls it ${JSON.stringify(context.name)}`,
      "Take the name from the context: state and records are kept under it.",
    );
  return new PlugInBackend(field, made);
}

async function imported(field: string, module: string, limitMs: number): Promise<Partial<BackendPlugIn>> {
  try {
    const loading = import(pathToFileURL(module).href) as Promise<Partial<BackendPlugIn>>;
    return await within(limitMs, loading);
  } catch (cause) {
    throw refused(field, `it cannot be loaded: ${wordsOf(cause)}`, "Correct the module.", cause);
  }
}

async function factoryResult(
  field: string,
  make: () => SandboxBackend | Promise<SandboxBackend>,
  limitMs: number,
): Promise<SandboxBackend> {
  try {
    return await within(limitMs, Promise.resolve(make()));
  } catch (cause) {
    if (cause instanceof MortiseError) throw cause;
    throw refused(field, `createBackend failed: ${wordsOf(cause)}`, "See its options.", cause);
  }
}

/** What does not end would keep a manager from ever saying why it is not ready. */
async function within<T>(limitMs: number, waited: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`it has not ended after ${limitMs} ms`)), limitMs);
  try {
    return await Promise.race([waited, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Anything can be thrown. */
function wordsOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

function missingOf(made: unknown, methods: Readonly<Record<string, true>>): string[] {
  const given = (made ?? {}) as Readonly<Record<string, unknown>>;
  return Object.keys(methods).filter((name) => typeof given[name] !== "function");
}

/** Hands everything on, and looks at the first sandbox (I2). */
class PlugInBackend implements SandboxBackend {
  readonly name: string;
  readonly isInsecure: boolean;
  readonly #field: string;
  readonly #inner: SandboxBackend;
  #isChecked = false;

  constructor(field: string, inner: SandboxBackend) {
    this.name = inner.name;
    this.isInsecure = inner.isInsecure;
    this.#field = field;
    this.#inner = inner;
  }

  availability() {
    return this.#inner.availability();
  }

  start() {
    return this.#inner.start();
  }

  prepareImage(spec: ImageSpec) {
    return this.#inner.prepareImage(spec);
  }

  prepareTree(source: TreeSource) {
    return this.#inner.prepareTree(source);
  }

  readTree(...given: Parameters<SandboxBackend["readTree"]>) {
    return this.#inner.readTree(...given);
  }

  async create(spec: SandboxSpec): Promise<Sandbox> {
    const sandbox = await this.#inner.create(spec);
    if (this.#isChecked) return sandbox;
    const missing = missingOf(sandbox, SANDBOX_METHODS);
    if (missing.length > 0) {
      await sandbox?.destroy?.();
      throw refused(this.#field, `its sandboxes have no ${missing.join(", ")}`, "Implement Sandbox.");
    }
    this.#isChecked = true;
    return sandbox;
  }

  stop() {
    return this.#inner.stop();
  }
}

function refused(field: string, why: string, fix: string, cause?: unknown): MortiseError {
  return new MortiseError({
    code: "MORTISE_SANDBOX_BACKEND",
    message: `${field}: ${why}.`,
    fix,
    detail: { field: field.split(":")[0] },
    ...(cause === undefined ? {} : { cause }),
  });
}
