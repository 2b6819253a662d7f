/** Starts one sandbox, says so and waits to be killed. */
import { KubernetesBackend } from "../../services/sandbox-manager/dist/backend/kubernetes/backend.js";

const backend = new KubernetesBackend({
  stateDirectory: process.env.STATE,
  settings: JSON.parse(process.env.SETTINGS),
});
await backend.start();
await backend.create({
  id: process.env.ID,
  image: await backend.prepareImage({ kind: "host" }),
  workspace: await backend.prepareTree({ kind: "files", files: [] }),
  mounts: [],
  limits: { cpus: 1, memoryBytes: 128 * 1024 ** 2, pids: 48, diskBytes: 64 * 1024 ** 2, outputBytes: 4096 },
  network: { kind: "none" },
});
process.stdout.write("up\n");
setInterval(() => {}, 1000);
