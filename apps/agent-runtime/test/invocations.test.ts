/** A real agent runtime process, asked over the AgentCore contract: what it runs, hands back, refuses and forgets. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { INVOCATION_SCHEMA, type InvocationResult, type StartInvocation } from "@mortise/contracts";
import { decodePatch, LayeredImages } from "@mortise/sandbox-manager";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { FakeModel } from "../../../services/sandbox-manager/test/manager-world.js";
import { layoutWithRepository } from "../../../services/sandbox-manager/test/task-images.js";
import { processesWithin } from "../src/place/chroot/processes.js";
import { eventually, SHORT_LIMIT_MS } from "./patience.js";
import { isRoot, PLACES } from "./places.js";
import { REPAIRED, startRequest } from "./requests.js";
import { RuntimeProcess } from "./runtime-process.js";

let scratch: string;
let model: FakeModel;
beforeAll(async () => {
  scratch = mkdtempSync(path.join(tmpdir(), "mortise-runtime-"));
  model = await FakeModel.start();
});
afterEach(() => model.reset());
afterAll(async () => {
  await model?.stop();
  rmSync(scratch, { recursive: true, force: true });
});

/** What a container has by default. */
const CONTAINER_CAPABILITIES =
  "+chown,+dac_override,+fsetid,+fowner,+mknod,+net_raw,+setgid,+setuid,+setfcap,+setpcap,+net_bind_service,+sys_chroot,+kill,+audit_write";

/** A task whose work tree is the image's own, at the runtime as an archive of this name. */
async function imageRequest(name: string): Promise<StartInvocation> {
  const layout = layoutWithRepository(path.join(scratch, `image-${name}`));
  cpSync(layout, path.join(scratch, "archives", name), { recursive: true });
  const images = new LayeredImages(path.join(scratch, `digests-${name}`), {});
  const image = await images.prepare({ kind: "local", path: layout });
  const { digest } = await images.readTree(image, "/testbed");
  await images.close();
  return startRequest(scratch, model, {
    image: { kind: "archive", file: name, digest: image.digest },
    workspace: { kind: "image", digest },
    workdir: "/testbed",
    user: "root",
  });
}

async function entriesOf({ patch }: InvocationResult) {
  return (await decodePatch(Buffer.from(patch ?? "", "base64"))).entries;
}

describe.each(PLACES)("in %s", (place) => {
  let runtime: RuntimeProcess;
  beforeAll(async () => {
    runtime = new RuntimeProcess({
      directory: path.join(scratch, place),
      place,
      archives: path.join(scratch, "archives"),
      limits: "maxBodyBytes = 1000000",
    });
    await runtime.start();
  });
  afterAll(async () => {
    await runtime?.stop();
  });

  test("a harness works on the task, and its change comes back as a patch", async () => {
    model.reply = { write: { "src/add.cjs": REPAIRED }, say: "said the-session-token" };
    const request = await startRequest(scratch, model);
    const result = await runtime.invoke(request);
    expect(result).toMatchObject({
      id: request.id,
      outcome: { kind: "exited", code: 0 },
      end: { kind: "completed" },
      harness: { name: "scripted", version: "7" },
      outputTail: "said ***",
      isModelUnreachable: false,
      place: { kind: place, network: place === "runc" ? "closed" : "open", history: "no-repository" },
    });
    expect(await entriesOf(result)).toEqual([
      { kind: "file", path: "src/add.cjs", mode: 0o644, content: Buffer.from(REPAIRED) },
    ]);
    const [asked] = model.requests;
    expect(asked).toMatchObject({
      authorization: "Bearer the-session-token",
      body: { instruction: "Repair it.", setting: "of-the-task", uid: 1000, cwd: "/workspace" },
    });
    expect(JSON.stringify(result)).not.toContain("the-session-token");
    expect(runtime.output).not.toContain("the-session-token");
  });

  test("an image of a registry's format is flattened or stacked, and its history is not there", async () => {
    model.reply = { write: { "src/add.cjs": REPAIRED } };
    const request = await imageRequest(place);
    const result = await runtime.invoke(request);
    expect(result, JSON.stringify(result)).toMatchObject({
      outcome: { kind: "exited", code: 0 },
      place: { kind: place, history: "hidden" },
    });
    expect((await entriesOf(result)).map(({ path: name }) => name)).toEqual(["src/add.cjs"]);
    expect(model.requests[0]!.body).toMatchObject({ uid: 0, cwd: "/testbed" });
    // One commit without a name that leads elsewhere: "later" held the repair.
    const seen = model.requests[0]!.body.files as string[];
    expect(seen.filter((name) => name.includes("later"))).toEqual([]);

    const other = await runtime.invoke({
      ...request,
      id: `${request.id}-b`,
      image: { ...request.image, digest: "0".repeat(64) },
    });
    expect(other).toMatchObject({ outcome: { kind: "refused", code: "MORTISE_SANDBOX_IMAGE_DIGEST" } });
    expect(model.requests).toHaveLength(1);
  });

  test("who names an id again joins it; another body is refused; what is full refuses and runs nothing", async () => {
    model.reply = { hang: true };
    const request = await startRequest(scratch, model);
    const running = runtime.invoke(request);
    await eventually(async () => model.requests.length).toBe(1);
    expect((await runtime.ping()).status).toBe("HealthyBusy");

    const joined = runtime.invoke(request);
    const attached = runtime.invoke({ schema: INVOCATION_SCHEMA, kind: "attach", id: request.id });
    const changed = await runtime.post({ ...request, instruction: "Another." });
    expect([changed.status, await changed.text()]).toEqual([503, expect.stringContaining("another body")]);
    const full = await runtime.post(await startRequest(scratch, model));
    expect([full.status, full.headers.get("retry-after")]).toEqual([503, "1"]);

    const cancelled = await runtime.invoke({ schema: INVOCATION_SCHEMA, kind: "cancel", id: request.id });
    expect(cancelled.outcome).toEqual({ kind: "cancelled" });
    expect(await Promise.all([running, joined, attached])).toEqual([cancelled, cancelled, cancelled]);
    expect((await runtime.ping()).status).toBe("Healthy");
    expect(await runtime.invoke(request)).toEqual(cancelled);
    expect(model.requests).toHaveLength(1);
  });

  test("an agent is ended at its limit, with the change it made until then", async () => {
    model.reply = { write: { "half.txt": "half" }, hang: true };
    const request = await startRequest(scratch, model);
    const result = await runtime.invoke({
      ...request,
      limits: { ...request.limits, timeoutMs: SHORT_LIMIT_MS },
    });
    expect(result.outcome).toEqual({ kind: "timeout" });
    expect((await entriesOf(result)).map(({ path: name }) => name)).toEqual(["half.txt"]);
  });

  test("a stream tells what goes on, and goes on without its reader", async () => {
    model.reply = { hang: true };
    const request = await startRequest(scratch, model);
    const reader = new AbortController();
    const response = await runtime.post(request, { accept: "text/event-stream" }, reader.signal);
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    await eventually(async () => model.requests.length).toBe(1);
    reader.abort();
    expect((await runtime.ping()).status).toBe("HealthyBusy");
    void runtime.post({ schema: INVOCATION_SCHEMA, kind: "cancel", id: request.id });
    const again = await runtime.post(
      { schema: INVOCATION_SCHEMA, kind: "attach", id: request.id },
      { accept: "text/event-stream" },
    );
    const text = await again.text();
    expect(text).toMatch(/^event: status\ndata: \{"phase":"(running|collecting)"/);
    expect(text).toMatch(/event: result\ndata: \{.*"outcome":\{"kind":"cancelled"\}/);
  });

  test("what is no invocation is refused with the field, and nothing is run", async () => {
    const request = await startRequest(scratch, model);
    const refusals = {
      "no JSON": [await runtime.post("{"), 400, "JSON"],
      "no id": [await runtime.post({ ...request, id: undefined }), 400, "id"],
      "an unknown key": [await runtime.post({ ...request, colour: "red" }), 400, "colour"],
      "a path that leaves": [
        await runtime.post({ ...request, image: { kind: "archive", file: "../x", digest: "0".repeat(64) } }),
        400,
        "plain file name",
      ],
      "a body that is too long": [
        await runtime.post({ ...request, instruction: "x".repeat(1_000_000) }),
        413,
        "too large",
      ],
      "a wrong token": [await runtime.post(request, { authorization: "Bearer other" }), 401, "token"],
      "no token": [await runtime.post(request, { authorization: "" }), 401, "token"],
      "an unknown id": [
        await runtime.post({ schema: INVOCATION_SCHEMA, kind: "attach", id: "r1.none" }),
        404,
        "r1.none",
      ],
    } as const;
    for (const [name, [response, status, words]] of Object.entries(refusals))
      expect([name, response.status, await response.text()]).toEqual([
        name,
        status,
        expect.stringContaining(words),
      ]);

    const unknown = await runtime.invoke({ ...request, harness: "other" });
    expect(unknown.outcome).toMatchObject({ kind: "refused", code: "MORTISE_HARNESS_UNKNOWN" });
    const wrongTree = await startRequest(scratch, model);
    const tree = await runtime.invoke({
      ...wrongTree,
      workspace: { ...wrongTree.workspace, digest: "0".repeat(64) },
    });
    expect(tree.outcome).toMatchObject({ kind: "refused", code: "MORTISE_SANDBOX_PATCH" });
    expect(model.requests).toHaveLength(0);
  });

  test("links an agent leaves lead nowhere, and nothing of an invocation stays", async () => {
    model.reply = { say: "x" };
    const request = await startRequest(scratch, model);
    await runtime.invoke(request);
    expect((await runtime.ping()).status).toBe("Healthy");
    if (place === "chroot") expect(readdirSync(path.join(scratch, place, "state/chroot/roots"))).toEqual([]);
    const mounts = readFileSync("/proc/mounts", "utf8");
    expect(
      mounts.split("\n").filter((line) => line.includes(`${path.join(scratch, place)}/state/chroot`)),
    ).toEqual([]);
  });

  test("told to stop it takes nothing more, and its callers hear what became of theirs", async () => {
    model.reply = { hang: true };
    const request = await startRequest(scratch, model);
    const running = runtime.invoke(request);
    await eventually(async () => model.requests.length).toBe(1);
    const code = await runtime.stop();
    expect((await running).outcome).toEqual({ kind: "cancelled" });
    expect(code).toBe(0);
    await runtime.start();
    const forgotten = await runtime.post({ schema: INVOCATION_SCHEMA, kind: "attach", id: request.id });
    expect(forgotten.status).toBe(404);
  });

  test("killed, it leaves nothing its successor does not remove", async () => {
    model.reply = { hang: true };
    const running = runtime.invoke(await startRequest(scratch, model)).catch((error: Error) => error);
    await eventually(async () => model.requests.length).toBe(1);
    await runtime.stop("SIGKILL");
    expect(await running).toBeInstanceOf(Error);
    await runtime.start();
    const state = path.join(scratch, place, "state");
    expect(processesWithin(state)).toEqual([]);
    if (place === "chroot") expect(readdirSync(path.join(state, "chroot/roots"))).toEqual([]);
  });
});

describe.runIf(isRoot)("on a machine", () => {
  test("that allows no mounts it works in a flattened root all the same", async () => {
    const runtime = new RuntimeProcess({
      directory: path.join(scratch, "bare"),
      place: "chroot",
      archives: path.join(scratch, "archives"),
      wrapper: ["setpriv", `--bounding-set=-all,${CONTAINER_CAPABILITIES}`, "--"],
    });
    await runtime.start();
    try {
      expect(runtime.output).toContain('"canMount":false');
      model.reply = { write: { "src/add.cjs": REPAIRED } };
      const result = await runtime.invoke(await startRequest(scratch, model));
      expect(result, JSON.stringify(result)).toMatchObject({ outcome: { kind: "exited", code: 0 } });
      expect((await entriesOf(result)).map(({ path: name }) => name)).toEqual(["src/add.cjs"]);
      expect(result.place?.notes).toContainEqual(expect.stringContaining("allows no mounts"));
      const request = await imageRequest("bare");
      expect(await runtime.invoke(request)).toMatchObject({
        outcome: { kind: "exited", code: 0 },
        place: { history: "hidden" },
      });
    } finally {
      await runtime.stop();
    }
  });

  test("where it is not root, it does not start and says why", async () => {
    const runtime = new RuntimeProcess({
      directory: path.join(scratch, "user"),
      place: "auto",
      wrapper: ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"],
    });
    execFileSync("chmod", ["-R", "a+rX", scratch]);
    await expect(runtime.start()).rejects.toThrow(
      /ended with 2:\nMORTISE_SANDBOX_BACKEND: .*not root[\s\S]*fix: /,
    );
  });
});
