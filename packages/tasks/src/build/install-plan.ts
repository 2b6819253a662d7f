/**
 * Owns what a record's `install_config` means for a build: a Dockerfile and the scripts it runs, in memory. The same
 * record gives the same bytes. Does not fetch the repository (repository-pack.ts) and does not build.
 *
 * P1  What the plan cannot do as the record says is refused with the field's name, never left out.
 * P2  Nothing of the record but its installation goes into a plan: no patch, no test, no statement.
 */
import { MortiseError } from "@mortise/contracts";
import type { TaskFileContent } from "../harbor/digest.js";
import { quoted } from "../import/evaluation/quoted.js";
import { RowFields } from "../import/fields.js";
import { isObject } from "../import/rows/row.js";

export interface InstallPlan {
  /** `owner/name`. */
  readonly repository: string;
  /** What the work tree is: 40 hex digits. */
  readonly commit: string;
  readonly base: string;
  /** Dockerfile and scripts; the pack of the repository comes beside them under PACK. */
  readonly files: readonly TaskFileContent[];
}

export interface BaseImages {
  /** For records whose Python version or `base_image_name` has none of its own. */
  readonly any?: string;
  readonly byName: Readonly<Record<string, string>>;
}

/** Name of the repository's objects in the context. */
export const PACK = "repository.pack";
/** Where the scripts are while the image is built. */
const PLACE = "/opt/mortise-install";
const COMMIT = /^[0-9a-f]{40}$/;
const REPOSITORY = /^[\w.-]+\/[\w.-]+$/;
const VARIABLE = /^[A-Za-z_]\w*$/;

interface Script {
  readonly name: string;
  readonly lines: readonly string[];
}

/**
 * @param workdir where the work tree goes, absolute
 * @param place names the record in errors. Throws MORTISE_TASK_RECORD with the field and the fix.
 */
export function installPlanOf(
  record: Readonly<Record<string, unknown>>,
  bases: BaseImages,
  { workdir, place }: { workdir: string; place: string },
): InstallPlan {
  const fields = new RowFields({ place, fields: { ...record } });
  if (fields.find("install_config") === undefined) {
    const fix = "Name an image in environment.docker_image, or add environment/Dockerfile.";
    fields.refuse("install_config", "is absent", fix);
    refuseIfAny(fields);
  }
  const config = fields.object("install_config");
  const repository = fields.required("repo");
  const commit = fields.required("base_commit");
  if (!REPOSITORY.test(repository)) fields.refuse("repo", "is not owner/name", "Write it as owner/name.");
  if (!COMMIT.test(commit))
    fields.refuse("base_commit", "is no commit", "Write all 40 digits of the commit.");
  const base = baseOf(fields, config, bases);
  const scripts = scriptsOf(fields, config);
  const variables = variablesOf(fields, config);
  refuseIfAny(fields);
  const script = ({ name, lines }: Script): TaskFileContent => ({
    path: name,
    kind: "-",
    content: `set -e\ncd ${quoted(workdir)}\n${lines.join("\n")}\n`,
  });
  return {
    repository,
    commit,
    base: base!,
    files: [
      {
        path: "Dockerfile",
        kind: "-",
        content: dockerfile({ base: base!, workdir, variables, scripts, commit }),
      },
      ...scripts.map(script),
    ],
  };
}

function baseOf(fields: RowFields, config: Record<string, unknown>, bases: BaseImages): string | undefined {
  const { base_image_name: name, python } = config;
  const wanted = [name, python]
    .filter((one) => typeof one === "string" || typeof one === "number")
    .map(String);
  for (const one of wanted) if (Object.hasOwn(bases.byName, one)) return bases.byName[one]!;
  if (bases.any !== undefined) return bases.any;
  if (wanted.length > 0 && name === undefined && /^\d+(\.\d+)+$/.test(wanted[0]!))
    return `python:${wanted[0]}-bookworm`;
  const field = wanted.length > 0 ? "install_config.base_image_name" : "install_config.python";
  fields.refuse(
    field,
    wanted.length > 0 ? `is ${JSON.stringify(wanted[0])}, which is no image a registry has` : "is absent",
    `Pass --base ${wanted.length > 0 ? `${wanted[0]}=` : ""}<image>.`,
  );
  return undefined;
}

function variablesOf(fields: RowFields, { env_vars: given }: Record<string, unknown>): [string, string][] {
  if (given === undefined || given === null) return [];
  if (!isObject(given)) {
    fields.refuse("install_config.env_vars", "is no object", "Write it as an object of names and values.");
    return [];
  }
  const set = Object.entries(given).filter(([, value]) => value !== null);
  for (const [name, value] of set)
    if (!VARIABLE.test(name) || /[\r\n]/.test(String(value)))
      fields.refuse(
        "install_config.env_vars",
        `has ${JSON.stringify(name)}, which is no variable of one line`,
        "Correct it.",
      );
  return set.map(([name, value]) => [name, String(value)]);
}

/** In the order of SWE-bench's own: system packages, dependencies, the project; then whether the tests can be run. */
function scriptsOf(fields: RowFields, config: Record<string, unknown>): Script[] {
  const commands = (key: string) => fields.commands(`install_config.${key}`, config[key]);
  const dependencies = dependenciesOf(fields, config, commands("pip_packages"));
  const test = commands("test_cmd");
  if (test.length === 0) fields.refuse("install_config.test_cmd", "is absent", "Say how the tests are run.");
  const all: Script[] = [
    { name: "1-pre-install.sh", lines: commands("pre_install") },
    { name: "2-dependencies.sh", lines: dependencies },
    { name: "3-install.sh", lines: commands("install") },
    { name: "4-test-command.sh", lines: runnable(test.at(-1) ?? "") },
  ];
  return all.filter((script) => script.lines.length > 0);
}

function dependenciesOf(
  fields: RowFields,
  config: Record<string, unknown>,
  pipPackages: readonly string[],
): string[] {
  const { packages } = config;
  const frozen = installable(fields.text("requirements") ?? "");
  const paths = fields.commands("install_config.reqs_path", config.reqs_path);
  const isKnown =
    packages === undefined || packages === null || packages === "" || packages === "requirements.txt";
  if (!isKnown && frozen.length === 0)
    fields.refuse(
      "install_config.packages",
      `is ${JSON.stringify(packages)}, packages of conda, and there is no requirements to take in their place`,
      "Add requirements (what `pip freeze` prints), or use the data set's own image.",
    );
  const pip = "python -m pip install --no-cache-dir --disable-pip-version-check";
  const lines: string[] = [];
  if (frozen.length > 0) lines.push(`${pip} ${frozen.map(quoted).join(" ")}`);
  else for (const path of paths) lines.push(`${pip} -r ${quoted(path)}`);
  if (pipPackages.length > 0)
    lines.push(
      `${pip} ${pipPackages
        .flatMap((one) => one.split(/\s+(?=[A-Za-z0-9])/))
        .map(quoted)
        .join(" ")}`,
    );
  return lines;
}

/**
 * Lines of `pip freeze` that can be installed elsewhere: the project itself and other editable installs are left to
 * `install`, and what was built from a file of that machine is taken by name.
 */
function installable(frozen: string): string[] {
  return frozen.split(/\r?\n/).flatMap((line) => {
    const text = line.replace(/(^|\s)#.*$/, "").trim();
    if (text === "" || text.startsWith("-")) return [];
    const ofFile = /^([A-Za-z0-9][\w.-]*)\s*@\s*file:/.exec(text)?.[1];
    return [ofFile ?? text];
  });
}

/** Whether the first word of the test command is a program, which a build finds out sooner than every trial. */
function runnable(command: string): string[] {
  const word = command.split(/\s+/).find((one) => one !== "" && !/^[A-Za-z_]\w*=/.test(one));
  if (word === undefined || !/^[\w./+-]+$/.test(word)) return [];
  return [
    `command -v ${word} > /dev/null || { echo "install_config.test_cmd: ${word} is not in the image; add what brings it to install_config.pip_packages or pre_install" >&2; exit 1; }`,
  ];
}

function dockerfile(plan: {
  base: string;
  workdir: string;
  variables: readonly (readonly [string, string])[];
  scripts: readonly Script[];
  commit: string;
}): string {
  const { base, workdir, variables, scripts, commit } = plan;
  const git = [
    `git init -q . && git unpack-objects -q < ${PLACE}/${PACK}`,
    `echo ${commit} > .git/shallow && git checkout -q --detach ${commit}`,
    `rm -r ${PLACE}`,
  ].join(" && ");
  return [
    `FROM ${base}`,
    ...variables.map(([name, value]) => `ENV ${name}=${JSON.stringify(value).replaceAll("$", "\\$")}`),
    `WORKDIR ${workdir}`,
    `COPY ${PACK} ${PLACE}/`,
    `RUN ${git}`,
    // A step each, so that a failure names what failed and a build that was broken off goes on after the last.
    ...scripts.flatMap(({ name }) => [
      `COPY ${name} ${PLACE}/`,
      `RUN $(command -v bash || echo sh) ${PLACE}/${name} && rm -r ${PLACE}`,
    ]),
    "",
  ].join("\n");
}

function refuseIfAny({ problems }: RowFields): void {
  if (problems.length === 0) return;
  throw new MortiseError({
    code: "MORTISE_TASK_RECORD",
    message: problems.map(({ place, field, what }) => `${place}: ${field} ${what}`).join("; "),
    fix: [...new Set(problems.map(({ fix }) => fix))].join(" "),
    detail: { field: problems[0]!.field },
  });
}
