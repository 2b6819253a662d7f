import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { decodeF16 } from "../src/checkpoint/float-formats.js";
import {
  createPolicyModel,
  decoderConfigFromHf,
  hfFromDecoderConfig,
  initialiseWeights,
  openCheckpoint,
  parameterCount,
  readSafetensors,
  tokenizerFiles,
  trainTokenizer,
  weightsDigest,
  writeCheckpoint,
  writeSafetensors,
} from "../src/index.js";
import { tinyConfigs } from "./tiny-policies.js";

const CHAT =
  "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}{% if add_generation_prompt %}<|start|>assistant\n{% endif %}";
const trained = trainTokenizer(["sum of xs", "sum of ys"], {
  maxMerges: 5,
  specialTokens: ["<|start|>", "<|end|>"],
});
const files = tokenizerFiles(trained, {
  eosToken: "<|end|>",
  padToken: "<|end|>",
  chatTemplate: CHAT,
  maxLength: 256,
});
const config = { ...tinyConfigs["llama tied"]!, vocabSize: trained.vocabSize };
const weights = initialiseWeights(config, 1);

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "mortise-checkpoint-"));
});
afterAll(() => rm(directory, { recursive: true }));

describe("a checkpoint", () => {
  beforeEach(() => writeCheckpoint(directory, { config, weights, tokenizerFiles: files }));

  test("opens as it was written", async () => {
    const opened = await openCheckpoint(directory);
    expect(opened.config).toEqual(config);
    expect(weightsDigest(opened.weights)).toBe(weightsDigest(weights));
    expect(opened.tokenizerFiles).toEqual(files);
    expect([...opened.eosIds]).toEqual([opened.tokenizer.idOf("<|end|>")]);
    const text = opened.chatTemplate.renderMessages([{ role: "user", content: "sum" }], undefined, {
      addGenerationPrompt: true,
    });
    expect(text).toBe("<|start|>user\nsum<|end|>\n<|start|>assistant\n");
  });

  test("keeps fields of config.json that are unknown here", async () => {
    const hfConfig = { ...hfFromDecoderConfig(config), some_tool: { note: 1 }, eos_token_id: [3, 4] };
    await writeCheckpoint(directory, { config, hfConfig, weights, tokenizerFiles: files });
    const opened = await openCheckpoint(directory);
    expect(opened.hfConfig).toEqual(hfConfig);
    expect([...opened.eosIds]).toEqual(expect.arrayContaining([3, 4]));
  });

  test("is joined from shards by its index", async () => {
    const whole = readSafetensors(weights);
    const names = [...whole.entries.keys()];
    const half = Math.ceil(names.length / 2);
    const weightMap: Record<string, string> = {};
    for (const [shard, part] of [
      ["a.safetensors", names.slice(0, half)],
      ["b.safetensors", names.slice(half)],
    ] as const) {
      await writeFile(
        join(directory, shard),
        writeSafetensors(part.map((name) => [name, whole.read(name)] as const)),
      );
      for (const name of part) weightMap[name] = shard;
    }
    await rm(join(directory, "model.safetensors"));
    await writeFile(
      join(directory, "model.safetensors.index.json"),
      JSON.stringify({ weight_map: weightMap }),
    );
    const model = await createPolicyModel(config, { backend: "embedded" });
    model.loadWeights((await openCheckpoint(directory)).weights);
    const direct = await createPolicyModel(config, { backend: "embedded" });
    direct.loadWeights(weights);
    expect(model.exportWeights()).toEqual(direct.exportWeights());
  });

  test.each(["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"])(
    "without %s is refused, naming it",
    async (file) => {
      await rm(join(directory, "model.safetensors.index.json"), { force: true });
      await rm(join(directory, file));
      const error = await openCheckpoint(directory).catch((e: unknown) => e);
      expect(error).toBeInstanceOf(MortiseError);
      expect(error).toMatchObject({
        code: "MORTISE_POLICY_CHECKPOINT",
        message: expect.stringContaining(file),
        fix: expect.stringContaining(file),
      });
    },
  );

  test.each([
    ["config.json", "{", "MORTISE_POLICY_CHECKPOINT", /not JSON/],
    ["config.json", "{}", "MORTISE_POLICY_UNSUPPORTED", /model_type/],
    ["tokenizer.json", "[]", "MORTISE_POLICY_CHECKPOINT", /not a JSON object/],
    ["tokenizer.json", "{}", "MORTISE_POLICY_CHECKPOINT", /tokenizer.json/],
    ["tokenizer_config.json", "{}", "MORTISE_POLICY_NO_CHAT_TEMPLATE", /chat_template/],
    ["tokenizer_config.json", '{"chat_template":"{% if %}"}', "MORTISE_POLICY_CHECKPOINT", /Jinja/],
    [
      "config.json",
      JSON.stringify({ ...hfFromDecoderConfig(config), vocab_size: 10 }),
      "MORTISE_POLICY_CHECKPOINT",
      /vocab_size is 10/,
    ],
  ])("with %s = %s is refused with %s", async (file, content, code, message) => {
    await writeFile(join(directory, file), content);
    await expect(openCheckpoint(directory)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });

  test("takes the template from chat_template.jinja", async () => {
    await writeFile(join(directory, "tokenizer_config.json"), "{}");
    await writeFile(join(directory, "chat_template.jinja"), "{{ messages[0].content }}!");
    const { chatTemplate } = await openCheckpoint(directory);
    expect(
      chatTemplate.renderMessages([{ role: "user", content: "hi" }], [], { addGenerationPrompt: false }),
    ).toBe("hi!");
  });
});

describe("config.json", () => {
  const valid = hfFromDecoderConfig(tinyConfigs["llama tied"]!);

  test.each(Object.entries(tinyConfigs))("of %s survives a round trip", (_, tiny) => {
    expect(decoderConfigFromHf(hfFromDecoderConfig(tiny))).toEqual(tiny);
  });

  test("of SmolLM2-135M and Qwen3-0.6B gives the published sizes", () => {
    const smol = decoderConfigFromHf({
      model_type: "llama",
      vocab_size: 49152,
      hidden_size: 576,
      intermediate_size: 1536,
      num_hidden_layers: 30,
      num_attention_heads: 9,
      num_key_value_heads: 3,
      rope_theta: 100000,
      rms_norm_eps: 1e-5,
      tie_word_embeddings: true,
    });
    expect([smol.headDim, parameterCount(smol)]).toEqual([64, 134_515_008]);
    const qwen = decoderConfigFromHf({
      model_type: "qwen3",
      vocab_size: 151936,
      hidden_size: 1024,
      intermediate_size: 3072,
      num_hidden_layers: 28,
      head_dim: 128,
      num_attention_heads: 16,
      num_key_value_heads: 8,
      rope_theta: 1000000,
      rope_scaling: null,
      tie_word_embeddings: true,
    });
    expect(parameterCount(qwen)).toBe(596_049_920);
  });

  test.each([
    ["model_type", { model_type: "mamba" }],
    ["rope_scaling", { rope_scaling: { rope_type: "yarn", factor: 4 } }],
    ["rope_parameters", { rope_parameters: { rope_type: "llama3" } }],
    ["hidden_act", { hidden_act: "gelu" }],
    ["use_sliding_window", { use_sliding_window: true }],
    ["mlp_bias", { mlp_bias: true }],
    ["attention_bias", { attention_bias: true }],
    ["head_dim", { head_dim: 6 }],
  ])("is refused as unsupported when %s asks for it", (field, change) => {
    expect(() => decoderConfigFromHf({ ...valid, ...change })).toThrow(
      expect.objectContaining({
        code: "MORTISE_POLICY_UNSUPPORTED",
        message: expect.stringContaining(field),
      }),
    );
  });

  test.each([
    ["hidden_size", { hidden_size: undefined }],
    ["num_key_value_heads", { num_key_value_heads: 3 }],
    ["vocab_size", { vocab_size: -1 }],
    ["rms_norm_eps", { rms_norm_eps: "small" }],
  ])("is refused as invalid when %s is", (field, change) => {
    expect(() => decoderConfigFromHf({ ...valid, ...change })).toThrow(
      expect.objectContaining({ code: "MORTISE_POLICY_CHECKPOINT", message: expect.stringContaining(field) }),
    );
  });
});

describe("safetensors", () => {
  const file = (header: unknown, data = 8, length?: bigint) => {
    const json = new TextEncoder().encode(typeof header === "string" ? header : JSON.stringify(header));
    const bytes = new Uint8Array(8 + json.length + data);
    new DataView(bytes.buffer).setBigUint64(0, length ?? BigInt(json.length), true);
    bytes.set(json, 8);
    return bytes;
  };
  const a = { dtype: "F32", shape: [2], data_offsets: [0, 8] };

  test("reads what it wrote, and the same bytes come out for the same tensors", () => {
    const tensors = [
      ["x", { shape: [2, 3], values: Float32Array.of(1, -2, 3.5, 0, 1e-30, 4) }],
      ["y", { shape: [], values: Float32Array.of(7) }],
    ] as const;
    const bytes = writeSafetensors(tensors, { note: "n" });
    expect(bytes).toEqual(writeSafetensors(tensors, { note: "n" }));
    const read = readSafetensors(bytes);
    expect(read.metadata).toEqual({ note: "n" });
    for (const [name, tensor] of tensors) expect(read.read(name)).toEqual(tensor);
  });

  test("reads half precision, at any alignment", () => {
    const bytes = file({
      h: { dtype: "F16", shape: [3], data_offsets: [0, 6] },
      b: { dtype: "BF16", shape: [1], data_offsets: [6, 8] },
    });
    const view = new DataView(bytes.buffer, bytes.length - 8);
    [0x3c00, 0xc000, 0x0001, 0x3fc0].forEach((bits, i) => {
      view.setUint16(2 * i, bits, true);
    });
    const read = readSafetensors(bytes);
    expect([...read.read("h").values]).toEqual([1, -2, 2 ** -24]);
    expect([...read.read("b").values]).toEqual([1.5]);
    expect([...decodeF16(Uint16Array.of(0x7c00, 0xfc00, 0x7e00, 0x8000))]).toEqual([
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      Number.NaN,
      -0,
    ]);
  });

  test.each([
    ["an empty file", new Uint8Array(), /8-byte/],
    ["a header longer than the file", file({ a }, 8, 10_000n), /past the end/],
    ["a header above the cap", file({ a }, 8, 2n ** 60n), /above/],
    ["a header that is not JSON", file("{nope"), /not JSON/],
    ["a header that is not an object", file("[1]"), /not a JSON object/],
    ["a tensor that is not an object", file({ a: 1 }), /not an object/],
    ["an unknown dtype", file({ a: { ...a, dtype: "I64" } }), /dtype/],
    ["an inherited dtype name", file({ a: { ...a, dtype: "constructor" } }), /dtype/],
    ["a negative size", file({ a: { ...a, shape: [-2] } }), /shape/],
    ["a size that overflows", file({ a: { ...a, shape: [2 ** 40, 2 ** 40] } }), /imply/],
    ["offsets that are not two", file({ a: { ...a, data_offsets: [0] } }), /data_offsets/],
    ["a size that contradicts the offsets", file({ a: { ...a, shape: [3] } }), /imply 12/],
    ["a gap between tensors", file({ a, b: { ...a, data_offsets: [12, 20] } }, 20), /gap/],
    ["overlapping tensors", file({ a, b: { ...a, data_offsets: [4, 12] } }, 12), /overlaps/],
    ["bytes after the last tensor", file({ a }, 9), /end at byte/],
    ["missing bytes", file({ a }, 4), /end at byte/],
    ["metadata that is not text", file({ a, __metadata__: { n: 1 } }), /__metadata__/],
  ])("refuses %s", (_, bytes, message) => {
    expect(() => readSafetensors(bytes)).toThrow(
      expect.objectContaining({
        code: "MORTISE_POLICY_SAFETENSORS",
        message: expect.stringMatching(message),
      }),
    );
  });

  test("never fails on damaged bytes with anything but its own error", () => {
    const valid = writeSafetensors([["x", { shape: [4], values: new Float32Array(4) }]], { k: "v" });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(valid.length - 1), fc.nat(255)), { maxLength: 8 }),
        fc.nat(valid.length),
        (changes, length) => {
          const bytes = valid.slice(0, length);
          for (const [at, byte] of changes) if (at < length) bytes[at] = byte;
          try {
            const read = readSafetensors(bytes);
            for (const name of read.entries.keys()) read.read(name);
          } catch (error) {
            expect(error).toBeInstanceOf(MortiseError);
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  test("weights of another shape, or lacking a tensor, leave a model as it was", async () => {
    const model = await createPolicyModel(config, { backend: "embedded" });
    model.loadWeights(weights);
    const before = model.exportWeights();
    expect(() => model.loadWeights(initialiseWeights({ ...config, intermediateSize: 40 }, 1))).toThrow(
      /shape/,
    );
    expect(() => model.loadWeights(initialiseWeights({ ...config, layers: 1 }, 1))).toThrow(/missing/);
    expect(model.exportWeights()).toEqual(before);
  });

  test("a written checkpoint is plain JSON and safetensors", async () => {
    await writeCheckpoint(directory, { config, weights, tokenizerFiles: files });
    expect(JSON.parse(await readFile(join(directory, "config.json"), "utf8"))).toMatchObject({
      architectures: ["LlamaForCausalLM"],
    });
    expect(weightsDigest(await readFile(join(directory, "model.safetensors")))).toMatch(/^[0-9a-f]{64}$/);
  });
});
