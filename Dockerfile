# A worker of a fleet, or both programs whole (`--entrypoint warpsmith-pir` for the second): docs/fleet-hosts.md. The image tests its devices before it works.
FROM rust:1-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package warpsmith-cli --package warpsmith-pir \
    && strip target/release/warpsmith target/release/warpsmith-pir

FROM debian:bookworm-slim
# The OpenCL loader; NVIDIA's driver comes with the host's container toolkit.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ocl-icd-libopencl1 \
    && rm --recursive /var/lib/apt/lists/* \
    && mkdir --parents /etc/OpenCL/vendors && echo libnvidia-opencl.so.1 > /etc/OpenCL/vendors/nvidia.icd \
    && useradd --create-home --uid 10001 warpsmith
COPY --from=build /src/target/release/warpsmith /src/target/release/warpsmith-pir /usr/local/bin/
COPY tools/container.sh /usr/local/bin/container.sh
# What NVIDIA's toolkit lets in.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER warpsmith
WORKDIR /home/warpsmith
ENTRYPOINT ["/usr/local/bin/container.sh"]
CMD ["devices"]
