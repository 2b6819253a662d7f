/** Owns the errors of checkpoints and chat templates. */
import type { CatalogueRow } from "./row.js";

export const POLICY_ERRORS = {
  MORTISE_POLICY_CHECKPOINT: {
    disposition: "terminal",
    meaning: "A checkpoint directory is incomplete or invalid.",
    fix: "Give a Hugging Face directory with config.json, safetensors, tokenizer.json and tokenizer_config.json.",
  },
  MORTISE_POLICY_NO_CHAT_TEMPLATE: {
    disposition: "terminal",
    meaning: "The tokenizer has no chat template.",
    fix: "Add `chat_template` to tokenizer_config.json (or a chat_template.jinja file).",
  },
  MORTISE_POLICY_SAFETENSORS: {
    disposition: "terminal",
    meaning: "A safetensors file is malformed.",
    fix: "Export the weights again; the named tensor or header field is wrong.",
  },
  MORTISE_POLICY_UNSUPPORTED: {
    disposition: "terminal",
    meaning: "The model architecture or option is not supported.",
    fix: "Use a Llama-, Qwen2- or Qwen3-style dense decoder.",
  },
} as const satisfies Record<string, CatalogueRow>;
