/**
 * Owns the configuration of a site's nats-server: a file for the operator to change, which includes one with the users
 * that is written anew at every start, because their permissions belong to the version of Mortise.
 */
import { dirname, join, relative } from "node:path";
import { type Identities, natsUsers, writePrivate } from "../../provision/identity.js";
import type { SitePaths } from "./site-paths.js";

const USERS = "nats-users.conf";

/** Text of nats.conf. Where the server listens is the site file's to say, and given on its command line. */
export function natsConfText({ natsConfig, identity, jetstream }: SitePaths): string {
  return `# The site's nats-server. Its address is nats.url of site.toml; its users are written at every start.
max_payload: 8MB
jetstream {
  store_dir: ${JSON.stringify(jetstream)}
  # Reserved when streams are made, whatever is free on the disk: a full disk refuses publishers and loses nothing.
  max_file_store: 64GB
  max_memory_store: 64MB
  # Every write is on the disk before it is acknowledged. The server's own default may lose minutes with the power.
  sync_interval: always
}
authorization {
  include ${JSON.stringify(relative(dirname(natsConfig), join(identity, USERS)))}
}
`;
}

export async function writeNatsUsers({ identity }: SitePaths, identities: Identities): Promise<void> {
  await writePrivate(join(identity, USERS), `${natsUsers(identities)}\n`);
}
