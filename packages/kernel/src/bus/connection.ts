/**
 * Owns opening the NATS connection: identity, version check, reconnection for ever.
 * Does not own what travels on it.
 */
import { inboxPrefix, MortiseError } from "@mortise/contracts";
import { errors, type NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { withoutCredentials } from "../log.js";
import { retry } from "../retry.js";
import { busError, isTransient } from "./failure.js";
import type { BusOptions } from "./types.js";

/** JetStream API level of nats-server 2.12. */
const MIN_API_LEVEL = 2;
const CONNECT_TIMEOUT_MS = 10_000;
/** A dead peer is noticed after two missed pings; the default of two minutes is longer than any lease. */
const PING_INTERVAL_MS = 20_000;
const RECONNECT_WAIT_MS = 250;

/**
 * Connects, trying a server that does not answer yet until `connectTimeoutMs`.
 * Throws MORTISE_TRANSPORT_UNAVAILABLE, MORTISE_TRANSPORT_DENIED, MORTISE_CONFIG_INVALID or
 * MORTISE_OPERATOR_NATS_TOO_OLD.
 */
export async function openConnection(options: BusOptions): Promise<NatsConnection> {
  const where = withoutCredentials(options.url);
  const giveUp = AbortSignal.timeout(options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS);
  let last: unknown;
  const connection = await retry(
    async () => {
      try {
        return await dial(options);
      } catch (error) {
        last = error;
        throw error;
      }
    },
    { attempts: Infinity, baseMs: 100, maxMs: 1_000, signal: giveUp, isRetryable: isTransient },
  ).catch(() => {
    throw busError(last, where);
  });
  const level = connection.info?.api_lvl ?? 0;
  if (level >= (options.minApiLevel ?? MIN_API_LEVEL)) return connection;
  const version = connection.info?.version ?? "unknown";
  await connection.close();
  throw new MortiseError({
    code: "MORTISE_OPERATOR_NATS_TOO_OLD",
    message: `${where} runs nats-server ${version} (API level ${level}).`,
    detail: { version, level },
  });
}

async function dial(options: BusOptions): Promise<NatsConnection> {
  try {
    return await connect({
      servers: options.url,
      user: options.user,
      pass: options.password,
      name: options.name,
      // A reply to one service must not be readable by another: each user may subscribe to its own prefix only.
      inboxPrefix: inboxPrefix(options.user),
      maxReconnectAttempts: -1,
      reconnectTimeWait: RECONNECT_WAIT_MS,
      reconnectJitter: RECONNECT_WAIT_MS,
      pingInterval: PING_INTERVAL_MS,
      // Keeping a stack for every request costs more than the request.
      noAsyncTraces: true,
    });
  } catch (error) {
    if (error instanceof TypeError && "code" in error && error.code === "ERR_INVALID_URL") {
      throw new MortiseError({
        code: "MORTISE_CONFIG_INVALID",
        message: `nats.url = ${JSON.stringify(withoutCredentials(options.url))} is not an address.`,
        fix: "Give it as nats://host:port.",
        detail: { field: "nats.url" },
        cause: error,
      });
    }
    // The client reports a refused dial as a ConnectionError or as the socket's own error.
    if (error instanceof Error && "code" in error && error.code === "ECONNREFUSED") {
      throw new errors.ConnectionError(error.message, { cause: error });
    }
    throw error;
  }
}
