/**
 * Owns how a container becomes a service: the name it is reached by and its instance are the container's own
 * host name, so that replicas need no configuration. Does not own what the service does.
 *
 * usage: node deploy/service.mjs <service> [flags of the service…]
 */
import { hostname } from "node:os";

const [service, ...flags] = process.argv.slice(2);
const name = hostname();
const main = new URL(`../services/${service}/dist/main.js`, import.meta.url).pathname;

process.argv = [
  process.argv[0],
  main,
  "--site=/var/lib/mortise/run/site.toml",
  `--set=rpc.advertise="${name}"`,
  `--set=proxy.advertise="${name}"`,
  `--instance=${name}`,
  ...flags,
];
await import(main);
