/**
 * Measures sandboxes. Usage: node bench/dist/sandbox/main.js [what…] [--short] [--backend=runc|docker|process]
 * [--out=FILE] with what of lifecycle, load, churn, network, build, runtime, unpack; all of them when none is named.
 * `unpack` compares with the programs skopeo, umoci and docker where they are installed; `build` needs Docker and skopeo,
 * `runtime` npm. Needs what the backend needs: for runc, and for `build` and `network` whatever the backend, root on
 * Linux. Prints the machine and every result as JSON.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { DockerBackend, ProcessBackend, RuncBackend, type SandboxBackend } from "@mortise/sandbox-manager";
import { load, machine } from "../proxy/machine.js";
import { measureChurn } from "./churn.js";
import { measureImageBuild } from "./image-build.js";
import { measureLifecycle } from "./lifecycle.js";
import { measureUnderLoad } from "./load.js";
import { measureNetworks } from "./network.js";
import { measureRuntime } from "./runtime.js";
import { SandboxStand } from "./stand.js";
import { measureUnpack } from "./unpack.js";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    short: { type: "boolean", default: false },
    backend: { type: "string", default: "runc" },
    out: { type: "string" },
  },
});
const isShort = values.short;
const directory = mkdtempSync(path.join(tmpdir(), "mortise-bench-"));

const BACKENDS: Readonly<Record<string, () => SandboxBackend>> = {
  runc: () => new RuncBackend({ stateDirectory: path.join(directory, "runc"), runc: "runc" }),
  docker: () => new DockerBackend({ stateDirectory: path.join(directory, "docker") }),
  process: () =>
    new ProcessBackend({ stateDirectory: path.join(directory, "process"), warn: () => undefined }),
};

const MEASUREMENTS: Readonly<Record<string, () => Promise<object>>> = {
  lifecycle: () => withStand((stand) => measureLifecycle(stand, isShort ? 5 : 40)),
  load: () => withStand((stand) => measureUnderLoad(stand, isShort ? [1, 4] : [1, 4, 16, 64])),
  churn: () => withStand((stand) => measureChurn(stand, directory, isShort ? 10 : 100)),
  network: () => measureNetworks(isShort ? 5 : 100),
  build: () => measureImageBuild(path.join(directory, "build"), isShort ? 1 : 3),
  runtime: () => withStand((stand) => measureRuntime(stand, path.join(directory, "npm"), isShort ? 1 : 3)),
  unpack: () => measureUnpack(directory, isShort ? 1 : 3),
};

async function withStand<T>(measure: (stand: SandboxStand) => Promise<T>): Promise<T> {
  const backend = BACKENDS[values.backend]!();
  const stand = await SandboxStand.start(backend);
  try {
    return await measure(stand);
  } finally {
    await stand.stop();
  }
}

function checked(kind: string, name: string, known: object): string {
  if (Object.hasOwn(known, name)) return name;
  console.error(`${kind} ${name}: not one of ${Object.keys(known).join(", ")}`);
  process.exit(2);
}

checked("backend", values.backend, BACKENDS);
const chosen = positionals.length > 0 ? positionals : Object.keys(MEASUREMENTS);
for (const name of chosen) checked("measurement", name, MEASUREMENTS);
const results: Record<string, unknown> = { machine: machine(), backend: values.backend };
console.log(JSON.stringify(results));
try {
  for (const name of chosen) {
    const loadBefore = load();
    const result = await MEASUREMENTS[name]!();
    results[name] = { loadBefore, loadAfter: load(), ...result };
    console.log(JSON.stringify({ [name]: results[name] }, null, 2));
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}
if (values.out !== undefined) await writeFile(values.out, `${JSON.stringify(results, null, 2)}\n`);
