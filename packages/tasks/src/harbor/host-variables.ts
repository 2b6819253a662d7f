/**
 * Owns `${NAME}` and `${NAME:-default}` in a task's environment: values a task takes from the host that runs it.
 * A task is not trusted with the host's environment: it gets the names its site allows, and nothing else.
 * Does not log; whoever logs leaves out `secrets`.
 */
import { MortiseError } from "@mortise/contracts";

export type Variables = Readonly<Record<string, string>>;

export interface ResolvedVariables {
  readonly values: Variables;
  /** Values that came from the host or are named like a secret: to be kept out of logs, reports and errors. */
  readonly secrets: readonly string[];
}

export interface HostVariables {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Names a task may ask for. */
  readonly allowed: readonly string[];
}

const TEMPLATE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;
/** Shorter values hide nothing, and starring them would make every text unreadable. */
const MIN_SECRET_LENGTH = 4;
/** As Harbor decides what it must not write down. */
const SECRET_NAME = /KEY|SECRET|TOKEN|PASSWORD|CREDENTIAL|AUTH/i;

/**
 * Replaces the templates in `variables`; `field` names them in errors, for example `environment.env`.
 * Throws MORTISE_TASK_INVALID for a name that is not allowed or not set and has no default.
 */
export function resolveVariables(
  variables: Variables,
  host: HostVariables,
  field: string,
): ResolvedVariables {
  const secrets = new Set<string>();
  const resolve = (key: string, text: string) =>
    text.replace(TEMPLATE, (_, name: string, fallback: string | undefined) => {
      const value = host.allowed.includes(name) ? host.environment[name] : undefined;
      // As in a shell, `:-` also stands in for an empty value.
      const isUsable = value !== undefined && (value !== "" || fallback === undefined);
      if (isUsable) secrets.add(value);
      if (isUsable) return value;
      if (fallback !== undefined) return fallback;
      throw missing(`${field}.${key}`, name, host.allowed.includes(name));
    });
  const values = Object.entries(variables).map(([key, text]): [string, string] => [key, resolve(key, text)]);
  for (const [key, value] of values) if (SECRET_NAME.test(key)) secrets.add(value);
  return { values: Object.fromEntries(values), secrets: [...secrets] };
}

/** A text with every secret in it starred. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  // The longest first, or a secret that contains another would leave its rest readable.
  const sorted = secrets
    .filter(({ length }) => length >= MIN_SECRET_LENGTH)
    .toSorted((a, b) => b.length - a.length);
  return sorted.reduce((shown, secret) => shown.replaceAll(secret, "***"), text);
}

function missing(field: string, name: string, isAllowed: boolean): MortiseError {
  return new MortiseError({
    code: "MORTISE_TASK_INVALID",
    message: `${field} asks for the variable ${name}, which ${isAllowed ? "is not set" : "tasks may not read"}.`,
    fix: isAllowed
      ? `Set ${name} where the sandbox-manager runs, or give a default: \${${name}:-value}.`
      : `Add ${JSON.stringify(name)} to sandbox.taskVariables of the site file, or give a default.`,
    detail: { field },
  });
}
