# A remote agent runtime (docs/remote-harness.md), from the image of the services. Root of its own container: it makes
# the roots of task images and enters them. Needs no context: docker build -t mortise/agent-runtime:local - < this
ARG SERVICE_IMAGE=mortise/service:local
FROM ${SERVICE_IMAGE}
USER 0:0
# Git hides the history of task images; nsenter, unshare, setpriv and mount come with every Debian.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends git \
 && rm -rf /var/lib/apt/lists/*
EXPOSE 8080
ENTRYPOINT ["node", "--enable-source-maps", "apps/agent-runtime/dist/main.js"]
CMD ["--config", "/etc/mortise/agent-runtime.toml"]
