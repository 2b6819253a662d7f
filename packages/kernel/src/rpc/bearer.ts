/**
 * Owns the bearer check on every gRPC call, health and reflection included: no anonymous access even on
 * loopback. Does not know which token is right for whom; one deployment has one.
 */
import { Metadata, ServerInterceptingCall, type ServerInterceptor, status } from "@grpc/grpc-js";
import { equalSecrets } from "../crypto.js";
import { currentTraceParent, TRACE_PARENT } from "../telemetry.js";

const AUTHORIZATION = "authorization";

/** Metadata of an outgoing call: the bearer and the active trace context. */
export function callMetadata(bearer: string): Metadata {
  const metadata = new Metadata();
  metadata.set(AUTHORIZATION, `Bearer ${bearer}`);
  const traceParent = currentTraceParent();
  if (traceParent !== undefined) metadata.set(TRACE_PARENT, traceParent);
  return metadata;
}

/** Ends a call that does not carry the bearer with UNAUTHENTICATED before any handler sees it. */
export function requireBearer(bearer: string): ServerInterceptor {
  const expected = `Bearer ${bearer}`;
  return (_method, call) =>
    new ServerInterceptingCall(call, {
      start(next) {
        next({
          onReceiveMetadata(metadata, forward) {
            const [given] = metadata.get(AUTHORIZATION);
            if (typeof given === "string" && equalSecrets(given, expected)) {
              forward(metadata);
              return;
            }
            call.sendStatus({ code: status.UNAUTHENTICATED, details: "bearer token missing or wrong" });
          },
        });
      },
    });
}
