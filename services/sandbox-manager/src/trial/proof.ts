/**
 * Owns proving that a sandbox's network is what was asked for, and the record of it. Fails closed: without a proof no
 * agent starts. A backend that isolates nothing says so instead, and its results are marked insecure.
 */
import { MortiseError } from "@mortise/contracts";
import type { Sandbox, SandboxBackend } from "../backend/types.js";
import type { ContentInit, RecordStore } from "../content-store.js";

/** Rejects with MORTISE_SANDBOX_NOT_CLOSED that names the first probe that went wrong. */
export async function proofOf(
  sandbox: Pick<Sandbox, "proveNetwork">,
  records: RecordStore,
  backend: Pick<SandboxBackend, "name" | "isInsecure">,
): Promise<{ network?: ContentInit }> {
  if (backend.isInsecure) return {};
  const proof = await sandbox.proveNetwork();
  const wrong = proof.probes.find(({ expected, observed }) => expected !== observed);
  if (!proof.isClosed || proof.probes.length === 0)
    throw new MortiseError({
      code: "MORTISE_SANDBOX_NOT_CLOSED",
      message:
        wrong === undefined
          ? `the ${backend.name} backend showed nothing about the network.`
          : `${wrong.name} is ${wrong.observed}, and should be ${wrong.expected}.`,
    });
  return { network: await records.put(proof) };
}
