/**
 * Owns finding a TensorFlow.js to compute with: the native GPU or CPU binding when installed (optional peers, never
 * in the default install), else the pure JavaScript backend, which is an oracle for checks rather than a trainer.
 */
import { createRequire } from "node:module";
import { MortiseError } from "@mortise/contracts";

export type TensorFlow = typeof import("@tensorflow/tfjs");

/** 4.22.0 of the native bindings calls two functions of node:util that Node 23 removed. */
function restoreRemovedUtil(): void {
  const util = createRequire(import.meta.url)("node:util") as Record<string, unknown>;
  util.isNullOrUndefined ??= (value: unknown) => value === null || value === undefined;
  util.isArray ??= Array.isArray;
}

/** undefined when the package is not installed. @throws MortiseError when it is, but does not load. */
async function loadNative(name: string): Promise<TensorFlow | undefined> {
  restoreRemovedUtil();
  try {
    const module = (await import(name)) as { default?: TensorFlow } & TensorFlow;
    return module.default ?? module;
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === "ERR_MODULE_NOT_FOUND" && message.includes(`'${name}'`)) return undefined;
    // Going on with a slower backend would hide a broken installation.
    throw new MortiseError({
      code: "MORTISE_POLICY_UNSUPPORTED",
      message: `${name} is installed but does not load: ${message}`,
      fix: `Repair or remove ${name}, or set the backend to "embedded".`,
      cause,
    });
  }
}

/** The native backend says whether TensorFlow found a GPU. */
export function usesGpu(tf: TensorFlow): boolean {
  return (tf.backend() as { isUsingGpuDevice?: boolean }).isUsingGpuDevice === true;
}

/** undefined when the GPU binding is not installed or sees no GPU. */
export async function loadGpuBinding(): Promise<TensorFlow | undefined> {
  const tf = await loadNative("@tensorflow/tfjs-node-gpu");
  await tf?.ready();
  return tf !== undefined && usesGpu(tf) ? tf : undefined;
}

/** Never a native binding, whatever is installed. */
export async function loadJavaScript(): Promise<TensorFlow> {
  const tf = await import("@tensorflow/tfjs");
  // Otherwise the first operation advertises the native binding on stderr.
  tf.enableProdMode();
  await tf.setBackend("cpu");
  await tf.ready();
  return tf;
}

/** GPU, native CPU, JavaScript: the first that loads. */
export async function loadBestBinding(): Promise<TensorFlow> {
  const tf =
    (await loadGpuBinding()) ?? (await loadNative("@tensorflow/tfjs-node")) ?? (await loadJavaScript());
  await tf.ready();
  return tf;
}
