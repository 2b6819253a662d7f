# The image of the sandbox-manager in deploy/compose.runc.yml: the services' image with runc from Debian.
ARG SERVICE_IMAGE=mortise/service:local
FROM ${SERVICE_IMAGE}
USER 0:0
RUN apt-get update \
 && apt-get install --yes --no-install-recommends runc \
 && rm -rf /var/lib/apt/lists/*
