#!/usr/bin/env bash
# Builds the base images of docker-compose.yml where no image registry can be reached: Debian packages by
# debootstrap, Node 24 and npm from the package registry, the nats-server that `mortise provision` finds.
# Prints the variables to set. Needs root, debootstrap and a Docker engine; nothing is pulled.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=${DEBIAN_SUITE:-bookworm}
for tool in debootstrap docker node npm; do
  command -v "$tool" >/dev/null || { echo "base-images: $tool is not installed" >&2; exit 2; }
done
[ "$(id -u)" = 0 ] || { echo "base-images: must run as root (debootstrap)" >&2; exit 2; }

nats=${MORTISE_NATS_SERVER:-$(node scripts/mortise.mjs provision nats-server --json | tail -n 1 |
  node -e 'process.stdout.write(JSON.parse(require("fs").readFileSync(0, "utf8")).path)')}

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
debootstrap --variant=minbase --include=ca-certificates,wget "$suite" "$tree" >&2
rm -rf "$tree"/var/cache/apt/*.bin "$tree"/var/cache/apt/archives/*.deb "$tree"/var/lib/apt/lists/* \
  "$tree"/usr/share/doc "$tree"/usr/share/man "$tree"/usr/share/locale "$tree"/var/log/*
# A host behind a registry proxy trusts its certificate; what is built on the image must trust it too.
cp /etc/ssl/certs/ca-certificates.crt "$tree/etc/ssl/certs/ca-certificates.crt"
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

cp "$nats" "$tree/usr/local/bin/nats-server"
tar -C "$tree" -c . |
  docker import --change 'ENTRYPOINT ["nats-server"]' --change "ENV PATH=$path" - mortise-base/nats:local >&2
rm "$tree/usr/local/bin/nats-server"

# The dependency brings the binary of this platform; npm runs on it.
cp "$(node -p 'require("fs").realpathSync("node_modules/.bin/node")')" "$tree/usr/local/bin/node"
npm install --silent --global --prefix "$tree/usr/local" npm@11.19.1 >&2
tar -C "$tree" -c . |
  docker import --change "ENV PATH=$path NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt" \
    - mortise-base/node:local >&2

echo "export MORTISE_NATS_IMAGE=mortise-base/nats:local"
echo "export MORTISE_NODE_IMAGE=mortise-base/node:local"
