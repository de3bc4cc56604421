#!/usr/bin/env bash
# Installs what the tests need (Debian, Ubuntu) and runs them all: format, lints, unit, property, vector and
# end-to-end tests, kernels on PoCL and, where pip is there, through NVRTC. What a machine lacks is skipped aloud.
#
#   ./test.sh                    everything; a page of results, all the rest in target/test.log
#   ./test.sh quick              format, lints and unit tests, with what is there: minutes, while you work
#   NO_INSTALL=1 ./test.sh       use only what is there
#   WARPSMITH_LONG=1 ./test.sh   the whole numbers of docs/security.md instead of samples of them: hours
#
# Ends with one line "N passed, M failed, K skipped" (skipped: tests that are marked so in the source) and exit code 0 or 1.
set -euo pipefail
cd "$(dirname "$0")"

# Debian puts servers where only root looks for programs.
export PATH=$PATH:/usr/sbin

case "${1:-}" in
    "") quick="" ;;
    quick) quick=1 NO_INSTALL=1 ;;
    *)
        echo "invalid argument '$1': expected quick, or nothing for all tests" >&2
        exit 2
        ;;
esac

# Everything is compiled once here: what would make a second time quicker makes the first one slower.
[ -n "$quick" ] || export CARGO_INCREMENTAL=0

log=$PWD/target/test.log
mkdir -p target
: >"$log"
started=$SECONDS
passed=0

# Ends it all, with a reason and the line that counts.
fail() {
    printf '\n%s The whole log is %s\n%s\n' "$1" "$log" "$2"
    exit 1
}

# A line with the time it took; its output is shown only if it fails.
part() {
    local name=$1 from=$SECONDS output
    shift
    output=$(mktemp)
    printf '\n== %s: %s\n' "$name" "$*" >>"$log"
    if "$@" >"$output" 2>&1; then
        cat "$output" >>"$log"
        rm -f "$output"
        printf '%-44s ok %26s s\n' "$name" $((SECONDS - from))
    else
        cat "$output" >>"$log"
        printf '%-44s FAILED\n\n' "$name"
        cat "$output"
        rm -f "$output"
        fail "$name failed." "$passed passed, 1 failed"
    fi
}

skip() { printf 'SKIPPED: %s\n' "$*" >>"$log"; }

install_packages() {
    local package missing="" sudo=""
    for package in gcc libc6-dev pocl-opencl-icd ocl-icd-libopencl1 nats-server; do
        dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
    done
    if [ -z "$missing" ] && command -v chromium >/dev/null; then
        return 0
    fi
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -qq || skip "apt-get update failed; using the package lists that are there"
    # shellcheck disable=SC2086
    [ -z "$missing" ] || $sudo apt-get install -y -qq --no-install-recommends $missing || skip "could not install:$missing"
    # By itself, since not every system has a package of that name: the page of a fleet is looked at with it.
    command -v chromium >/dev/null || $sudo apt-get install -y -qq --no-install-recommends chromium \
        || skip "could not install chromium"
}

# All results of `cargo test` in a log, a line a crate, and the sum; $2 says which program belongs to which crate.
summarise() {
    awk '
        function close_open() { if (open != "") { failed[crate]++; failures++; print "  " open " ended without a result" > "/dev/stderr"; open = "" } }
        FNR == NR { crates[$1] = $2; next }
        /^ +Running .*\)$/ {
            close_open(); name = $0; sub(/.*\//, "", name); sub(/\)$/, "", name)
            crate = (name in crates) ? crates[name] : name; open = name
        }
        /^ +Doc-tests / { close_open(); crate = $2; sub(/^warpsmith_/, "", crate); open = "the doc-tests of " $2 }
        (/^ +Running / || /^ +Doc-tests /) && !(crate in seen) { seen[crate] = 1; order[++count] = crate }
        /^test result: / {
            passed[crate] += $4; failed[crate] += $6; ignored[crate] += $8; open = ""
            passes += $4; failures += $6; ignores += $8
            if (match($0, /finished in [0-9.]+s/)) seconds[crate] += substr($0, RSTART + 12, RLENGTH - 13)
        }
        END {
            close_open()
            for (i = 1; i <= count; i++) {
                c = order[i]
                printf "  %-20s %5d passed %5d failed %13.1f s\n", c, passed[c], failed[c], seconds[c]
            }
            printf "%d passed, %d failed, %d skipped\n", passes, failures, ignores
        }
    ' "$2" "$1"
}

# What failing tests said: from each "failures:" to its "test result: FAILED", without the list of names between.
show_failures() {
    awk '
        /^failures:$/ && !inside { inside = 1; next }
        /^failures:$/ && inside { inside = 2; next }
        /^test result: / { inside = 0 }
        inside == 1
        /^error: test failed/ || /process didn.t exit successfully/
    ' "$1"
}

if [ -z "${NO_INSTALL:-}" ] && command -v apt-get >/dev/null; then
    part "packages" install_packages
fi
# Other people's programs, which tests have read what we write: tools/foreign says which, target/foreign has them. What is
# missing there is skipped aloud by the tests.
foreign=target/foreign
install_foreign() {
    local stamp
    stamp=$(cat tools/foreign/* | sha256sum | cut -c1-16)
    if [ "$(cat "$foreign/stamp" 2>/dev/null)" != "$stamp" ]; then
        rm -rf "$foreign"
        mkdir -p "$foreign/packed" "$foreign/sources"
        cp tools/foreign/package.json tools/foreign/package-lock.json "$foreign"
        local whole=1
        if ! command -v npm >/dev/null || ! npm install --prefix "$foreign" --no-audit --no-fund --ignore-scripts ||
            ! unpack_foreign; then
            skip "npm could not install what tools/foreign lists: Nostr, Ethereum, Bitcoin and age programs were not asked"
            rm -rf "$foreign/node_modules" "$foreign/packed" && whole=0
        fi
        if ! python3 -m venv "$foreign/venv" || ! "$foreign/venv/bin/python" -m pip install --quiet \
            --disable-pip-version-check -r tools/foreign/requirements.txt; then
            skip "pip could not install what tools/foreign lists: eth-account was not asked"
            rm -rf "$foreign/venv" && whole=0
        fi
        [ "$whole" = 0 ] || echo "$stamp" >"$foreign/stamp"
    fi
    fetch_sources
}
# Packages of which a file is wanted and not the hundreds that they depend on.
unpack_foreign() {
    local name package hash
    while read -r name package hash; do
        (cd "$foreign/packed" && npm pack --silent "$package" && mv ./*.tgz "$name.tar" &&
            sha512sum --check --quiet <<<"$hash  $name.tar" && mkdir "$name" &&
            tar xzf "$name.tar" -C "$name" --strip-components=1) || return 1
    done <tools/foreign/packed.txt
}
# Contracts that are published as sources alone; a commit's name is the hash of all that is in it.
fetch_sources() {
    local name url commit folder
    while read -r name url commit; do
        folder=$foreign/sources/$name
        [ ! -d "$folder" ] || continue
        rm -rf "$folder.part"
        if git init --quiet "$folder.part" && timeout 120 git -C "$folder.part" fetch --quiet --depth 1 "$url" "$commit" &&
            git -C "$folder.part" checkout --quiet FETCH_HEAD; then
            mv "$folder.part" "$folder"
        else
            skip "$url could not be fetched: its contract was not asked"
            rm -rf "$folder.part"
        fi
    done <tools/foreign/sources.txt
}
[ -n "${NO_INSTALL:-}" ] || part "others' programs" install_foreign
part "format" cargo fmt --all --check
part "lints" cargo clippy --workspace --all-targets --locked -- -D warnings
# The library without anything, and with each feature alone.
check_features() {
    local feature
    for feature in "" cuda opencl fleet keystore salts; do
        cargo check --quiet --locked -p warpsmith --no-default-features --features "$feature" || return 1
    done
}
[ -n "$quick" ] || part "features of the library, one by one" check_features
[ -n "$quick" ] || part "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet

# One profile and all crates in each command that follows, benches too: another choice has other features, and everything
# below them would be compiled again.
programs=$(mktemp)
tests=$(mktemp)
trap 'rm -f "$programs" "$tests"' EXIT
which=()
[ -z "$quick" ] || which=(--lib --bins)
build_tests() {
    cargo test --workspace --locked "${which[@]}" --no-run --message-format=json-render-diagnostics |
        sed -n 's|.*"manifest_path":"[^"]*/\([^"/]*\)/Cargo.toml".*"executable":"[^"]*/\([^"/]*\)".*|\2 \1|p' >"$programs"
}
part "building the tests" build_tests
from=$SECONDS
status=0
cargo test --workspace --locked "${which[@]}" --no-fail-fast -- --show-output >"$tests" 2>&1 || status=$?
cat "$tests" >>"$log"
summary=$(summarise "$tests" "$programs")
if [ "$status" != 0 ]; then
    printf '%-44s FAILED\n\n' "tests"
    show_failures "$tests"
    printf '\n'
    sed '$d' <<<"$summary"
    # Cargo itself may have failed, between tests.
    fail "Tests failed." "$(tail -n 1 <<<"$summary" | sed 's/ 0 failed/ 1 failed/')"
fi
passed=$(tail -n 1 <<<"$summary" | cut -d ' ' -f 1)
printf '%-44s ok %26s s\n' "tests" $((SECONDS - from))
sed '$d' <<<"$summary"
if [ -n "$quick" ]; then
    printf '\nThe whole log is %s; %s s in all. ./test.sh runs everything\n' "$log" $((SECONDS - started))
    tail -n 1 <<<"$summary"
    exit 0
fi
part "benches, one iteration each" cargo test --workspace --locked --bench curve --bench hash --bench hints --bench online

# The example was built with the tests.
check_kernels() {
    LD_LIBRARY_PATH="$(dirname "$1")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        python3 tools/nvrtc-check.py "$1" target/debug/examples/emit
}
if command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1; then
    nvrtc=.cuda/$(sha256sum tools/nvrtc.txt | cut -c1-16)
    if [ ! -e "$nvrtc" ] && [ -z "${NO_INSTALL:-}" ]; then
        # Whole or not at all: an interrupted one is not taken for installed.
        rm -rf "$nvrtc.part"
        if python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --require-hashes \
            --target "$nvrtc.part" -r tools/nvrtc.txt >>"$log" 2>&1; then
            mv "$nvrtc.part" "$nvrtc"
        else
            skip "could not install NVRTC (its hash is wrong, or there is no network: see the log)"
        fi
    fi
    library=$(find "$nvrtc" -name 'libnvrtc.so*' 2>/dev/null | head -n 1 || true)
    if [ -n "$library" ]; then
        part "kernels through NVRTC" check_kernels "$library"
    else
        skip "no NVRTC, kernels were not compiled for NVIDIA cards"
    fi
    part "soak, 12 seconds" env WARPSMITH=target/debug/warpsmith THREADS=1 tools/soak.sh 12 cpu
else
    skip "no python3 with pip: kernels were not compiled for NVIDIA cards, and there was no soak"
fi

# The bill of materials, and the licence texts of everything in a release: ends where one has none.
check_bill() { tools/bill.py sbom >/dev/null && tools/bill.py notices >/dev/null; }
if python3 -c 'import tomllib' 2>/dev/null; then
    part "bill of materials, licence texts" check_bill
else
    skip "no python3 of 3.11 or later: the bill of materials was not made"
fi
if command -v cargo-deny >/dev/null; then
    part "licences and bans" cargo deny check bans licenses sources
    if cargo deny fetch db >>"$log" 2>&1; then
        part "advisories" cargo deny check advisories
    else
        skip "the database of advisories could not be had: the lock file was not checked for known weaknesses"
    fi
else
    skip "cargo-deny is not installed (cargo install cargo-deny): licences, bans and advisories were not checked"
fi

printf '\n'
grep -ho 'SKIPPED:.*' "$log" | sort | uniq -c || echo "nothing was left out"
printf '\nThe whole log is %s; %s s in all\n' "$log" $((SECONDS - started))
tail -n 1 <<<"$summary"
