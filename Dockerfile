# An image with spillwayd and spillway, on Debian 12, from the packages of deploy/debian.
#
#   docker build -t spillway .
#   docker run --rm -p 127.0.0.1:7070:7070 spillway --listen 0.0.0.0:7070 --insecure
#   docker run --rm -v "$PWD:/data" -u "$(id -u)" --entrypoint spillway spillway \
#       rewrite /data/graph.pb -o /data/swapped.pb
#   docker build --target packages --output build-debian .      # the packages alone
#
# tests/deploy/image_test.py builds it with buildah and runs it.

# Another base must be Debian 12, too: what is linked comes from its packages. By digest
# (debian:bookworm-slim@sha256:...) the same base each time: deploy/README.md says where to get it.
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BASE} AS build
WORKDIR /src
# First, so that a change of the source does not install again.
COPY deploy/install_deps.sh deploy/
RUN deploy/install_deps.sh packages && rm -rf /var/lib/apt/lists/*
COPY . .
RUN DEB_BUILD_OPTIONS=noautodbgsym deploy/debian/build.sh --out /packages

FROM scratch AS packages
COPY --from=build /packages/ /

# What they need to run, and HAProxy, which stands in front where not everybody is trusted
# (deploy/proxy, deploy/kubernetes).
FROM ${BASE} AS root
ARG SOURCE_DATE_EPOCH
COPY --from=build /packages/spillway-server_*.deb /packages/spillway-client_*.deb \
     /packages/*.buildinfo /packages/
COPY deploy/image/make_root.sh /
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      haproxy /packages/*.deb >/dev/null \
 && install -m 644 -t /usr/share/doc/spillway-server /packages/*.buildinfo \
 && /make_root.sh /image

FROM scratch
LABEL org.opencontainers.image.title="Spillway" \
      org.opencontainers.image.description="Large Model Support for TensorFlow graphs, as a service" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=root /image/ /
ENV PATH=/usr/sbin:/usr/bin:/sbin:/bin
# A number, because Kubernetes' runAsNonRoot cannot look a name up.
USER 65532:65532
EXPOSE 7070 9464
# The process is PID 1: it takes SIGTERM itself, and drains.
STOPSIGNAL SIGTERM
ENTRYPOINT ["spillwayd"]
# Without arguments it ends with exit code 2, and says that it takes certificates, or --insecure where
# nothing but a private network decides who connects.
CMD ["--listen", "0.0.0.0:7070", "--metrics-listen", "0.0.0.0:9464"]
