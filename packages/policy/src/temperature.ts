/** Owns the rule for a temperature: finite and above 0. Greedy decoding is a matter of the sampler, not of this. */
import { MortiseError } from "@mortise/contracts";
import type { SamplingTransform } from "./model.js";

export function checkTemperature({ temperature = 1 }: SamplingTransform): number {
  if (Number.isFinite(temperature) && temperature > 0) return temperature;
  throw new MortiseError({
    code: "MORTISE_CONFIG_INVALID",
    message: `temperature is ${temperature}.`,
    fix: "Set temperature to a number above 0.",
    detail: { field: "temperature" },
  });
}
