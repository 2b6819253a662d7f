/** Row-wise bookkeeping: biases and the embedding table. All widths are multiples of 4. */
import { at } from "./lanes";

/** Y[rows,n] += bias, row by row. */
export function addBias(y: usize, ld: i32, bias: usize, rows: i32, n: i32): void {
  for (let r = 0; r < rows; r++) {
    const row = at(y, r * ld);
    for (let i = 0; i < n; i += 4) {
      v128.store(at(row, i), f32x4.add(v128.load(at(row, i)), v128.load(at(bias, i))));
    }
  }
}

/** out[n] += column sums of Y[rows,n]: the gradient of a bias. */
export function addColumnSums(y: usize, ld: i32, rows: i32, n: i32, out: usize): void {
  for (let r = 0; r < rows; r++) {
    const row = at(y, r * ld);
    for (let i = 0; i < n; i += 4) {
      v128.store(at(out, i), f32x4.add(v128.load(at(out, i)), v128.load(at(row, i))));
    }
  }
}

/** X[rows,n] = table[ids]. */
export function embed(table: usize, ids: usize, rows: i32, n: i32, x: usize): void {
  for (let r = 0; r < rows; r++) {
    memory.copy(at(x, r * n), at(table, load<i32>(at(ids, r)) * n), (<usize>n) << 2);
  }
}

/** dTable[ids] += dX[rows,n], in row order. */
export function embedBackward(dTable: usize, ids: usize, rows: i32, n: i32, dx: usize): void {
  for (let r = 0; r < rows; r++) {
    const to = at(dTable, load<i32>(at(ids, r)) * n);
    const from = at(dx, r * n);
    for (let i = 0; i < n; i += 4) {
      v128.store(at(to, i), f32x4.add(v128.load(at(to, i)), v128.load(at(from, i))));
    }
  }
}
