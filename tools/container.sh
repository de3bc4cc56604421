#!/bin/sh
# What the image runs: `fleet work` only after every device has found the keys that were planted for it. An invitation may come as
# the file /run/secrets/invitation, which keeps it out of command lines.
set -eu
if [ "${1-}" = fleet ] && [ "${2-}" = work ]; then
    warpsmith selftest >/dev/null
    if [ $# -eq 2 ]; then
        set -- fleet work /run/secrets/invitation
    fi
fi
exec warpsmith "$@"
