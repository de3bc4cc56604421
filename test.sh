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
cargo test --workspace --locked

say "benches, one iteration each"
cargo bench --workspace --locked --quiet -- --test

if command -v cargo-deny >/dev/null; then
    say "licences and bans"
    cargo deny check bans licenses sources
else
    echo "SKIPPED: cargo-deny is not installed (cargo install cargo-deny)"
fi

say "all passed"
