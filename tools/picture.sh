#!/bin/sh
# Makes the README's picture, docs/images/running.svg, of a real run on this machine.
#
#   tools/picture.sh [BINARY [ARGUMENT...]]
#
# Without a binary the release build is made and used. The run must find two matches or more, so that one is on the screen while it
# searches for the next.
set -eu
cd "$(dirname "$0")/.."
binary=${1:-target/release/warpsmith}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- npub cafewaw --count 2 --output keys.txt
[ -x "$binary" ] || cargo build --release --locked
cargo run --quiet --locked --package warpsmith-cli --example picture -- docs/images/running.svg "$binary" "$@"
