/** What `provision` writes into the volumes, on a directory: kept when asked again, refused when asked otherwise. */
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readRunConfig, readSiteConfig } from "@mortise/kernel";
import { afterEach, beforeEach, expect, test } from "vitest";
import { writeClusterSite, writeSecrets } from "../../src/compose/cluster-files.js";
import { prepareRun } from "../../src/compose/run-files.js";
import { BUS_USERS } from "../../src/provision/identity.js";

const OPTIONS = { runId: "first", seed: 1, steps: 2, evalAttempts: 0, control: false, sets: [] };
/** 896 tasks and a tokenizer are made: seconds on an idle machine. */
const PREPARE_LIMIT_MS = 180_000;
let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "mortise-cluster-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

test("each user's directory holds that user's identity alone, and a second start keeps it", async () => {
  const directories = { identities: join(directory, "identities"), shared: directory };
  await writeSecrets(directories);
  const contents = async () =>
    Promise.all(
      BUS_USERS.map((user) => readFile(join(directories.identities, user, `${user}.json`), "utf8")),
    );
  const first = await contents();
  const server = await readFile(join(directories.identities, "nats", "nats.conf"), "utf8");
  await writeSecrets(directories);
  expect(await contents()).toEqual(first);
  expect(await readFile(join(directories.identities, "nats", "nats.conf"), "utf8")).toBe(server);
  for (const user of BUS_USERS) {
    expect(await readdir(join(directories.identities, user))).toEqual([`${user}.json`]);
    expect((await stat(join(directories.identities, user, `${user}.json`))).mode & 0o777).toBe(0o600);
  }
});

test("the site file has the ports of docker-compose.yml and holds no secret", async () => {
  await writeClusterSite({ identities: directory, shared: directory }, "/tasks");
  const site = await readSiteConfig(join(directory, "site.toml"));
  expect([site.rpc, site.http, site.proxy].map(({ host, port }) => `${host}:${port}`)).toEqual([
    "0.0.0.0:9091",
    "0.0.0.0:9090",
    "0.0.0.0:8080",
  ]);
  expect(site.nats.url).toBe("nats://nats:4222");
});

test(
  "a run is found again; other steps, and another seed for the cluster, are refused",
  async () => {
    const made = await prepareRun(directory, OPTIONS);
    expect(made.isNew).toBe(true);
    const file = join(made.directory, "run.toml");
    expect((await readRunConfig(file)).trainer.steps).toBe(2);
    expect((await prepareRun(directory, OPTIONS)).isNew).toBe(false);
    const refused = { code: "MORTISE_OPERATOR_RUN_EXISTS" };
    await expect(prepareRun(directory, { ...OPTIONS, steps: 3 })).rejects.toMatchObject(refused);
    await expect(prepareRun(directory, { ...OPTIONS, runId: "second", seed: 2 })).rejects.toMatchObject(
      refused,
    );
    expect((await readRunConfig(file)).trainer.steps).toBe(2);
    expect(await readdir(join(directory, "runs"))).toEqual(["first"]);
  },
  PREPARE_LIMIT_MS,
);
