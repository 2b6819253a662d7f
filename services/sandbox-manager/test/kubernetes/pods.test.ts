/** What a pod is described as, what keeps one from running, and whose pods are removed: against a FAKE API server. */
import type { V1Pod } from "@kubernetes/client-node";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { World } from "./world.js";

let world: World;
beforeEach(async () => {
  world = await new World().start({ startTimeoutMs: 1500 });
});
afterEach(() => world.stop());

const waiting = (reason: string, message: string) => (pod: V1Pod) =>
  world.api.become(pod.metadata!.name!, {
    phase: "Pending",
    containerStatuses: [
      {
        name: "sandbox",
        image: "x",
        imageID: "",
        ready: false,
        restartCount: 0,
        state: { waiting: { reason, message } },
      },
    ],
  });

describe("a pod that never runs", () => {
  test.each([
    ["ErrImagePull", 'failed to pull: "x": not found', "MORTISE_SANDBOX_IMAGE_UNKNOWN"],
    ["ImagePullBackOff", "pull access denied, repository does not exist", "MORTISE_SANDBOX_IMAGE_DENIED"],
    ["ErrImagePull", "dial tcp: i/o timeout", "MORTISE_SANDBOX_IMAGE_REGISTRY"],
    ["InvalidImageName", "invalid reference format", "MORTISE_SANDBOX_IMAGE_REFERENCE"],
    ["CreateContainerError", "no such file", "MORTISE_SANDBOX_SETUP"],
    ["ImagePullBackOff", "Back-off pulling image", "MORTISE_SANDBOX_SETUP"],
  ])("for %s: %s is %s, and is removed", async (reason, message, code) => {
    await world.backend.start();
    world.api.onCreate = waiting(reason, message);
    await expect(world.create()).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
    expect(world.api.pods.size).toBe(0);
  });

  test("for want of a node says what the scheduler says", async () => {
    await world.backend.start();
    world.api.onCreate = (pod) =>
      world.api.become(pod.metadata!.name!, {
        phase: "Pending",
        conditions: [
          {
            type: "PodScheduled",
            status: "False",
            reason: "Unschedulable",
            message: "0/3 nodes: Insufficient cpu",
          },
        ],
      });
    await expect(world.create()).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_SETUP",
      message: expect.stringMatching(/startTimeoutMs \(1500\).*Unschedulable: 0\/3 nodes: Insufficient cpu/),
    });
  });

  test("because its network could not be closed is no sandbox", async () => {
    await world.backend.start();
    world.api.onCreate = (pod) =>
      world.api.become(pod.metadata!.name!, {
        phase: "Failed",
        initContainerStatuses: [
          {
            name: "close",
            image: "x",
            imageID: "",
            ready: false,
            restartCount: 0,
            state: { terminated: { exitCode: 1, reason: "Error" } },
          },
        ],
      });
    await expect(world.create()).rejects.toMatchObject({ code: "MORTISE_SANDBOX_NOT_CLOSED" });
  });

  test.each([
    [{ code: 403, message: "exceeded quota: trials" }, "MORTISE_SANDBOX_SETUP"],
    [{ code: 403, message: "pods is forbidden: User cannot create" }, "MORTISE_SANDBOX_BACKEND"],
    [{ code: 422, message: "spec.runtimeClassName: not found" }, "MORTISE_SANDBOX_BACKEND"],
  ])("because the API server said $message", async (refusal, code) => {
    await world.backend.start();
    world.api.refuseCreate = refusal;
    await expect(world.create()).rejects.toMatchObject({
      code,
      message: expect.stringContaining(refusal.message),
    });
  });
});

describe("a pod", () => {
  test("is closed before anything else, is nobody's account, ends by itself and asks for what it is limited to", async () => {
    await world.stop();
    world = await new World().start({
      runtimeClass: "nydus",
      annotations: { lazy: "yes" },
      labels: { team: "a" },
      seccomp: "s.json",
      requestShare: 0.5,
      deadlineMs: 90_500,
      tolerations: [{ key: "agents" }],
    });
    await world.backend.start();
    await world.create({ scratch: [{ target: "/scratch", bytes: 1024 }] });
    const [{ metadata, spec }] = [...world.api.pods.values()] as [V1Pod];
    expect(metadata!.name).toMatch(/^mortise-[0-9a-f]{12}-[0-9a-f]{20}$/);
    expect(metadata!.labels).toMatchObject({ team: "a", "app.kubernetes.io/managed-by": "mortise" });
    expect(metadata!.annotations).toMatchObject({ lazy: "yes", "mortise.dev/sandbox": "s-1" });
    expect(spec).toMatchObject({
      runtimeClassName: "nydus",
      restartPolicy: "Never",
      activeDeadlineSeconds: 91,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      shareProcessNamespace: false,
      tolerations: [{ key: "agents", operator: "Exists" }],
    });
    const [close] = spec!.initContainers!;
    expect(close!.securityContext!.capabilities).toEqual({ drop: ["ALL"], add: ["NET_ADMIN"] });
    const [relay, sandbox] = spec!.containers;
    expect(relay!.securityContext).toMatchObject({ runAsUser: 1000, capabilities: { drop: ["ALL"] } });
    expect(sandbox!.securityContext!.capabilities!.add).not.toContain("NET_ADMIN");
    expect(sandbox!.securityContext).toMatchObject({
      allowPrivilegeEscalation: false,
      seccompProfile: { type: "Localhost", localhostProfile: "s.json" },
    });
    expect(sandbox!.resources).toEqual({
      requests: { cpu: "250m", memory: String(32 * 1024 ** 2), "ephemeral-storage": String(512 * 1024) },
      limits: { cpu: "500m", memory: String(64 * 1024 ** 2), "ephemeral-storage": String(1024 ** 2) },
    });
    expect(sandbox!.image).toMatch(/^127\.0\.0\.1:\d+\/host@sha256:[0-9a-f]{64}$/);
    expect(spec!.volumes).toContainEqual({
      name: "scratch-0",
      emptyDir: { medium: "Memory", sizeLimit: "1024" },
    });
    expect(world.api.asked).toContain("POST /apis/networking.k8s.io/v1/namespaces/sandboxes/networkpolicies");
  });

  test("of a manager that is gone is removed by the next one, and another's only once it has long ended", async () => {
    await world.backend.start();
    await world.create();
    const [mine] = [...world.api.pods.values()] as [V1Pod];
    const foreign = (name: string, status: V1Pod["status"], age: number): void => {
      const labels = { ...mine.metadata!.labels, "mortise.dev/owner": "another" };
      const creationTimestamp = new Date(Date.now() - age);
      world.api.pods.set(name, {
        ...mine,
        metadata: { ...mine.metadata, name, labels, creationTimestamp },
        status: status!,
      });
    };
    foreign("lives", { phase: "Running" }, 1e9);
    foreign("ended-now", { phase: "Failed" }, 1000);
    foreign("ended-long-ago", { phase: "Failed" }, 1e9);
    const next = world.make();
    const swept = await next.start();
    expect(swept.containers).toBe(2);
    expect([...world.api.pods.keys()].sort()).toEqual(["ended-now", "lives"]);
    await next.stop();
  });
});

describe("an image", () => {
  test("is named to the nodes by its digest, where the site's rules lead", async () => {
    const rewrite = [{ prefix: "docker.io/library", endpoint: world.registry.host, only: true }];
    world.backend = world.make({}, { rewrite });
    await world.backend.start();
    const image = await world.backend.prepareImage({ kind: "registry", reference: "host:1" });
    expect(image.defaults.environment).toEqual({ FROM: "image" });
    await world.create({ image });
    const [pod] = [...world.api.pods.values()] as [V1Pod];
    expect(pod.spec!.containers[1]!.image).toBe(`${world.registry.host}/host@sha256:${image.digest}`);
  });
});

describe("the backend", () => {
  test("says what is missing before it is chosen", async () => {
    const none = world.make({ helperImage: undefined });
    expect(await none.availability()).toMatchObject({
      ok: false,
      reason: expect.stringContaining("helperImage"),
    });
    expect(await world.backend.availability()).toEqual({ ok: true });
    await world.api.stop();
    const gone = await world.backend.availability();
    expect(gone).toMatchObject({ ok: false, reason: expect.stringContaining("sandboxes") });
  });

  test("refuses what a cluster cannot give, with the fix", async () => {
    await world.backend.start();
    const refused = { code: "MORTISE_SANDBOX_BACKEND", fix: expect.any(String) };
    await expect(world.backend.prepareImage({ kind: "local", path: "/x.tar" })).rejects.toMatchObject(
      refused,
    );
    await expect(world.backend.prepareImage({ kind: "engine", name: "x" })).rejects.toMatchObject(refused);
    const sandbox = await world.create();
    await expect(sandbox.snapshot()).rejects.toMatchObject(refused);
    await expect(sandbox.seal!({ workdir: "/workspace", answers: {} as never })).rejects.toMatchObject(
      refused,
    );
    const network = { kind: "allow-list", host: "127.0.0.1", port: 9, allowedHosts: ["pypi.org"] } as const;
    await expect(sandbox.setNetwork(network)).rejects.toMatchObject({ code: "MORTISE_SANDBOX_NETWORK" });
  });
});
