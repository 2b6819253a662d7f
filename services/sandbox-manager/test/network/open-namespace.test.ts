/** A namespace that is open, or no longer as it was asked for, fails its proof. */
import { closeSync, openSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { SandboxNetwork } from "../../src/backend/network/index.js";
import { addLoopbackAddress, removeLoopbackAddress } from "../../src/backend/network/loopback-address.js";
import { isInForce, steer } from "../../src/backend/network/steering.js";
import { createNetworkNamespace, withinNetworkNamespace } from "../../src/backend/runc/syscalls.js";
import { create, hasNft, isRoot, onEnd, RULES } from "./network-world.js";

describe.skipIf(!isRoot)("a namespace that is not closed", () => {
  test("of the host itself fails the proof", async () => {
    const fd = openSync("/proc/self/ns/net", "r");
    const network = await SandboxNetwork.adopt(fd, { kind: "none" }, RULES);
    onEnd.push(() => network.close());
    const proof = await network.prove();
    expect(proof.isClosed).toBe(false);
    const open = proof.probes.filter(({ observed }) => observed === "reachable").map(({ name }) => name);
    expect(open).toEqual(expect.arrayContaining(["host port at 127.0.0.1", "abstract socket of the host"]));
  });

  test("with a route to metadata fails the proof, though nobody is there", async () => {
    const { namespaceFd } = createNetworkNamespace(() => addLoopbackAddress("169.254.169.254"));
    const network = await SandboxNetwork.adopt(namespaceFd, { kind: "none" });
    onEnd.push(() => network.close());
    const proof = await network.prove();
    expect(proof.isClosed).toBe(false);
    expect(proof.probes.filter(({ expected, observed }) => expected !== observed)).toEqual([
      { name: "tcp 169.254.169.254:80", expected: "unreachable", observed: "reachable" },
    ]);
  });

  test.skipIf(!hasNft)("any more as it was asked for fails the proof", async () => {
    const address = "93.184.216.34";
    const network = await create({
      kind: "allow-list",
      host: "127.0.0.1",
      port: 9,
      allowedHosts: [address],
    });
    expect((await network.prove()).isClosed).toBe(true);
    const fd = openSync(network.namespacePath, "r");
    withinNetworkNamespace(fd, () => removeLoopbackAddress(address));
    closeSync(fd);
    const proof = await network.prove();
    expect(proof.isClosed).toBe(false);
    expect(proof.probes).toContainEqual({
      name: `allowed ${address}`,
      expected: "reachable",
      observed: "unreachable",
    });
  });

  test.skipIf(!hasNft)("rules that are not the ones set are noticed", async () => {
    const { namespaceFd } = createNetworkNamespace(() => undefined);
    onEnd.push(() => closeSync(namespaceFd));
    await steer(namespaceFd, { addresses: ["93.184.216.34"], port: 4242 });
    const listing = (addresses: string[], port: number, chains = 1) =>
      JSON.stringify({
        nftables: [
          { table: { family: "ip", name: "mortise" } },
          { set: { name: "allowed", elem: addresses } },
          ...Array.from({ length: chains }, () => ({ chain: { hook: "prerouting", policy: "accept" } })),
          {
            rule: {
              expr: [
                {
                  match: {
                    op: "==",
                    left: { payload: { protocol: "ip", field: "daddr" } },
                    right: "@allowed",
                  },
                },
                { match: { op: "==", left: { meta: { key: "l4proto" } }, right: "tcp" } },
                { tproxy: { addr: "127.0.0.1", port } },
              ],
            },
          },
        ],
      });
    const wanted = { addresses: ["93.184.216.34"], port: 4242 };
    expect(isInForce(listing(["93.184.216.34"], 4242), wanted)).toBe(true);
    expect(isInForce(listing(["93.184.216.34", "10.0.0.1"], 4242), wanted)).toBe(false);
    expect(isInForce(listing(["93.184.216.34"], 4243), wanted)).toBe(false);
    expect(isInForce(listing(["93.184.216.34"], 4242, 2), wanted)).toBe(false);
    expect(isInForce('{"nftables": []}', wanted)).toBe(false);
  });
});
