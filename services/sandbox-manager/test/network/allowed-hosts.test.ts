/** What an allow-list may not name, whatever its task wants. Needs root: a namespace is made for each. */
import { describe, expect, test } from "vitest";
import { SandboxNetwork } from "../../src/backend/network/index.js";
import { create, get, isRoot, serve } from "./network-world.js";

describe("what an allow-list may not name", () => {
  const refusals: [string, readonly string[], RegExp][] = [
    ["a wildcard", ["*.example"], /wildcards/],
    ["an IPv6 address", ["2001:db8::1"], /IPv4/],
    ["a URL", ["https://example"], /neither a host name nor/],
    ["a range", ["93.184.216.0/24"], /neither a host name nor/],
    ["a short form of an address", ["10.1"], /neither a host name nor/],
    ["a number the resolver reads as an address", ["2130706433"], /neither a host name nor/],
    ["a private address", ["10.1.2.3"], /not a public address/],
    ["this host's loopback", ["127.0.0.1"], /sandbox itself/],
    ["cloud metadata", ["169.254.169.254"], /metadata/],
    ["Azure's metadata, which looks public", ["168.63.129.16"], /metadata/],
    ["a name that leads inside", ["inside.example"], /inside\.example \(192\.168\.1\.1\) is not a public/],
  ];
  test.skipIf(!isRoot).each(refusals)("%s", async (_, allowedHosts, message) => {
    const resolve = async () => ["93.184.216.34", "192.168.1.1"];
    const making = SandboxNetwork.create(
      { kind: "allow-list", host: "127.0.0.1", port: 9, allowedHosts },
      { resolve },
    );
    await expect(making).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_NETWORK",
      message: expect.stringMatching(message),
    });
  });

  test.skipIf(!isRoot)("metadata and the sandbox itself, even if the operator allows them", async () => {
    for (const host of ["169.254.169.254", "127.0.0.1"])
      await expect(
        SandboxNetwork.create(
          { kind: "allow-list", host: "127.0.0.1", port: 9, allowedHosts: [host] },
          { privateHosts: [host] },
        ),
      ).rejects.toMatchObject({ code: "MORTISE_SANDBOX_NETWORK" });
  });

  test.skipIf(!isRoot)("a name nobody knows leaves everything closed and may be tried again", async () => {
    const port = await serve("127.0.0.1", "model");
    const network = await create(
      { kind: "model", host: "127.0.0.1", port },
      { privateHosts: [], resolve: async () => Promise.reject(new Error("no such name")) },
    );
    const change = network.set({
      kind: "allow-list",
      host: "127.0.0.1",
      port,
      allowedHosts: ["gone.example"],
    });
    await expect(change).rejects.toMatchObject({ code: "MORTISE_SANDBOX_NETWORK_UNRESOLVED" });
    expect(await get(network, "127.0.0.1", 8080)).toBe("ECONNREFUSED");
  });
});
