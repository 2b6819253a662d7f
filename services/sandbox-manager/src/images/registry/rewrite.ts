/**
 * Owns where a repository is really asked for: mirrors and pull-through caches by prefix, then the registry itself.
 * Does not ask.
 */
import { MortiseError } from "@mortise/contracts";
import type { ImageReference } from "../reference.js";

/** One line of configuration: repositories that begin with `prefix` are looked for at `endpoint` first. */
export interface RewriteRule {
  /** `docker.io`, `docker.io/library`, `registry.example/team`: whole path segments. */
  readonly prefix: string;
  /** What replaces the prefix: a host with an optional port and path. */
  readonly endpoint: string;
  /** Speak HTTP without TLS. Loopback addresses need no such permission. */
  readonly plainHttp?: boolean;
  /** Never ask the registry itself, whatever the mirror answers. */
  readonly only?: boolean;
}

export interface Endpoint {
  /** `https://host/v2/repository/` */
  readonly base: URL;
  /** Key of the credentials. */
  readonly host: string;
  readonly repository: string;
}

/** Docker's registry has another name than its images. */
const API_HOSTS: Readonly<Record<string, string>> = { "docker.io": "registry-1.docker.io" };

/** Endpoints in the order they are tried; never empty. Throws MORTISE_CONFIG_INVALID for a rule with an error. */
export function endpointsFor(
  { registry, repository }: ImageReference,
  rules: readonly RewriteRule[],
): [Endpoint, ...Endpoint[]] {
  const full = `${registry}/${repository}`;
  const matching = rules.filter(({ prefix }) => full === prefix || full.startsWith(`${prefix}/`));
  const mirrors = matching.map((rule) => endpointOf(rule.endpoint + full.slice(rule.prefix.length), rule));
  const itself = endpointOf(full, {});
  const [first, ...rest] = matching.some(({ only }) => only === true) ? mirrors : [...mirrors, itself];
  return [first ?? itself, ...rest];
}

function endpointOf(location: string, rule: Partial<RewriteRule>): Endpoint {
  const [host = "", ...segments] = location.split("/");
  const repository = segments.join("/");
  const address = API_HOSTS[host] ?? host;
  const protocol = rule.plainHttp === true || isLoopback(address) ? "http:" : "https:";
  if (!URL.canParse(`${protocol}//${address}/`) || repository === "" || /[@?#\s]/.test(location))
    throw new MortiseError({
      code: "MORTISE_CONFIG_INVALID",
      message: `rewrite.endpoint ${JSON.stringify(rule.endpoint)} gives no repository for ${JSON.stringify(location)}.`,
      fix: "Give host[:port][/path] without a scheme or user.",
    });
  return { base: new URL(`${protocol}//${address}/v2/${repository}/`), host, repository };
}

export function isLoopback(host: string): boolean {
  return /^(localhost|127\.[0-9.]+|\[::1\])(:[0-9]+)?$/.test(host);
}
