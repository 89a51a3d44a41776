# An image with spillwayd and spillway, on Debian 12.
#
#   docker build -t spillway .
#   docker run --rm -p 7070:7070 -p 9464:9464 spillway
#   docker run --rm -v "$PWD:/data" -u "$(id -u)" --entrypoint spillway spillway \
#       rewrite /data/graph.pb -o /data/swapped.pb
#
# tests/deploy/image_test.py builds it with buildah and runs it.

# Another base must be Debian 12, too: what is linked comes from its packages.
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BASE} AS build
WORKDIR /src
# First, so that a change of the source does not install again.
COPY deploy/install_deps.sh deploy/
RUN deploy/install_deps.sh build && rm -rf /var/lib/apt/lists/*
COPY . .
RUN cmake --preset release -B /build -DSPILLWAY_TESTS=OFF \
 && cmake --build /build --target spillway spillwayd \
 && install -D -s -t /install/usr/bin /build/bin/spillway /build/bin/spillwayd

FROM ${BASE}
LABEL org.opencontainers.image.title="Spillway" \
      org.opencontainers.image.description="Large Model Support for TensorFlow graphs, as a service" \
      org.opencontainers.image.licenses="Apache-2.0"
# The libraries of the -dev packages that deploy/install_deps.sh names, and HAProxy, which stands in
# front where not everybody is trusted (deploy/proxy, deploy/kubernetes).
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      haproxy libabsl20220623 libgrpc++1.51 libprometheus-cpp-core1.0 libprometheus-cpp-pull1.0 \
      libprotobuf32 libre2-9 libspdlog1.10 libssl3 >/dev/null \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /install/ /
# A number, because Kubernetes' runAsNonRoot cannot look a name up.
USER 65532:65532
EXPOSE 7070 9464
# The process is PID 1: it takes SIGTERM itself, and drains.
STOPSIGNAL SIGTERM
ENTRYPOINT ["spillwayd"]
# Nothing but the network round the container decides who connects: give --tls-cert for more.
CMD ["--listen", "0.0.0.0:7070", "--insecure", "--metrics-listen", "0.0.0.0:9464"]
