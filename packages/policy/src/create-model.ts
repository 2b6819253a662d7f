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
