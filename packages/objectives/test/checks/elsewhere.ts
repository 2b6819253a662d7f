/**
 * The entries of vectors.json that are not checked in this package, each with the reason.
 * An entry that is in neither this list nor a check fails the coverage test.
 */
export const checkedElsewhere: Readonly<Record<string, string>> = {
  rmsnorm: "a layer of the decoder: packages/policy",
  rope: "a layer of the decoder: packages/policy",
  bf16_decode: "the safetensors reader: packages/policy",
  moe_router: "not applicable yet: the embedded decoder has no mixture-of-experts layer",
  gated_delta_rule: "not applicable yet: the embedded decoder has no linear-attention layer",
};
