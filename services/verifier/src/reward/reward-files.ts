/**
 * Owns reading a Harbor reward out of the files a verifier left. Does not run anything and does not judge the run.
 *
 * F1  reward.json comes before reward.txt, as in present Harbor, since it alone can hold several rewards. Where both
 *     are there they must agree: of two rewards one was not written by the verifier.
 * F2  Only finite numbers in [0, 1] are rewards. Everything else is a reason, never 0.
 */
import { z } from "zod";
import type { CollectedFile } from "../run/run-record.js";
import { REWARD_DIRECTORY } from "./verify-command.js";

export const MAX_REWARD_BYTES = 1024 * 1024;
const REWARD_KEY = "reward";
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

export type RewardReading =
  | {
      readonly kind: "reward";
      readonly reward: number;
      /** Every key of reward.json. */
      readonly components: readonly { readonly name: string; readonly value: number }[];
    }
  /** What is there cannot be used; `fault` says whose that is. */
  | {
      readonly kind: "none";
      readonly reason: string;
      readonly fault: "missing" | "content" | "task" | "contradiction";
    };

type Values = Readonly<Record<string, number>>;

export function readReward(files: readonly CollectedFile[]): RewardReading {
  const at = (name: string) => files.find(({ path }) => path === `${REWARD_DIRECTORY}/${name}`);
  const [json, text] = [at("reward.json"), at("reward.txt")];
  const refused = [json, text].find((file) => file !== undefined && file.refused !== "");
  if (refused !== undefined) return none("content", `${refused.path}: ${refused.refused}`);
  if (json === undefined && text === undefined) {
    const place = files.find(({ path, refused: why }) => path === REWARD_DIRECTORY && why !== "");
    return none(
      "missing",
      place === undefined ? "the verifier wrote no reward" : `${place.path}: ${place.refused}`,
    );
  }
  const fromJson = json === undefined ? undefined : readJson(json);
  const fromText = text === undefined ? undefined : readText(text);
  if (fromJson === undefined) return fromText!;
  if (fromText === undefined || fromJson.kind === "none") return fromJson;
  if (fromText.kind === "reward" && fromText.reward === fromJson.reward) return fromJson; // F1
  const other = fromText.kind === "reward" ? `reward.txt ${fromText.reward}` : fromText.reason;
  return none("contradiction", `reward.json says ${fromJson.reward}, ${other}`);
}

function readText({ content }: CollectedFile): RewardReading {
  const text = Buffer.from(content).toString().trim();
  if (text === "") return none("content", "reward.txt is empty");
  if (!NUMBER.test(text))
    return none("content", `reward.txt is no number: ${JSON.stringify(text.slice(0, 40))}`);
  return rewardOf({ [REWARD_KEY]: Number(text) }, "reward.txt");
}

function readJson({ content }: CollectedFile): RewardReading {
  const text = Buffer.from(content).toString();
  if (text.trim() === "") return none("content", "reward.json is empty");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return none("content", `reward.json is no JSON: ${JSON.stringify(text.slice(0, 40))}`);
  }
  if (typeof value === "number") return rewardOf({ [REWARD_KEY]: value }, "reward.json");
  const values = z.record(z.string(), z.number()).safeParse(value);
  return values.success
    ? rewardOf(values.data, "reward.json")
    : none("content", "reward.json is neither a number nor an object of numbers");
}

function rewardOf(values: Values, file: string): RewardReading {
  const components = Object.entries(values).map(([name, value]) => ({ name, value }));
  const wrong = components.find(({ value }) => !Number.isFinite(value));
  if (wrong !== undefined) return none("content", `${file}: ${wrong.name} is no finite number`);
  const chosen = Object.hasOwn(values, REWARD_KEY) ? values[REWARD_KEY] : only(components);
  if (chosen === undefined) {
    const names = components.map(({ name }) => name).join(", ") || "no key";
    return none("task", `${file} has ${names}, and none is "${REWARD_KEY}"`);
  }
  if (chosen < 0 || chosen > 1) return none("task", `${file}: the reward ${chosen} is outside 0 to 1`);
  return { kind: "reward", reward: chosen, components };
}

function only(components: readonly { value: number }[]): number | undefined {
  return components.length === 1 ? components[0]!.value : undefined;
}

function none(fault: Extract<RewardReading, { kind: "none" }>["fault"], reason: string): RewardReading {
  return { kind: "none", reason, fault };
}
