# One image for every service; docker-compose.yml says which one a container runs.
# Where no image registry can be reached, deploy/base-images.sh makes the base image.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /opt/mortise
COPY . .
# Built with everything, then reduced to what runs.
RUN node scripts/bootstrap.mjs prepare \
 && CI=true npx --yes pnpm@12.21.0 install --prod --frozen-lockfile --ignore-scripts

FROM ${NODE_IMAGE}
COPY --from=build /opt/mortise /opt/mortise
# Mount points exist with the owner of the processes: an empty volume inherits it.
RUN mkdir -p /run/mortise /var/lib/mortise/run /var/lib/mortise/state /data \
 && chown -R 10001:10001 /run/mortise /var/lib/mortise /data
USER 10001:10001
WORKDIR /opt/mortise
ENTRYPOINT ["node", "--enable-source-maps"]
