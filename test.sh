#!/usr/bin/env bash
# Installs what the tests need (Debian, Ubuntu) and runs them all: format, lints, unit, property, vector and
# end-to-end tests, kernels on PoCL and, where pip is there, through NVRTC. What a machine lacks is skipped aloud.
#
#   ./test.sh            everything
#   NO_INSTALL=1 ./test.sh   use only what is there
set -euo pipefail
cd "$(dirname "$0")"

say() { printf '\n== %s\n' "$*"; }

if [ -z "${NO_INSTALL:-}" ] && command -v apt-get >/dev/null; then
    say "packages"
    missing=""
    for package in gcc libc6-dev pocl-opencl-icd ocl-icd-libopencl1; do
        dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
    done
    if [ -n "$missing" ]; then
        sudo=""
        [ "$(id -u)" = 0 ] || sudo=sudo
        $sudo apt-get update -qq || echo "SKIPPED: apt-get update failed; using the package lists that are there"
        # shellcheck disable=SC2086
        $sudo apt-get install -y -qq --no-install-recommends $missing ||
            echo "SKIPPED: could not install:$missing"
    fi
fi

say "format"
cargo fmt --all --check

say "lints"
cargo clippy --workspace --all-targets --locked -- -D warnings

say "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet

say "tests"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cargo test --workspace --locked -- --show-output 2>&1 | tee "$log" | grep -vE '^(----|[[:space:]]*$|successes:|[[:space:]]+[a-z_:]+$)'

if command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1; then
    say "kernels through NVRTC"
    if [ ! -e .cuda/nvidia ] && [ -z "${NO_INSTALL:-}" ]; then
        mkdir -p .cuda
        # The compiler that goes with driver 580; it runs without a card.
        python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps \
            --target .cuda nvidia-cuda-nvrtc==13.0.88 || echo "SKIPPED: could not install NVRTC" | tee -a "$log"
    fi
    nvrtc=$(find .cuda -name 'libnvrtc.so*' 2>/dev/null | head -n 1)
    if [ -n "$nvrtc" ]; then
        cargo build --quiet --locked -p warpsmith-kernel --example emit
        LD_LIBRARY_PATH="$(dirname "$nvrtc")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
            python3 tools/nvrtc-check.py "$nvrtc" target/debug/examples/emit
    else
        echo "SKIPPED: no NVRTC, kernels were not compiled for NVIDIA cards" | tee -a "$log"
    fi
else
    echo "SKIPPED: no pip, kernels were not compiled for NVIDIA cards" | tee -a "$log"
fi

say "benches, one iteration each"
cargo bench -p warpsmith-curve --bench curve --locked -- --test
cargo bench -p warpsmith-hash --bench hash --locked -- --test
cargo bench -p warpsmith-pir --bench hints --locked -- --test
cargo bench -p warpsmith-pir --bench online --locked -- --test

if command -v cargo-deny >/dev/null; then
    say "licences and bans"
    cargo deny check bans licenses sources
else
    echo "SKIPPED: cargo-deny is not installed (cargo install cargo-deny)"
fi

say "skipped"
grep -ho 'SKIPPED:.*' "$log" | sort | uniq -c || echo "nothing"

say "all passed"
