# One image for every service; docker-compose.yml says which one a container runs.
# Where no image registry can be reached, deploy/base-images.sh makes the base image.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /opt/mortise
# What is downloaded depends on these files alone: the layer is kept until one of them changes.
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml ./
RUN npm install --silent --global "$(node -p 'require("./package.json").packageManager')" && pnpm fetch
COPY . .
# Built with everything, then installed anew with what runs. Maps and types of other people's code are half of it.
RUN node scripts/bootstrap.mjs prepare \
 && rm -rf node_modules */*/node_modules bench/node_modules \
 && pnpm install --prod --frozen-lockfile --offline --ignore-scripts \
 && find node_modules \( -name '*.map' -o -name '*.d.ts' \) -type f -delete

FROM ${NODE_IMAGE}
# Mount points exist with the owner of the processes: a fresh volume inherits it.
RUN mkdir -p /run/mortise /data /var/lib/mortise/run /var/lib/mortise/state \
 && for user in nats admin observer proxy sandbox-manager verifier scheduler trainer archiver; \
    do mkdir -p "/var/lib/mortise/identities/$user"; done \
 && chown -R 10001:10001 /run/mortise /data /var/lib/mortise \
 && chmod 0700 /var/lib/mortise/identities/*
COPY --from=build /opt/mortise /opt/mortise
USER 10001:10001
WORKDIR /opt/mortise
ENV NODE_ENV=production
ENTRYPOINT ["node", "--enable-source-maps"]
