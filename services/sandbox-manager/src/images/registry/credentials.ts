/**
 * Owns logins as `docker login` leaves them in a configuration file. Read when needed and never kept or logged.
 * Credential helpers are programs of others and are not run: a registry that has only one is asked anonymously.
 */
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import { z } from "zod";

export type Credential =
  | { readonly kind: "basic"; readonly user: string; readonly password: string }
  /** A refresh token, to be exchanged at the token server. */
  | { readonly kind: "identity"; readonly token: string };

const DockerConfig = z.object({
  auths: z
    .record(z.string(), z.object({ auth: z.string().optional(), identitytoken: z.string().optional() }))
    .default({}),
});

/** Where Docker's own tools look. */
export function defaultDockerConfig(environment: NodeJS.ProcessEnv = process.env): string {
  return path.join(environment.DOCKER_CONFIG ?? path.join(homedir(), ".docker"), "config.json");
}

/** The login for a registry, or undefined. Throws MORTISE_CONFIG_UNREADABLE for a file that is there and is wrong. */
export function credentialFor(host: string, file: string): Credential | undefined {
  const text = readIfPresent(file);
  if (text === undefined) return undefined;
  const { data } = DockerConfig.safeParse(parsed(text, file));
  if (data === undefined) throw unreadable(file, "auths is not a table of logins");
  const entry = Object.entries(data.auths).find(([key]) => hostOf(key) === host)?.[1];
  if (entry?.identitytoken !== undefined && entry.identitytoken !== "")
    return { kind: "identity", token: entry.identitytoken };
  if (entry?.auth === undefined || entry.auth === "") return undefined;
  const login = Buffer.from(entry.auth, "base64").toString();
  const colon = login.indexOf(":");
  if (colon < 1) throw unreadable(file, `auths.${host}.auth is not base64 of user:password`);
  return { kind: "basic", user: login.slice(0, colon), password: login.slice(colon + 1) };
}

/** Keys are hosts, or URLs as old versions wrote them. */
function hostOf(key: string): string {
  const host = key.replace(/^https?:\/\//, "").split("/")[0]!;
  return host === "index.docker.io" || host === "registry-1.docker.io" ? "docker.io" : host;
}

function readIfPresent(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return undefined;
    throw unreadable(file, (error as Error).message);
  }
}

function parsed(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message quotes the text, and the text holds passwords.
    throw unreadable(file, "it is not JSON");
  }
}

function unreadable(file: string, why: string): MortiseError {
  return new MortiseError({ code: "MORTISE_CONFIG_UNREADABLE", message: `${file}: ${why}.` });
}
