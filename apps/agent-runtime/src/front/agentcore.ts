/**
 * Owns the contract of a managed agent runtime: `GET /ping` and `POST /invocations`. A caller that accepts an event
 * stream hears what goes on; any other waits for the result. There is no verb to cancel: that is a body of its own.
 * Does not decide what is begun (invocation/).
 */
import { InvocationRequest, MortiseError } from "@mortise/contracts";
import { fromUnknown } from "@mortise/kernel";
import type { RequestHandler, Response } from "express";
import { z } from "zod";
import type { Invocation, Invocations } from "../invocation/invocations.js";

/** A stream that is silent is taken for dead by what lies between. */
const HEARTBEAT_MS = 15_000;
const RETRY_AFTER_S = "1";

/** Healthy, or busy while something runs; the time is that of the last change between the two, seconds. */
export function ping(invocations: Invocations, now: () => number): RequestHandler {
  let last: { status: string; since: number } | undefined;
  return (_request, response) => {
    const status = invocations.nRunning > 0 ? "HealthyBusy" : "Healthy";
    if (last?.status !== status) last = { status, since: Math.floor(now() / 1000) };
    response.json({ status, time_of_last_update: last.since });
  };
}

export function invoke(invocations: Invocations): RequestHandler {
  return async (request, response) => {
    const parsed = InvocationRequest.safeParse(request.body);
    if (!parsed.success) {
      refuse(response, 400, "MORTISE_HARNESS_REMOTE_ANSWER", z.prettifyError(parsed.error));
      return;
    }
    let invocation: Invocation | undefined;
    try {
      const { data } = parsed;
      invocation = data.kind === "start" ? invocations.start(data) : invocations.find(data.id);
      if (data.kind === "cancel") invocation?.cancel();
    } catch (error) {
      const known = fromUnknown(error, "MORTISE_HARNESS_REMOTE_REFUSED");
      response.set("retry-after", RETRY_AFTER_S);
      refuse(response, 503, known.code, known.message);
      return;
    }
    if (invocation === undefined) {
      const { code, message } = unknown(parsed.data.id);
      refuse(response, 404, code, message);
    } else if (request.accepts(["json", "text/event-stream"]) === "text/event-stream")
      await stream(response, invocation);
    else response.json(await invocation.result);
  };
}

async function stream(response: Response, invocation: Invocation): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  const say = (event: string, data: unknown) =>
    response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  const unfollow = invocation.follow((status) => say("status", status));
  const heartbeat = setInterval(() => say("status", invocation.status), HEARTBEAT_MS);
  const gone = new Promise<undefined>((resolve) => response.once("close", () => resolve(undefined)));
  try {
    const result = await Promise.race([invocation.result, gone]);
    if (result !== undefined) say("result", result);
  } finally {
    clearInterval(heartbeat);
    unfollow();
    response.end();
  }
}

export function unknown(id: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_HARNESS_REMOTE_LOST",
    message: `There is no invocation ${id} here: it was never begun, or this runtime was restarted or has forgotten it.`,
  });
}

function refuse(response: Response, status: number, code: string, message: string): void {
  response.status(status).json({ error: { code, message } });
}
