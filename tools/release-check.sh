#!/usr/bin/env bash
# Holds a release against what docs/releases.md says of it: the same bytes from two builds in two folders, what the archive
# has in it, what the program needs of a system, and that it runs in a bare Debian 12. Half an hour on two cores.
#
#   tools/release-check.sh            builds the commit that is checked out, twice
#   tools/release-check.sh ARCHIVE    all but the two builds, for an archive that is there
#
# Needs what tools/release.sh needs, objdump, and for the bare system mmdebstrap and root, and the network.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
    echo "release-check.sh: $*" >&2
    exit 1
}

if [ $# = 0 ]; then
    # Folders of different names and lengths; NVRTC, which is taken by its hash, need not be fetched twice.
    for copy in one "another folder"; do
        git clone --quiet . "$folder/$copy"
        git -C "$folder/$copy" checkout --quiet --detach "$(git rev-parse HEAD)"
        if [ -d target/ptx ]; then
            mkdir -p "$folder/$copy/target/ptx"
            find "$PWD/target/ptx" -maxdepth 1 -name 'nvrtc-*' ! -name '*.part' -exec cp -r -t "$folder/$copy/target/ptx" {} +
        fi
        "$folder/$copy/tools/release.sh"
    done
    archives=("$folder"/*/target/release-archive/*.tar.gz)
    [ ${#archives[@]} = 2 ] || fail "there are ${#archives[@]} archives, not two"
    cmp "${archives[@]}" || fail "two builds of one commit differ"
    echo "two builds in two folders: the same $(stat -c %s "${archives[0]}") bytes"
    archive=${archives[0]}
    mkdir -p target/release-archive
    cp "$archive" "$archive.sha256" target/release-archive
else
    archive=$(realpath "$1")
fi

# What it is.
size=$(stat -c %s "$archive")
[ "$size" -lt $((25 * 1000 * 1000)) ] || fail "the archive has $size bytes, which is 25 MB or more"
(cd "$(dirname "$archive")" && sha256sum --check --quiet "$archive.sha256")
name=$(basename "$archive" .tar.gz)
root=$folder/root
mkdir "$root" "$folder/unpacked"
tar --extract --gzip --file="$archive" --directory="$folder/unpacked"
unpacked=$folder/unpacked/$name
(cd "$unpacked" && sha256sum --check --quiet SHA256SUMS)
for file in warpsmith warpsmith-pir README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT SHA256SUMS warpsmith.cdx.json \
    man/man1/warpsmith.1 man/man1/warpsmith-npub.1 man/man1/warpsmith-pir-serve.1 \
    completions/warpsmith.bash completions/warpsmith.fish completions/_warpsmith completions/_warpsmith-pir \
    licenses/third-party.txt licenses/rust-standard-library.html docs/security.md; do
    [ -s "$unpacked/$file" ] || fail "the archive lacks $file"
done
listed=$(wc -l <"$unpacked/SHA256SUMS")
[ "$listed" = "$(($(find "$unpacked" -type f | wc -l) - 1))" ] || fail "SHA256SUMS does not list every file"
tar --list --verbose --gzip --file="$archive" | awk '$2 != "0/0" { exit 1 }' || fail "an entry has an owner"

# Where it was built, and what it needs.
for program in warpsmith warpsmith-pir; do
    for path in "$HOME/" "${CARGO_HOME:-$HOME/.cargo}" "$(rustc --print sysroot)" "$PWD" "$folder"; do
        ! grep --text --quiet --fixed-strings "$path" "$unpacked/$program" || fail "$program has $path in it"
    done
    ! objdump -h "$unpacked/$program" | grep -q '\.debug_info' || fail "$program has debug information in it"
    newest=$(objdump -T "$unpacked/$program" | grep -o 'GLIBC_[0-9.]*' | sort -u -V | tail -n 1)
    [ "$(printf '%s\n' "$newest" GLIBC_2.36 | sort -V | tail -n 1)" = GLIBC_2.36 ] || fail "$program needs $newest, Debian 12 has 2.36"
    needed=$(objdump -p "$unpacked/$program" | awk '$1 == "NEEDED" { print $2 }' | sort | tr '\n' ' ')
    echo "$name: $size bytes; no path of this machine in $program; it needs $newest and $needed"
done

# A bare system, as small as Debian makes one.
if ! command -v mmdebstrap >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "SKIPPED: no mmdebstrap, or not root: the program was not run in a bare Debian 12"
    exit 0
fi
mmdebstrap --quiet --variant=essential bookworm "$root"
cp "$archive" "$root/root"
cat >"$root/root/try.sh" <<'INSIDE'
set -eu
cd /root
tar xzf "$1.tar.gz"
cd "$1"
sha256sum --check --quiet SHA256SUMS
PATH=$PWD:$PATH
warpsmith --version
warpsmith devices
umask 077
for search in 'npub cafe' 'eth cafe' 'btc 1A' 'ltc ltc1qa' 'doge DM' 'bch qpa' 'tron TT' 'cosmos a2' \
    'create2 ca --factory arachnid --init-code-hash 0x0000000000000000000000000000000000000000000000000000000000000000' \
    'create3 ca --factory createx'; do
    # shellcheck disable=SC2086
    warpsmith $search --quiet --json >>results.json
done
warpsmith npub q --split-key "$(warpsmith keygen --output own.key)" --json --quiet >split.json
warpsmith join --secret-key-file own.key split.json --json >>results.json
printf 'a password\n' >password
warpsmith npub q --quiet --json --encrypt --password-file password >>results.json
warpsmith verify results.json --password-file password >verified.txt || { cat verified.txt; exit 1; }
echo "$(grep -c ': holds$' verified.txt) results hold"
echo 1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH >addresses
warpsmith scan --range 1:10000 --targets addresses --quiet --json >scan.json
grep -q '"event":"done","covered":"65536","matches":1' scan.json || { cat scan.json; exit 1; }
warpsmith man npub >page
warpsmith selftest --device cpu >selftest.txt || { cat selftest.txt; exit 1; }
warpsmith-pir selftest --device cpu >>selftest.txt || { cat selftest.txt; exit 1; }
echo "$(wc -l <selftest.txt) self-tests passed"
INSIDE
# Nothing of this machine but what a chroot cannot be without.
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$root" sh /root/try.sh "$name" || fail "it does not run in a bare Debian 12"
echo "it runs in a bare Debian $(cat "$root/etc/debian_version")"
