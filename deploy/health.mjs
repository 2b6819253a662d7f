/** Owns the health check of a service's container: whether its status server answers. Exit code 0 or 1. */
import { get } from "node:http";

const TIMEOUT_MS = 5_000;
const request = get({ host: "127.0.0.1", port: 9090, path: "/healthz", timeout: TIMEOUT_MS }, (response) =>
  process.exit(response.statusCode === 200 ? 0 : 1),
);
request.on("timeout", () => request.destroy());
request.on("error", () => process.exit(1));
