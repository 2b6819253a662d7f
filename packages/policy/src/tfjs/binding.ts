/**
 * Owns finding a TensorFlow.js to compute with: the native GPU or CPU binding when installed (optional peers, never
 * in the default install), else the pure JavaScript backend, which is an oracle for tests rather than a trainer.
 */
import { createRequire } from "node:module";

export type TensorFlow = typeof import("@tensorflow/tfjs");

/** 4.22.0 of the native bindings calls two functions of node:util that Node 23 removed. */
function restoreRemovedUtil(): void {
  const util = createRequire(import.meta.url)("node:util") as Record<string, unknown>;
  util.isNullOrUndefined ??= (value: unknown) => value === null || value === undefined;
  util.isArray ??= Array.isArray;
}

/** undefined when the package is not installed or its library does not load. */
async function loadNative(name: string): Promise<TensorFlow | undefined> {
  restoreRemovedUtil();
  try {
    const module = (await import(name)) as { default?: TensorFlow } & TensorFlow;
    return module.default ?? module;
  } catch {
    return undefined;
  }
}

export function loadGpuBinding(): Promise<TensorFlow | undefined> {
  return loadNative("@tensorflow/tfjs-node-gpu");
}

async function loadJavaScript(): Promise<TensorFlow> {
  const tf = await import("@tensorflow/tfjs");
  // Otherwise the first operation advertises the native binding on stderr.
  tf.enableProdMode();
  await tf.setBackend("cpu");
  return tf;
}

/** GPU, native CPU, JavaScript: the first that loads. */
export async function loadBestBinding(): Promise<TensorFlow> {
  const tf =
    (await loadGpuBinding()) ?? (await loadNative("@tensorflow/tfjs-node")) ?? (await loadJavaScript());
  await tf.ready();
  return tf;
}
