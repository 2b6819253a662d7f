/**
 * Owns the weights in the arena: where each tensor lies, and loading and exporting them. Gradients and moments are
 * further blocks of the same layout, so an address in one block gives the address in another by a fixed distance.
 */
import { MortiseError } from "@mortise/contracts";
import { readSafetensors, type Tensor, writeSafetensors } from "../checkpoint/safetensors.js";
import type { DecoderConfig } from "../decoder-config.js";
import { EMBEDDING, elementCount, HEAD, type ParameterSpec, parameterTable } from "../parameter-table.js";
import type { Arena } from "./arena.js";

export interface Placement {
  readonly spec: ParameterSpec;
  /** Floats from the start of a block. */
  readonly offset: number;
  readonly count: number;
}

export class ParameterStore {
  readonly placements: readonly Placement[];
  /** Floats of a block; tensors are padded to a multiple of 4, the padding is 0. */
  readonly blockFloats: number;
  /** Address of the weights block. */
  readonly weights: number;
  readonly #arena: Arena;
  readonly #byName: ReadonlyMap<string, Placement>;
  readonly #tied: boolean;

  constructor(arena: Arena, config: DecoderConfig) {
    let offset = 0;
    this.placements = parameterTable(config).map((spec) => {
      const count = elementCount(spec.shape);
      const placement = { spec, offset, count };
      offset += Math.ceil(count / 4) * 4;
      return placement;
    });
    this.blockFloats = offset;
    this.#arena = arena;
    this.#tied = config.tieWordEmbeddings;
    this.#byName = new Map(this.placements.map((placement) => [placement.spec.name, placement]));
    this.weights = arena.allocateZeros(offset);
  }

  placement(name: string): Placement {
    const placement = this.#byName.get(this.#tied && name === HEAD ? EMBEDDING : name);
    if (placement === undefined) {
      throw new MortiseError({
        code: "MORTISE_POLICY_SAFETENSORS",
        message: `the model has no tensor "${name}".`,
      });
    }
    return placement;
  }

  /** Address of a tensor in the weights block. */
  address(name: string): number {
    return this.weights + this.placement(name).offset * 4;
  }

  /** A copy of one tensor of a block. */
  read(block: number, { offset, count }: Placement): Float32Array {
    return this.#arena.floats(block + offset * 4, count).slice();
  }

  /** Every tensor must be present with its shape. `prefix` is put before each name (`m.`, `v.` for moments). */
  load(block: number, bytes: Uint8Array, prefix = ""): Readonly<Record<string, string>> {
    const file = readSafetensors(bytes);
    const tensors = this.placements.map(
      (placement) => [placement, this.#checked(file.read(prefix + placement.spec.name), placement)] as const,
    );
    for (const [{ offset, count }, { values }] of tensors)
      this.#arena.floats(block + offset * 4, count).set(values);
    return file.metadata;
  }

  #checked(tensor: Tensor, { spec }: Placement): Tensor {
    if (tensor.shape.join() === spec.shape.join()) return tensor;
    throw new MortiseError({
      code: "MORTISE_POLICY_SAFETENSORS",
      message: `tensor "${spec.name}" has shape [${tensor.shape}], the configuration needs [${spec.shape}].`,
      fix: "Use the weights that belong to this config.json.",
      detail: { tensor: spec.name },
    });
  }

  *tensors(block: number, prefix = ""): Generator<[string, Tensor]> {
    for (const placement of this.placements) {
      yield [
        prefix + placement.spec.name,
        { shape: placement.spec.shape, values: this.read(block, placement) },
      ];
    }
  }

  export(): Uint8Array {
    return writeSafetensors(this.tensors(this.weights), { format: "pt" });
  }
}
