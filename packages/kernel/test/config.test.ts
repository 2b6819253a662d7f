import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { nearestName, parseStrict } from "../src/config/parse.js";
import { loadToml, mergeSets, mergeTables } from "../src/config/toml.js";

const Schema = z.strictObject({
  trainer: z
    .strictObject({
      learningRate: z.number().positive(),
      algorithm: z.enum(["grpo", "gspo"]).default("gspo"),
    })
    .prefault({ learningRate: 1 }),
  engines: z.record(z.string(), z.strictObject({ address: z.string() })).default({}),
  store: z
    .discriminatedUnion("kind", [
      z.strictObject({ kind: z.literal("disk"), directory: z.string() }),
      z.strictObject({ kind: z.literal("http"), endpoint: z.string() }),
    ])
    .optional(),
});

function refusal(value: unknown): MortiseError {
  try {
    parseStrict(Schema, value, { source: "run.toml" });
  } catch (error) {
    expect(error).toBeInstanceOf(MortiseError);
    return error as MortiseError;
  }
  throw new Error("was accepted");
}

describe("a configuration that is refused", () => {
  test("names the nearest valid key and where it is", () => {
    const error = refusal({ trainer: { learningrate: 0.1, learningRate: 0.1 } });
    expect(error.code).toBe("MORTISE_CONFIG_UNKNOWN_KEY");
    expect(error.message).toContain("run.toml: unknown key trainer.learningrate; did you mean learningRate?");
    expect(error.detail).toMatchObject({ field: "trainer.learningrate" });
  });

  test("lists the valid keys when none is near", () => {
    expect(refusal({ zzzzzzzz: 1 }).message).toContain("valid keys here: engines, store, trainer");
  });

  test("speaks of the option of a union that has the keys which are there", () => {
    const schema = z.object({
      one: z.union([
        z.strictObject({ adapter: z.string() }),
        z.strictObject({ argv: z.array(z.string()).min(1), directory: z.string() }),
      ]),
    });
    const refused = () => parseStrict(schema, { one: { argv: [] } }, { source: "site.toml" });
    expect(refused).toThrow("one.argv = []");
    expect(refused).toThrow("one.directory is missing");
    expect(refused).not.toThrow("adapter");
  });

  test("looks inside records and the chosen option of a union", () => {
    expect(refusal({ engines: { a: { adress: "x", address: "y" } } }).message).toContain(
      "did you mean address?",
    );
    const error = refusal({ store: { kind: "http", endpoint: "x", endpiont: "y", directory: "z" } });
    expect(error.message).toContain("store.endpiont; did you mean endpoint?");
    expect(error.message).toContain("unknown key store.directory; valid keys here: endpoint, kind");
  });

  test("names field, given value and what is allowed", () => {
    const error = refusal({ trainer: { learningRate: -1, algorithm: "ppx" } });
    expect(error.code).toBe("MORTISE_CONFIG_INVALID");
    expect(error.message).toMatch(/trainer\.learningRate = -1: .*>0/);
    expect(error.message).toMatch(/trainer\.algorithm = "ppx": .*"grpo"\|"gspo"/);
    expect(error.detail).toMatchObject({ field: "trainer.learningRate" });
  });

  test("names the nearest of the values that are allowed", () => {
    const { message } = refusal({ trainer: { learningRate: 1, algorithm: "gspro" } });
    expect(message).toContain('trainer.algorithm = "gspro"');
    expect(message).toContain("did you mean gspo?");
  });

  test("says that a value is missing", () => {
    expect(refusal({ trainer: {} }).message).toContain("trainer.learningRate is missing");
  });
});

test("defaults are filled in", () => {
  expect(parseStrict(Schema, {}, { source: "test" }).trainer).toEqual({ learningRate: 1, algorithm: "gspo" });
});

test("the nearest name is near", () => {
  expect(nearestName("groupsize", ["groupSize", "slots"])).toBe("groupSize");
  expect(nearestName("completely-else", ["groupSize", "slots"])).toBeUndefined();
});

describe("--set", () => {
  test("reads TOML values and falls back to text", () => {
    const sets = ["a.b=3", "a.c=[1, 2]", "d=true", 'e="quoted"', "f=nats://host:1", "a.x.y=z"];
    expect(mergeSets({ a: { b: 1, k: "kept" } }, sets)).toEqual({
      a: { b: 3, c: [1, 2], k: "kept", x: { y: "z" } },
      d: true,
      e: "quoted",
      f: "nats://host:1",
    });
  });

  test("does not change what it is given", () => {
    const given = { a: { b: 1 } };
    mergeSets(given, ["a.b=2"]);
    expect(given).toEqual({ a: { b: 1 } });
  });

  test.each(["novalue", "=1", "a..b=1", "a.b.c=1"])("refuses %s", (set) => {
    expect(() => mergeSets({ a: { b: 1 } }, [set])).toThrowError(
      expect.objectContaining({ code: "MORTISE_OPERATOR_USAGE", message: expect.stringContaining(set) }),
    );
  });
});

test("tables merge, arrays replace", () => {
  expect(mergeTables({ a: { x: 1, l: [1] } }, { a: { y: 2, l: [2] } })).toEqual({
    a: { x: 1, y: 2, l: [2] },
  });
});

describe("a TOML file", () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "mortise-config-"));
  });
  afterAll(() => rm(directory, { recursive: true }));

  test("with a mistake is refused at its line", async () => {
    const path = join(directory, "bad.toml");
    await writeFile(path, "[a]\nb = 1\nc = = 2\n");
    await expect(loadToml(path)).rejects.toMatchObject({
      code: "MORTISE_CONFIG_SYNTAX",
      message: expect.stringContaining(`${path}:3:`),
    });
  });

  test("that is not there is refused with its path", async () => {
    const path = join(directory, "absent.toml");
    await expect(loadToml(path)).rejects.toMatchObject({
      code: "MORTISE_CONFIG_UNREADABLE",
      message: expect.stringContaining(`${path}: ENOENT`),
    });
  });
});
