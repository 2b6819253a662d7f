/**
 * Owns how a container becomes a service: the host name it is reached by is the container's own, so that
 * replicas need no configuration. Does not own what the service does.
 */
import { hostname } from "node:os";

const [service] = process.argv.slice(2);
const name = hostname();
const PER_RUN = new Set(["scheduler", "trainer"]);

process.argv = [
  process.argv[0],
  `services/${service}/dist/main.js`,
  "--site=/var/lib/mortise/run/site.toml",
  ...(PER_RUN.has(service) ? ["--run=/var/lib/mortise/run/run.toml"] : []),
  `--set=rpc.advertise="${name}"`,
  ...(service === "proxy" ? [`--set=proxy.advertise="${name}"`] : []),
  `--instance=${name}`,
];
await import(`../services/${service}/dist/main.js`);
