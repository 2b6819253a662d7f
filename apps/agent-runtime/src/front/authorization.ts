/** Owns who may call: a bearer token, compared in constant time, or whoever the platform in front let through. */
import { readFileSync } from "node:fs";
import { type AgentRuntimeConfig, MortiseError } from "@mortise/contracts";
import { equalSecrets } from "@mortise/kernel";
import type { RequestHandler } from "express";

/** What a header can carry: with anything else nobody could ever call. */
const TOKEN = /^[\x21-\x7e]+$/;

/** @throws MortiseError MORTISE_CONFIG_UNREADABLE, MORTISE_CONFIG_INVALID for a file without a token */
export function authorization({ auth }: AgentRuntimeConfig): RequestHandler {
  if (auth.platform === (auth.tokenFile !== undefined))
    throw new MortiseError({
      code: "MORTISE_CONFIG_INVALID",
      message: "auth: exactly one of tokenFile and platform = true says who may call.",
      detail: { field: "auth.tokenFile" },
    });
  if (auth.tokenFile === undefined) return (_request, _response, next) => next();
  const token = tokenIn(auth.tokenFile);
  return (request, response, next) => {
    const [, given] = /^Bearer (\S+)$/.exec(request.headers.authorization ?? "") ?? [];
    if (given !== undefined && equalSecrets(given, token)) {
      next();
      return;
    }
    response
      .status(401)
      .set("www-authenticate", "Bearer")
      .json({
        error: { code: "MORTISE_HARNESS_REMOTE_DENIED", message: "The bearer token is missing or wrong." },
      });
  };
}

function tokenIn(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, "utf8").trim();
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_CONFIG_UNREADABLE",
      message: `auth.tokenFile: ${(cause as Error).message}`,
      cause,
    });
  }
  if (TOKEN.test(text)) return text;
  throw new MortiseError({
    code: "MORTISE_CONFIG_INVALID",
    message: `auth.tokenFile: ${file} ${text === "" ? "is empty" : "holds no token"}.`,
    fix: "Write one line of printable ASCII without spaces into it.",
    detail: { field: "auth.tokenFile" },
  });
}
