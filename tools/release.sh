#!/usr/bin/env bash
# Builds the program as it is released: with PTX of its kernels inside, for machines that have NVIDIA's driver and no
# NVRTC. Any change of a kernel's text needs this again, since PTX is found by the text's hash.
#
#   tools/release.sh         needs cargo, python3 with pip and, the first time, the network; no GPU
#
# NVRTC 11.8 (tools/nvrtc-release.txt, by hash): its PTX runs with drivers from 520 on; older drivers need NVRTC beside the
# program, as ever.
set -euo pipefail
cd "$(dirname "$0")/.."

work=target/ptx
nvrtc=$work/nvrtc-$(sha256sum tools/nvrtc-release.txt | cut -c1-16)
mkdir -p "$work"
if [ ! -e "$nvrtc" ]; then
    # Whole or not at all: an interrupted one is not taken for installed.
    rm -rf "$nvrtc.part"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --require-hashes \
        --target "$nvrtc.part" -r tools/nvrtc-release.txt
    mv "$nvrtc.part" "$nvrtc"
fi
library=$(find "$nvrtc" -name 'libnvrtc.so*' | head -n 1)
rm -rf "$work/texts"
cargo run --quiet --locked -p warpsmith-kernel --example emit -- to="$work/texts"
LD_LIBRARY_PATH="$(dirname "$library")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
    python3 tools/ptx.py "$library" "$work/texts"

WARPSMITH_PTX="$PWD/$work/texts"
export WARPSMITH_PTX
# Refuses to go on if a text that should be carried is not.
cargo test --quiet --locked -p warpsmith-kernel --lib embedded
cargo build --profile dist --locked
echo "target/dist/warpsmith carries $(find "$work/texts" -name '*.ptx' | wc -l) kernels as PTX"
