# The helper of the kubernetes backend: one static program, in an image with nothing else.
# Built from the root of the project: docker build -f deploy/kubernetes/pod-helper.Dockerfile -t <registry>/mortise-pod-helper .
ARG GO_IMAGE=golang:1.26-bookworm

FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY services/sandbox-manager/pod-helper .
RUN CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o /pod-helper .

FROM scratch
COPY --from=build /pod-helper /pod-helper
ENTRYPOINT ["/pod-helper"]
