/**
 * Measures the embedded engine on one core: training, scoring and sampling, in tokens per CPU-second.
 * Usage: node bench/dist/policy.js [seconds per measurement]. Other load on the machine lowers the numbers.
 */
import {
  BatchDecoder,
  CounterRandom,
  createPolicyModel,
  type DecoderConfig,
  decoderConfigFromHf,
  initialiseWeights,
  type TrainingRow,
} from "@mortise/policy";

const seconds = Number(process.argv[2] ?? 3);

interface Size {
  readonly name: string;
  readonly config: DecoderConfig;
  readonly rows: number;
  readonly length: number;
}

function size(
  name: string,
  d: number,
  layers: number,
  heads: number,
  ff: number,
  vocab: number,
  rows: number,
  length: number,
): Size {
  const config = decoderConfigFromHf({
    model_type: "llama",
    vocab_size: vocab,
    hidden_size: d,
    intermediate_size: ff,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: 2,
    max_position_embeddings: 1024,
    tie_word_embeddings: true,
  });
  return { name, config, rows, length };
}

const SIZES = [
  size("0.16 M, 64 x 70", 64, 3, 4, 176, 344, 64, 70),
  size("0.5 M, 8 x 256", 96, 5, 4, 256, 256, 8, 256),
  size("2 M, 8 x 256", 192, 5, 6, 512, 512, 8, 256),
];

/** Repeats `work` for the set time after one unmeasured call. @returns tokens per CPU-second */
function measure(tokens: number, work: () => void): number {
  work();
  const start = process.cpuUsage();
  let done = 0;
  let used = 0;
  while (used < seconds) {
    work();
    done += tokens;
    const { user, system } = process.cpuUsage(start);
    used = (user + system) / 1e6;
  }
  return Math.round(done / used);
}

function randomRows({ config, rows, length }: Size): TrainingRow[] {
  const random = new CounterRandom("bench");
  return Array.from({ length: rows }, (_, row) => ({
    ids: Int32Array.from({ length }, (_, t) =>
      Math.floor(random.uniform(row * length + t) * config.vocabSize),
    ),
  }));
}

function sample(decoder: BatchDecoder, batch: number, run: number): void {
  for (let i = 0; i < batch; i++) {
    decoder.submit({
      context: Int32Array.of(1, 2, 3),
      maxTokens: 64,
      temperature: 1,
      stopIds: new Set(),
      rngKey: `${run}/${i}`,
      onToken: () => {},
      onEnd: () => {},
    });
  }
  while (decoder.step() > 0);
}

for (const one of SIZES) {
  const { name, config } = one;
  const rows = randomRows(one);
  const tokens = one.rows * one.length;
  const model = await createPolicyModel(config, { backend: "embedded" });
  const weights = initialiseWeights(config, 1);
  model.loadWeights(weights);
  const train = measure(tokens, () => {
    model.zeroGradients();
    model.accumulate(rows, (logp) => ({
      dLogp: logp.map((row) => new Float32Array(row.length).fill(-1 / tokens)),
    }));
    model.step({ lr: 1e-4, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0.01, maxGradientNorm: 1 });
  });
  const score = measure(tokens, () => model.logProbabilities(rows));
  console.log(`${name}: ${model.parameterCount} parameters; train ${train} tok/s, score ${score} tok/s`);
  for (const batch of [1, 8, 32]) {
    const decoder = new BatchDecoder({ config, weights }, { maxBatch: batch, kvTokens: 128 * batch });
    let run = 0;
    console.log(
      `  sample, batch ${batch}: ${measure(64 * batch, () => sample(decoder, batch, run++))} tok/s`,
    );
  }
}
