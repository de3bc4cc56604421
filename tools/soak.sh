#!/usr/bin/env bash
# Runs the program for a long time and fails if its memory grows, a result is wrong or missing, or the number of matches does
# not fit the odds. Half of the time goes to a search with a match every moment, half to a scan with a map.
#
#   tools/soak.sh [SECONDS] [DEVICE]     default: 3600 cpu; needs python3, and nvidia-smi to see a card's memory
#
#   WARPSMITH=path   the program, instead of target/release/warpsmith
#   THREADS=1        CPU threads, instead of one per core
#   PATTERN=aaaa     what follows npub1, instead of as many characters as suit the device
set -euo pipefail
exec python3 "$(dirname "$0")/soak.py" "$@"
