/**
 * Owns the parquet form of a thin index: `prompt` as a list of messages, `reward_model` and `extra_info` as groups
 * with a column for each known key, as trainers that read parquet expect. What has no column of its own, or another
 * type than its column, is JSON in a column `other` of the same group.
 */
import { parquetWriteBuffer } from "hyparquet-writer";
import { isObject } from "../import/rows/row.js";
import { type IndexRow, NUMBER_KEYS, TEXT_KEYS } from "./indexed-task.js";

type SchemaElement = NonNullable<Parameters<typeof parquetWriteBuffer>[0]["schema"]>[number];
type ColumnType = "string" | "number";
type Group = Readonly<Record<string, ColumnType>>;

const ROW: Group = { data_source: "string", ability: "string" };
const REWARD_MODEL: Group = { style: "string", ground_truth: "string" };
const EXTRA_INFO: Group = {
  ...Object.fromEntries(Object.keys(TEXT_KEYS).map((key) => [key, "string" as const])),
  ...Object.fromEntries(Object.keys(NUMBER_KEYS).map((key) => [key, "number" as const])),
};
const OTHER = "other";

export function encodeIndex(rows: readonly IndexRow[]): Uint8Array {
  const top = rows.map(({ prompt: _, reward_model: __, extra_info: ___, ...rest }) => divided(rest, ROW));
  const columnData = [
    ...[...Object.keys(ROW), OTHER].map((name) => ({ name, data: top.map((row) => row[name] ?? null) })),
    { name: "prompt", data: rows.map(({ prompt }) => prompt) },
    { name: "reward_model", data: rows.map((row) => divided(row.reward_model, REWARD_MODEL)) },
    { name: "extra_info", data: rows.map((row) => divided(row.extra_info, EXTRA_INFO)) },
  ];
  // A file of no rows is no parquet file to some readers; the caller has at least one.
  return new Uint8Array(parquetWriteBuffer({ columnData, schema: SCHEMA, rowGroupSize: rows.length }));
}

/** A row as it was before `encodeIndex`: what `other` holds is back in its place, empty columns are gone. */
export function joinedRow(row: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const whole = united(row);
  for (const name of ["reward_model", "extra_info"])
    if (isObject(whole[name])) whole[name] = united(whole[name]);
  return whole;
}

function divided(values: Readonly<Record<string, unknown>>, group: Group): Record<string, unknown> {
  const own: Record<string, unknown> = {};
  const other: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(values)) {
    if (Object.hasOwn(group, key) && typeof value === group[key]) own[key] = value;
    else other[key] = value;
  }
  return Object.keys(other).length === 0 ? own : { ...own, [OTHER]: JSON.stringify(other) };
}

function united(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { [OTHER]: other, ...own } = values;
  const present = Object.entries(own).filter(([, value]) => value !== null && value !== undefined);
  const rest = typeof other === "string" ? (JSON.parse(other) as unknown) : {};
  return { ...Object.fromEntries(present), ...(isObject(rest) ? rest : {}) };
}

const text = (name: string): SchemaElement => ({
  name,
  type: "BYTE_ARRAY",
  converted_type: "UTF8",
  repetition_type: "OPTIONAL",
});
const number = (name: string): SchemaElement => ({ name, type: "DOUBLE", repetition_type: "OPTIONAL" });
const columns = (group: Group): SchemaElement[] => [
  ...Object.entries(group).map(([name, type]) => (type === "string" ? text(name) : number(name))),
  text(OTHER),
];
const groupOf = (name: string, group: Group): SchemaElement[] => [
  { name, num_children: Object.keys(group).length + 1, repetition_type: "OPTIONAL" },
  ...columns(group),
];

const SCHEMA: SchemaElement[] = [
  { name: "root", num_children: Object.keys(ROW).length + 4 },
  ...columns(ROW),
  { name: "prompt", converted_type: "LIST", num_children: 1, repetition_type: "OPTIONAL" },
  { name: "list", num_children: 1, repetition_type: "REPEATED" },
  { name: "element", num_children: 2, repetition_type: "OPTIONAL" },
  text("role"),
  text("content"),
  ...groupOf("reward_model", REWARD_MODEL),
  ...groupOf("extra_info", EXTRA_INFO),
];
