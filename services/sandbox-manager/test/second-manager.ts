/** A manager process of its own, for tests of what happens when it is one too many or is killed. Not a fake. */
const { RuncBackend } = await import("../dist/backend/runc/backend.js");

const [stateDirectory, action] = process.argv.slice(2) as [string, string | undefined];
const backend = new RuncBackend({ stateDirectory, runc: "runc" });
try {
  await backend.start();
  if (action === "run") {
    const sandbox = await backend.create({
      id: "left",
      image: await backend.prepareImage({ kind: "host" }),
      workspace: await backend.prepareTree({ kind: "files", files: [] }),
      mounts: [],
      limits: { cpus: 1, memoryBytes: 128 << 20, pids: 32, diskBytes: 8 << 20, outputBytes: 4096 },
      network: { kind: "model", host: "127.0.0.1", port: 9 },
    });
    void sandbox.exec({
      argv: ["sh", "-c", "echo up; sleep 600"],
      environment: { PATH: "/usr/bin" },
      timeoutMs: 600_000,
      onStdout: () => process.send?.({ outcome: "running" }),
    });
  } else process.send?.({ outcome: "started" });
} catch (error) {
  process.send?.({ code: (error as { code?: string }).code });
}
