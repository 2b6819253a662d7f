/**
 * Owns the routing table of the model API: what a method and path ask for, below any base path. Serves nothing.
 * A wire protocol is one line of MODEL_ROUTES.
 */
import { chatDialect, type Dialect, messagesDialect, responsesDialect } from "@mortise/dialects";

/** Where each protocol's calls go; harnesses put any base path before it, with or without `/v1`. */
const MODEL_ROUTES: readonly (readonly [path: string, dialect: Dialect])[] = [
  ["/chat/completions", chatDialect],
  ["/responses", responsesDialect],
  ["/messages", messagesDialect],
];

/**
 * What harnesses report about themselves, should one send it to the base URL: taken and dropped. Paths are matched
 * before anybody is authenticated, so nothing here may cost more than the path is long.
 */
const TELEMETRY =
  /\/(event_logging(\/[\w/]{1,64})?|telemetry|claude_code\/metrics|rgstr|v1\/(traces|metrics|logs))$/;

/** The session token as a part of the base URL, for harnesses that send no key of ours. */
const TOKEN_SEGMENT = /\/s\/([A-Za-z0-9_-]+)(?=\/|$)/;

export type Route =
  | { readonly kind: "model-call" }
  | { readonly kind: "count-tokens" }
  | { readonly kind: "models" }
  | { readonly kind: "model"; readonly name: string }
  | { readonly kind: "alive" }
  | { readonly kind: "telemetry" }
  | { readonly kind: "upgrade" }
  | { readonly kind: "unknown" };

export interface Target {
  readonly route: Route;
  /** Whose shapes the answer has, also when nothing is there. */
  readonly dialect: Dialect;
  /** Session token found in the path. */
  readonly token: string | undefined;
}

export interface RequestLine {
  readonly method: string;
  /** As in the request: path and query. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

export function target({ method, url, headers }: RequestLine): Target {
  const path = withoutTrailingSlashes(url.split("?", 1)[0] ?? "");
  const token = TOKEN_SEGMENT.exec(path)?.[1];
  const dialect = dialectOf(path, headers);
  return { route: routeOf(method, path, headers.upgrade), dialect, token };
}

function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === "/") end--;
  return path.slice(0, end);
}

function routeOf(method: string, path: string, upgrade: string | undefined): Route {
  // Some clients try a WebSocket first; others offer HTTP/2 with an ordinary request, which is served as it is.
  if (upgrade?.toLowerCase() === "websocket") return { kind: "upgrade" };
  // A base path is anything, so a probe of it cannot be told from a probe of anything else.
  if (method === "HEAD" || path.endsWith("/api/hello")) return { kind: "alive" };
  if (method === "GET") {
    if (path.endsWith("/models")) return { kind: "models" };
    const name = /\/models\/(.+)$/.exec(path)?.[1];
    return name === undefined ? { kind: "unknown" } : { kind: "model", name };
  }
  if (method !== "POST") return { kind: "unknown" };
  if (MODEL_ROUTES.some(([end]) => path.endsWith(end))) return { kind: "model-call" };
  if (path.endsWith("/messages/count_tokens")) return { kind: "count-tokens" };
  return TELEMETRY.test(path) ? { kind: "telemetry" } : { kind: "unknown" };
}

function dialectOf(path: string, headers: RequestLine["headers"]): Dialect {
  const named = MODEL_ROUTES.find(([part]) => path.includes(part))?.[1];
  if (named) return named;
  return headers["anthropic-version"] === undefined ? chatDialect : messagesDialect;
}
