/** Owns the choice of a backend. What was chosen is in `PolicyModel.backend`; nothing is printed here. */
import type { DecoderConfig } from "./decoder-config.js";
import { EmbeddedModel } from "./embedded/embedded-model.js";
import type { ModelOptions, PolicyModel } from "./model.js";

/**
 * `embedded`: the WebAssembly engine. `tfjs`: TensorFlow.js on the best binding that is installed.
 * `auto`: tfjs when its GPU binding is installed and loads, else embedded.
 * @throws MortiseError when the named backend cannot run here.
 */
export async function createPolicyModel(config: DecoderConfig, options: ModelOptions): Promise<PolicyModel> {
  const { backend, maxTokensPerMicroBatch } = options;
  if (backend !== "embedded") {
    const { createTfjsModel, loadGpuBinding } = await import("./tfjs/tfjs-model.js");
    if (backend === "tfjs") return createTfjsModel(config, maxTokensPerMicroBatch);
    const gpu = await loadGpuBinding();
    if (gpu !== undefined) return createTfjsModel(config, maxTokensPerMicroBatch, gpu);
  }
  return new EmbeddedModel(config, maxTokensPerMicroBatch);
}

/**
 * A model of the same architecture that shares no kernel with `model`: TensorFlow.js on its JavaScript backend
 * beside the embedded engine, the embedded engine beside any TensorFlow.js. What both compute alike is then not
 * one implementation's error. For checking a few rows: JavaScript needs about 1 CPU-second per 70 million
 * (parameter · token), and rows are computed one at a time, so that none pays for the padding of another.
 * @throws MortiseError or the loader's own error when the other implementation cannot run here.
 */
export async function createIndependentModel(model: PolicyModel): Promise<PolicyModel> {
  if (!(model instanceof EmbeddedModel)) return new EmbeddedModel(model.config);
  const { createTfjsModel, loadJavaScript } = await import("./tfjs/tfjs-model.js");
  return createTfjsModel(model.config, 1, await loadJavaScript());
}
