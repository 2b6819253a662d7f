/** Owns the connection settings both ends of a call share. */
import { type ChannelOptions, logVerbosity, setLogVerbosity } from "@grpc/grpc-js";

// Every failure reaches its caller as an error; the library's own lines on stderr would say it twice, unstructured.
setLogVerbosity(logVerbosity.NONE);

/** Above grpc-js's 4 MiB: a reply may carry the captured output of a sandbox. */
const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;

export const CHANNEL_OPTIONS: ChannelOptions = {
  "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
  "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
  "grpc.keepalive_time_ms": 30_000,
  "grpc.keepalive_timeout_ms": 10_000,
  "grpc.keepalive_permit_without_calls": 1,
  // A restarted service is reachable again within about a second, not after the default two minutes.
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 2_000,
  "grpc.enable_retries": 0,
};
