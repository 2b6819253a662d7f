/** Images from a real HTTP registry and from disk become stacks of layers, whatever the registry does. Needs root. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ImageStore, type ImageStoreOptions } from "../../dist/images/store/image-store.js";
import { digestOf, directory, file, hardlink, tar } from "../../src/conformance/tar-builder.js";
import { DEFAULT_HTTP } from "../../src/images/registry/http.js";
import { failing, gzipLayer, RegistryServer } from "./registry-server.js";
import { isRoot, Scratch } from "./scratch.js";

const scratch = new Scratch();
const stores: ImageStore[] = [];
let registry: RegistryServer;

beforeAll(async () => {
  registry = await new RegistryServer().start();
});
beforeEach(() => {
  registry.faults = [];
  registry.login = undefined;
  registry.asked.length = 0;
});
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
});
afterAll(async () => {
  await registry.stop();
  scratch.remove();
});

const http = { ...DEFAULT_HTTP, baseDelayMs: 1, maxDelayMs: 2 };

function open(options: Partial<ImageStoreOptions> = {}): ImageStore {
  const store = new ImageStore({
    directory: scratch.directory(),
    ...options,
    registry: { http, dockerConfig: path.join(scratch.base, "absent.json"), ...options.registry },
  });
  stores.push(store);
  return store;
}

const base = gzipLayer([directory("bin"), file("bin/tool", "tool".repeat(20_000)), file("gone")]);
const top = gzipLayer([file(".wh.gone"), hardlink("tool", "bin/tool")]);
const from = (name: string) => ({ kind: "registry" as const, reference: `${registry.host}/${name}` });
const blobs = () => registry.asked.filter((asked) => asked.endsWith(digestOf(base.blob)));

describe.skipIf(!isRoot)("pull (needs root)", () => {
  test("an image of an index is a stack that an overlay shows, and its configuration", async () => {
    const own = registry.putImage("team/app", [base, top]);
    const other = registry.putImage("team/app", [base], { architecture: "s390x" });
    const architecture = process.arch === "x64" ? "amd64" : process.arch;
    registry.putIndex("team/app", "1", [
      { digest: other, architecture: "s390x" },
      { digest: own, architecture },
    ]);
    const image = await open().pull(from("team/app:1"));
    expect(image.digest).toBe(own);
    expect(image.config).toMatchObject({ env: ["A=b"], cmd: ["/bin/sh"], workdir: "/srv", user: "7" });
    const seen = scratch.overlay(image.layers.map((layer) => layer.directory));
    expect(readdirSync(seen).sort()).toEqual(["bin", "tool"]);
    await expect(
      open().pull(from("team/app:1"), { platform: { os: "linux", architecture: "riscv64" } }),
    ).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_IMAGE_UNKNOWN",
      message: expect.stringContaining("s390x"),
    });
  });

  test("callers at one time share one flight, later ones and a new process the stored layers", async () => {
    const reference = `many@${registry.putImage("many", [base])}`;
    const root = scratch.directory();
    const store = open({ directory: root });
    const images = await Promise.all(Array.from({ length: 8 }, () => store.pull(from(reference))));
    expect(new Set(images.map((image) => image.layers[0]!.directory)).size).toBe(1);
    expect(blobs()).toHaveLength(1);
    registry.asked.length = 0;
    await open({ directory: root }).pull(from(reference));
    expect(registry.asked).toEqual([]);
  });

  test("one layer under two images is one directory, unless it holds what only one of them has below", async () => {
    const otherBase = gzipLayer([directory("bin"), file("bin/tool", "another")]);
    const closed = gzipLayer([file("closed", "x")]);
    registry.putImage("one", [base, closed, top], { tag: "1" });
    registry.putImage("two", [otherBase, closed, top], { tag: "1" });
    const store = open();
    const [one, two] = await Promise.all([store.pull(from("one:1")), store.pull(from("two:1"))]);
    expect(one.layers[1]!.directory).toBe(two.layers[1]!.directory);
    expect(readFileSync(path.join(two.layers[0]!.directory, "tool"), "utf8")).toBe("another");
    expect(readFileSync(path.join(one.layers[0]!.directory, "tool"), "utf8")).toBe("tool".repeat(20_000));
  });

  test("nothing is left of a layer that is refused, and the others stay", async () => {
    const evil = gzipLayer([file("../x")]);
    registry.putImage("evil", [base, evil], { tag: "1" });
    const root = scratch.directory();
    await expect(open({ directory: root }).pull(from("evil:1"))).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_IMAGE_LAYER",
    });
    expect(readdirSync(path.join(root, "layers")).filter((name) => name.startsWith("unfinished"))).toEqual(
      [],
    );
  });

  test("what a dead process left unfinished is removed at start", () => {
    const root = scratch.directory();
    mkdirSync(path.join(root, "layers/unfinished-4194305-0/root"), { recursive: true });
    open({ directory: root });
    expect(readdirSync(path.join(root, "layers"))).toEqual([]);
  });

  test("layers and diff ids that do not fit are refused before anything is unpacked", async () => {
    const lying = { ...base, diffId: digestOf(Buffer.from("other")) };
    registry.putImage("lying", [lying], { tag: "1" });
    await expect(open().pull(from("lying:1"))).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_IMAGE_DIGEST",
    });
  });
});

describe.skipIf(!isRoot)("registries as they are (needs root)", () => {
  test.each(["token", "basic"] as const)("a %s login from Docker's file opens a repository", async (kind) => {
    const dockerConfig = path.join(scratch.base, `${kind}.json`);
    const auth = Buffer.from("me:s:ecret").toString("base64");
    writeFileSync(dockerConfig, JSON.stringify({ auths: { [registry.host]: { auth } } }));
    registry.putImage("private", [base], {
      tag: "1",
      manifestType: "application/vnd.docker.distribution.manifest.v2+json",
    });
    registry.login = { kind, value: "me:s:ecret" };
    const image = await open({ registry: { dockerConfig } }).pull(from("private:1"));
    expect(image.layers).toHaveLength(1);
    const error = await open()
      .pull(from("private:1"))
      .catch((e: unknown) => e);
    expect(error).toMatchObject({ code: "MORTISE_SANDBOX_IMAGE_DENIED" });
    expect(String(error)).not.toContain("s:ecret");
  });

  test("rate limits and failures are waited for, as long as the registry says", async () => {
    registry.putImage("busy", [base], { tag: "1" });
    const waits: number[] = [];
    const clock = {
      now: () => Date.now(),
      after: (ms: number, fn: () => void) => {
        if (ms < http.stallMs) waits.push(ms);
        // Watchdogs never bark here; waits end at once.
        if (ms < http.stallMs) queueMicrotask(fn);
        return () => {};
      },
    };
    registry.faults = [
      failing("manifests/1", 1, 429, { "retry-after": "7" }),
      failing("manifests/1", 2, 503),
    ];
    await open({ registry: { http: { ...http, clock } } }).pull(from("busy:1"));
    expect(waits[0]).toBe(7000);
    expect(waits).toHaveLength(3);
    registry.faults = [failing("manifests/1", 99, 500)];
    await expect(open({ registry: { http: { ...http, clock } } }).pull(from("busy:1"))).rejects.toMatchObject(
      {
        code: "MORTISE_SANDBOX_IMAGE_REGISTRY",
        message: expect.stringContaining("500"),
      },
    );
  });

  test.each([true, false])(
    "a blob cut again and again arrives whole (server knows ranges: %s)",
    async (knowsRanges) => {
      const digest = registry.putImage("cut", [base]);
      let cuts = 3;
      registry.faults = [
        (request, response) => {
          if (!request.url!.endsWith(digestOf(base.blob))) return false;
          if (!knowsRanges) delete request.headers.range;
          if (cuts === 0) return false;
          cuts -= 1;
          const offset = Number(/[0-9]+/.exec(request.headers.range ?? "")?.[0] ?? 0);
          response.writeHead(offset > 0 ? 206 : 200, { "content-length": base.blob.byteLength - offset });
          response.write(base.blob.subarray(offset, offset + 60), () =>
            setTimeout(() => response.destroy(), 20),
          );
          return true;
        },
      ];
      const image = await open().pull(from(`cut@${digest}`));
      expect(readFileSync(path.join(image.layers[0]!.directory, "bin/tool"), "utf8")).toHaveLength(80_000);
      expect(blobs()).toHaveLength(4);
    },
  );

  test("a mirror is asked first; one that is down, empty or damaged is passed over", async () => {
    const name = "registry.invalid/team/app";
    registry.putImage("good/team/app", [base], { tag: "1" });
    registry.faults = [
      (request, response) => {
        if (!request.url!.startsWith("/v2/damaged/")) return false;
        const isBlob = request.url!.endsWith(digestOf(base.blob));
        if (isBlob) response.end(Buffer.from(base.blob).fill(0, 20, 40));
        else response.writeHead(307, { location: request.url!.replace("/damaged/", "/good/") }).end();
        return true;
      },
    ];
    const rewrite = [
      "127.0.0.1:9/none",
      `${registry.host}/empty`,
      `${registry.host}/damaged`,
      `${registry.host}/good`,
    ].map((endpoint) => ({ prefix: "registry.invalid", endpoint, only: true }));
    const image = await open({ registry: { rewrite, http: { ...http, attempts: 2 } } }).pull({
      kind: "registry",
      reference: `${name}:1`,
    });
    expect(image.layers).toHaveLength(1);
    // The damaged bytes were taken first, and the right ones after them.
    expect(blobs()).toHaveLength(2);
  });
});

describe.skipIf(!isRoot)("images on disk (needs root)", () => {
  const config = Buffer.from(
    JSON.stringify({
      os: "linux",
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      rootfs: { diff_ids: [base.diffId] },
    }),
  );
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      config: { digest: digestOf(config), size: config.byteLength },
      layers: [{ mediaType: base.mediaType, digest: digestOf(base.blob), size: base.blob.byteLength }],
    }),
  );
  const blobPath = (bytes: Buffer) => `blobs/${digestOf(bytes).replace(":", "/")}`;
  const index = {
    manifests: [
      {
        digest: digestOf(manifest),
        size: manifest.byteLength,
        annotations: { "org.opencontainers.image.ref.name": "app:1" },
      },
    ],
  };
  const layout = [
    file("index.json", JSON.stringify(index)),
    ...[config, manifest, base.blob].map((bytes) => file(blobPath(bytes), bytes as never)),
  ];
  const saved = [
    file("c.json", config.toString()),
    file(
      "a/layer.tar",
      tar([directory("bin"), file("bin/tool", "tool".repeat(20_000)), file("gone")]) as never,
    ),
    { name: "b/layer.tar", type: "2", target: "../a/layer.tar" },
    file(
      "manifest.json",
      JSON.stringify([{ Config: "c.json", RepoTags: ["app:1"], Layers: ["b/layer.tar"] }]),
    ),
  ];

  test("a layout as a directory or an archive, and what docker save writes, give one stack", async () => {
    const folder = scratch.directory();
    for (const { name, content } of layout) {
      mkdirSync(path.dirname(path.join(folder, name as string)), { recursive: true });
      writeFileSync(path.join(folder, name as string), content!);
    }
    const archive = path.join(scratch.base, "layout.tar");
    writeFileSync(archive, tar(layout));
    const dockerArchive = path.join(scratch.base, "saved.tar");
    writeFileSync(dockerArchive, tar(saved));
    const store = open();
    for (const place of [folder, archive, dockerArchive]) {
      const image = await store.pull({ kind: "local", path: place, name: "app:1" });
      expect(readdirSync(image.layers[0]!.directory).sort()).toEqual(["bin", "gone"]);
    }
    await expect(store.pull({ kind: "local", path: archive, name: "other" })).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_IMAGE_UNKNOWN",
      message: expect.stringContaining("app:1"),
    });
  });
});
