/** What a harness is given in a sandbox: files that know no secret, a complete environment, a home it may write to. */
import { SiteConfig } from "@mortise/contracts";
import { HARNESSES } from "@mortise/harnesses";
import { beforeEach, describe, expect, test } from "vitest";
import type { Command, ExecResult, Image, SandboxUser } from "../../src/backend/types.js";
import { resolveHarness } from "../../src/harness/resolved.js";
import { type HarnessFacts, type HarnessParts, ShelvedHarness } from "../../src/harness/shelved-harness.js";
import { unpackTar } from "../../src/patch/tar.js";

const TOKEN = "token-of-the-trial";
const facts: HarnessFacts = {
  token: TOKEN,
  model: "policy",
  instruction: "Repair it.",
  workspace: "/testbed",
  environment: { PATH: "/opt/conda/bin:/usr/bin", SETTING: "of the image", HOME: "/tmp" },
  user: "agent",
};
const image = { digest: "image-1", kind: "host", defaults: { environment: {} } } as Image;
const nowhere = { directory: "/somewhere" };
const site = { nats: { url: "nats://x" }, identity: nowhere, state: nowhere, tasks: nowhere };

function shelved(settings: object, wants?: HarnessParts["wants"]): ShelvedHarness {
  const harness = SiteConfig.parse({ ...site, harness: { agent: settings } }).harness.agent!;
  return new ShelvedHarness({ resolved: resolveHarness("agent", harness), mounts: [], wants });
}

/** Remembers what is put into it, and answers every command with what the test says. */
class RecordingSandbox {
  readonly put: { readonly name: string; readonly text: string }[] = [];
  readonly owners: (SandboxUser | undefined)[] = [];
  readonly commands: Command[] = [];
  says = "";

  async putTar(directory: string, tar: Uint8Array, owner?: SandboxUser): Promise<void> {
    expect(directory).toBe("/");
    this.owners.push(owner);
    const members = await unpackTar(tar, 1 << 20);
    this.put.push(...members.map(({ name, content }) => ({ name, text: Buffer.from(content).toString() })));
  }

  async exec(command: Command): Promise<ExecResult> {
    this.commands.push(command);
    const output = (text: string) => ({ bytes: Buffer.from(text), isTruncated: false });
    return {
      outcome: { kind: "exited", code: 0 },
      stdout: output(this.says),
      stderr: output(""),
      usage: {},
      wallMs: 1,
      isInsecure: false,
    } as ExecResult;
  }
}

let sandbox: RecordingSandbox;
beforeEach(() => {
  sandbox = new RecordingSandbox();
});

const adapters = HARNESSES.flatMap(({ name, wireApis }) => wireApis.map((wireApi) => ({ name, wireApi })));
describe.each(adapters)("$name over $wireApi", ({ name, wireApi }) => {
  const harness = shelved({ adapter: name, wireApi, environment: { EXTRA: "of the site" } });

  test("the token is in the environment and nowhere else", async () => {
    const { argv, environment } = harness.command(facts);
    expect(argv.join("\n")).not.toContain(TOKEN);
    expect(Object.values(environment)).toContain(TOKEN);
    await harness.install(sandbox, image, facts);
    expect(JSON.stringify(sandbox.put)).not.toContain(TOKEN);
  });

  test("its files lie below a home of its own, which is the one it is told", async () => {
    await harness.install(sandbox, image, facts);
    const home = harness.command(facts).environment.HOME!;
    expect(sandbox.put[0]!.name.replace(/\/$/, "")).toBe(home.slice(1));
    for (const { name: file } of sandbox.put) expect(`/${file}`).toContain(home);
  });

  test("what image, task and site say stays; programs brought along come last", () => {
    const { environment } = harness.command(facts);
    expect(environment).toMatchObject({ SETTING: "of the image", EXTRA: "of the site" });
    expect(environment.PATH).toMatch(/(^|:)\/opt\/conda\/bin:\/usr\/bin:\/opt\/rt\/programs$/);
  });
});

test.each(["agent", "root"] as const)("a home belongs to %s who runs there", async (user) => {
  await shelved({ adapter: "codex" }).install(sandbox, image, { ...facts, user });
  expect(sandbox.owners).toEqual([user]);
});

describe("a configured command", () => {
  const settings = { directory: "/opt/agent", argv: ["node", "{runtime}/a.cjs", "{instruction}"] };

  test("finds what its configuration says, in the environment of the task", async () => {
    const harness = shelved({
      ...settings,
      environment: { URL: "{model_url}", KEY: "{token}" },
      version: "3",
    });
    const { argv, environment } = harness.command(facts);
    expect(argv).toEqual(["node", "/opt/harness/a.cjs", "Repair it."]);
    expect(environment).toEqual({
      ...facts.environment,
      URL: "http://127.0.0.1:8080/v1",
      KEY: TOKEN,
    });
    expect(harness.version).toBe("3");
    await harness.install(sandbox, image, facts);
    expect(sandbox.put).toEqual([]);
  });

  test("has its files written without the token", async () => {
    const harness = shelved({
      ...settings,
      files: { "{home}/agent.json": '{"key": "{token}", "m": "{model}"}' },
    });
    await harness.install(sandbox, image, facts);
    expect(sandbox.put.at(-1)).toEqual({ name: "tmp/agent.json", text: '{"key": "", "m": "policy"}' });
  });
});

describe("an image", () => {
  const wants = { harness: "agent 1", binaries: new Map(), programs: ["bash"] };

  test("is asked once, with its own PATH, however many sandboxes start from it", async () => {
    const harness = shelved({ adapter: "codex" }, wants);
    sandbox.says = '{"musl":false,"glibc":"2.36","missing":[]}';
    await harness.install(sandbox, image, facts);
    await harness.install(sandbox, image, facts);
    expect(sandbox.commands).toHaveLength(1);
    expect(sandbox.commands[0]).toMatchObject({ environment: { PATH: "/opt/conda/bin:/usr/bin" } });
    await harness.install(sandbox, { ...image, digest: "image-2" } as Image, facts);
    expect(sandbox.commands).toHaveLength(2);
  });

  test("that lacks something is refused before anything is written", async () => {
    sandbox.says = '{"musl":true,"glibc":null,"missing":["bash"]}';
    const installing = shelved({ adapter: "codex" }, wants).install(sandbox, image, facts);
    await expect(installing).rejects.toMatchObject({
      code: "MORTISE_HARNESS_UNFIT",
      message: expect.stringContaining("agent 1 cannot run in this image"),
    });
    expect(sandbox.put).toEqual([]);
  });
});
