#!/usr/bin/env bash
# Builds the program as it is released: with PTX of its kernels inside, for machines that have NVIDIA's driver and no
# NVRTC. Any change of a kernel's text needs this again, since PTX is found by the text's hash.
#
#   tools/release.sh         needs cargo, python3 with pip and, the first time, the network; no GPU
#
# NVRTC 11.8: its PTX runs with drivers from 520 on; older drivers need NVRTC beside the program, as ever.
set -euo pipefail
cd "$(dirname "$0")/.."

nvrtc_version=11.8.89
work=target/ptx
mkdir -p "$work"
if [ ! -e "$work/nvrtc-$nvrtc_version" ]; then
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps \
        --target "$work/nvrtc-$nvrtc_version" "nvidia-cuda-nvrtc-cu11==$nvrtc_version"
fi
library=$(find "$work/nvrtc-$nvrtc_version" -name 'libnvrtc.so*' | head -n 1)
rm -rf "$work/texts"
cargo run --quiet --locked -p warpsmith-kernel --example emit -- to="$work/texts"
LD_LIBRARY_PATH="$(dirname "$library")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
    python3 tools/ptx.py "$library" "$work/texts"

WARPSMITH_PTX="$PWD/$work/texts"
export WARPSMITH_PTX
# Refuses to go on if a text that should be carried is not.
cargo test --quiet --locked -p warpsmith-kernel --lib embedded
cargo build --release --locked
echo "target/release/warpsmith carries $(find "$work/texts" -name '*.ptx' | wc -l) kernels as PTX"
