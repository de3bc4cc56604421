#!/usr/bin/env bash
# Fuzzes every parser of what comes from outside, and keeps the inputs that reach new code in fuzz/kept.
#
#   tools/fuzz.sh [SECONDS] [TARGET...]    default: 60 seconds each of all targets, as many at a time as there are cores
#
#   FUZZ_BINARIES=folder   programs built before (target/fuzz/release here): needs no Rust, so another machine can run them
#   FUZZ_JOBS=4            so many at a time
#
# Needs python3, and stable Rust of Linux on x86-64 or ARM: coverage is compiled in by plain compiler flags, without a sanitizer. A
# crash, an input that takes more than 10 seconds, 512 MiB in one piece or 2 GiB in all ends a target; the input is left in
# fuzz/artifacts and its target named at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
[ $# -gt 0 ] && shift
if [ $# -gt 0 ]; then
    targets=("$@")
else
    mapfile -t targets < <(cd fuzz/fuzz_targets && ls -- *.rs | sed 's/\.rs$//')
fi

if [ -z "${FUZZ_BINARIES:-}" ]; then
    host=$(rustc -vV | sed -n 's/^host: //p')
    flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
    flags="$flags -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
    # With a target named, build scripts are left without.
    RUSTFLAGS="$flags --cfg fuzzing -Cdebug-assertions -Coverflow-checks" cargo build --release --locked \
        --manifest-path fuzz/Cargo.toml --target-dir target/fuzz --target "$host"
    FUZZ_BINARIES=target/fuzz/$host/release
fi

limits=(-rss_limit_mb=2048 -malloc_limit_mb=512 -timeout=10 -max_len=4096 -print_final_stats=1)
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# Inputs are kept as hex, one input per line: one small file for each target, with differences that can be read.
unpack() {
    python3 - "fuzz/kept/$1.hex" "fuzz/corpus/$1" <<'PY'
import hashlib, os, sys
kept, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
for line in open(kept) if os.path.exists(kept) else []:
    data = bytes.fromhex(line)
    with open(os.path.join(folder, hashlib.sha1(data).hexdigest()), "wb") as out:
        out.write(data)
PY
}

# The shortest first, up to 80 KB a target.
pack() {
    python3 - "$2" "fuzz/kept/$1.hex" <<'PY'
import os, sys
folder, kept = sys.argv[1:]
inputs = sorted((open(os.path.join(folder, name), "rb").read() for name in os.listdir(folder)), key=lambda data: (len(data), data))
room, lines = 80_000, []
for data in inputs:
    room -= 2 * len(data) + 1
    if room < 0:
        break
    lines.append(data.hex() + "\n")
with open(kept, "w") as out:
    out.writelines(sorted(lines))
PY
}

fuzz() {
    local target=$1 minimal
    unpack "$target"
    mkdir -p "fuzz/artifacts/$target" "fuzz/seeds/$target" fuzz/kept
    if ! "$FUZZ_BINARIES/$target" "fuzz/corpus/$target" "fuzz/seeds/$target" "${limits[@]}" -max_total_time="$seconds" \
        -artifact_prefix="fuzz/artifacts/$target/" >"$logs/$target" 2>&1; then
        tail -n 30 "$logs/$target" >"$logs/$target.failed"
        return
    fi
    minimal=$(mktemp -d)
    "$FUZZ_BINARIES/$target" -merge=1 "${limits[@]}" "$minimal" "fuzz/seeds/$target" "fuzz/corpus/$target" >/dev/null 2>&1
    pack "$target" "$minimal"
    rm -rf "$minimal"
    printf '%-16s %s runs, %s inputs kept\n' "$target" \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$logs/$target")" "$(wc -l <"fuzz/kept/$target.hex")"
}

for target in "${targets[@]}"; do
    [ -x "$FUZZ_BINARIES/$target" ] || { echo "no target '$target': there are $(ls fuzz/fuzz_targets | tr '\n' ' ')" >&2; exit 2; }
    while [ "$(jobs -rp | wc -l)" -ge "${FUZZ_JOBS:-$(nproc)}" ]; do wait -n || true; done
    fuzz "$target" &
done
wait

failed=0
for log in "$logs"/*.failed; do
    [ -e "$log" ] || continue
    failed=1
    printf '\nFAILED: %s\n' "$(basename "$log" .failed)"
    cat "$log"
done
exit $failed
