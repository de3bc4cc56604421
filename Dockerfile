# A worker of a fleet, or the whole program: docs/fleet-hosts.md. The image tests its devices before it works.
FROM rust:1-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package warpsmith-cli && strip target/release/warpsmith

FROM debian:bookworm-slim
# The OpenCL loader; NVIDIA's driver comes with the host's container toolkit.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ocl-icd-libopencl1 \
    && rm --recursive /var/lib/apt/lists/* \
    && mkdir --parents /etc/OpenCL/vendors && echo libnvidia-opencl.so.1 > /etc/OpenCL/vendors/nvidia.icd \
    && useradd --create-home --uid 10001 warpsmith
COPY --from=build /src/target/release/warpsmith /usr/local/bin/warpsmith
COPY tools/container.sh /usr/local/bin/container.sh
# What NVIDIA's toolkit lets in.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER warpsmith
WORKDIR /home/warpsmith
ENTRYPOINT ["/usr/local/bin/container.sh"]
CMD ["devices"]
