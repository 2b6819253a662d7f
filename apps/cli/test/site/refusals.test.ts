/** What `mortise site` refuses, as the operator's to mend: the field, what to do, and nothing written. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MortiseError } from "@mortise/contracts";
import { operatorsError, readRunConfig } from "@mortise/kernel";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { prepareSite, type SiteWish } from "../../src/site/init/prepare-site.js";
import { keepSiteUp } from "../../src/site/up/bring-up.js";
import { type OwnProject, writeOwnProject } from "./own-project.js";

let directory: string;
let own: OwnProject;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "mortise-site-refusals-"));
  own = await writeOwnProject(directory, "results");
  const put = (path: string, text: string) => {
    mkdirSync(join(directory, path, ".."), { recursive: true });
    writeFileSync(join(directory, path), text);
  };
  put("broken/good/task.toml", 'schema_version = "1.4"\n[environment]\nmemory_mb = "much"\n');
  put("broken/other/task.toml", 'schema_version = "1.4"\n');
  put("empty/readme", "no task\n");
  put("wrong-key.toml", `${readFileSync(own.harness, "utf8").replace("argv =", "argz =")}`);
  put("adapted.toml", 'adapter = "codex"\n');
  put("with-files.toml", 'directory = "program"\nargv = ["node"]\nfiles = { "{home}/a" = "b" }\n');
  put("no-place.toml", 'directory = "nowhere"\nargv = ["node"]\n');
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const init = (flags: Partial<SiteWish>) =>
  prepareSite({
    directory: join(directory, "site"),
    heldOut: 0,
    backend: "process",
    engine: "embedded",
    runId: "first",
    note: () => {},
    ...flags,
  });

/** What it is refused with; the exit code is 2 for these errors. */
async function refusal(doing: Promise<unknown>): Promise<MortiseError> {
  const error = operatorsError(await doing.then(() => undefined).catch((thrown: unknown) => thrown));
  if (error === undefined) throw new Error("it was not refused as the operator's mistake");
  expect(error.fix).not.toBe("");
  return error;
}

/** `@` stands for the directory of the test. */
const TASKS = { tasks: "@tasks" };
const MINI = { ...TASKS, harness: "mini" };
const POLICY = { ...MINI, checkpoint: "@policy-16384" };
test.for([
  ["no tasks", { harness: "mini" }, "--tasks", "a new site needs it"],
  ["no harness", TASKS, "--harness", "a new site needs it"],
  ["tasks that are not there", { ...MINI, tasks: "@absent" }, "--tasks", "does not exist"],
  ["a directory without tasks", { ...MINI, tasks: "@empty" }, "--tasks", "holds no task"],
  ["one task for several", { ...MINI, tasks: "@tasks/median-even" }, "--tasks", "is one task"],
  ["broken tasks, all of them", { ...MINI, tasks: "@broken" }, "--tasks", "2 of 2 tasks"],
  ["more held out than there are", { ...MINI, heldOut: 2 }, "--held-out", "leave none to train on"],
  ["an unknown harness", { ...TASKS, harness: "claude-cod" }, "--harness", "claude-code"],
  ["a harness without a place", { ...TASKS, harness: "codex" }, "--harness", "runtime"],
  ["the same by a file", { ...TASKS, harness: "@adapted.toml" }, "--harness", "runtime"],
  ["files without a root", { ...TASKS, harness: "@with-files.toml" }, "--harness", "no root"],
  ["an unknown key", { ...TASKS, harness: "@wrong-key.toml" }, "--harness", "argz"],
  ["an absent program", { ...TASKS, harness: "@no-place.toml" }, "--harness", "nowhere"],
  ["no checkpoint there", { ...MINI, checkpoint: "@empty" }, "--checkpoint", "config.json"],
  ["nothing at the address", { ...POLICY, engine: "http://127.0.0.1:1" }, "--engine", "nothing answers"],
  ["no such script", { ...POLICY, engine: "@absent.jsonl" }, "--engine", "neither"],
] as const)("site init refuses %s", async ([, given, field, words]) => {
  const placed = Object.entries(given).map(([key, value]) => [
    key,
    typeof value === "string" ? value.replace("@", `${directory}/`) : value,
  ]);
  const error = await refusal(init(Object.fromEntries(placed)));
  expect(error).toMatchObject({ detail: { field }, message: expect.stringContaining(words) });
  expect(existsSync(join(directory, "site"))).toBe(false);
});

test("an engine that serves several models has to be told which", async () => {
  const server = createHttpServer((_, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ data: [{ id: "one" }, { id: "two" }] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const given = { tasks: own.tasks, harness: "mini", checkpoint: own.checkpoint };
  const engine = `http://127.0.0.1:${port}/v1`;
  try {
    const error = await refusal(init({ ...given, engine }));
    expect(error).toMatchObject({
      detail: { field: "--model" },
      message: expect.stringContaining("one, two"),
    });
    const prepared = await init({ ...given, engine, model: "two", directory: join(directory, "served") });
    const run = await readRunConfig(prepared.run!);
    expect(run.engine).toMatchObject({ kind: "vllm", urls: [`http://127.0.0.1:${port}`], model: "two" });
  } finally {
    server.close();
  }
});

describe("site up refuses", () => {
  let site: string;
  beforeAll(async () => {
    const given = { tasks: own.tasks, harness: own.harness, heldOut: 1 };
    site = (await init({ ...given, directory: join(directory, "made") })).site;
  });

  const up = (file: string) => refusal(keepSiteUp(file, { note: () => {}, update: () => {}, end: () => {} }));

  test("a site that is not there", async () => {
    expect(await up(join(directory, "absent.toml"))).toMatchObject({ code: "MORTISE_CONFIG_UNREADABLE" });
  });
  test("a key nobody knows, with the nearest", async () => {
    const file = join(directory, "made/wrong.toml");
    writeFileSync(file, readFileSync(site, "utf8").replace(/^port = /m, "prot = "));
    expect(await up(file)).toMatchObject({
      detail: { field: "proxy.prot" },
      message: expect.stringContaining("port"),
    });
  });
  test.for([
    ["nats.url", /nats:\/\/127\.0\.0\.1:(\d+)/],
    ["proxy.port", /^port = (\d+)/m],
  ] as const)("a taken port: %s", async ([field, pattern]) => {
    const port = Number(pattern.exec(readFileSync(site, "utf8"))![1]);
    const taken = await listen(port);
    try {
      expect(await up(site)).toMatchObject({ code: "MORTISE_OPERATOR_PORT_IN_USE", detail: { field } });
    } finally {
      taken.close();
    }
  });
  test("one port for several services", async () => {
    const file = join(directory, "made/one-port.toml");
    writeFileSync(file, `${readFileSync(site, "utf8")}\n[http]\nport = 9090\n`);
    expect(await up(file)).toMatchObject({ detail: { field: "http.port" } });
  });
  test("identities that are not all there", async () => {
    rmSync(join(directory, "made/identity/verifier.json"));
    expect(await up(site)).toMatchObject({ detail: { field: "identity.directory" } });
  });
});

function listen(port: number): Promise<Server> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: "127.0.0.1", port }, () => resolve(server));
  });
}
