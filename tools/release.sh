#!/usr/bin/env bash
# Makes a release: one archive with both programs, their manual pages and completions, licences, a bill of materials and
# checksums. The same commit and the same compilers give the same bytes, wherever it is built (docs/releases.md).
#
#   tools/release.sh         needs cargo, cc, python3 with pip and, the first time, the network; no GPU
#   ALLOW_CHANGES=1 ...      also where files differ from the commit, for trying things
#
# The programs have PTX of their kernels inside, for machines that have NVIDIA's driver and no NVRTC. Any change of a kernel's
# text needs this again, since PTX is found by the text's hash. NVRTC 11.8 (tools/nvrtc-release.txt, by hash): its PTX runs
# with drivers from 520 on; older drivers need NVRTC beside the program, as ever.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C TZ=UTC CARGO_INCREMENTAL=0
umask 022

if [ -z "${ALLOW_CHANGES:-}" ] && [ -n "$(git status --porcelain)" ]; then
    echo "release.sh: files here differ from the commit, and nobody could build the same again; commit them, or set ALLOW_CHANGES=1" >&2
    exit 2
fi
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
name=warpsmith-$version-x86_64-linux

# 1. The kernels, as PTX.
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
    python3 tools/ptx.py "$library" "$work/texts" >"$work/log"
WARPSMITH_PTX="$PWD/$work/texts"
export WARPSMITH_PTX
# Refuses to go on if a text that should be carried is not.
cargo test --quiet --locked -p warpsmith-kernel --lib embedded

# 2. The programs, without a trace of where it was built: source folder, cargo's home and the compiler's own files get names
# that are the same everywhere, in what Rust writes and in what C does.
cargo_home=${CARGO_HOME:-$HOME/.cargo}
remap=("$PWD=/warpsmith" "$cargo_home=/cargo" "$(rustc --print sysroot)=/rustc")
rust_flags=() c_flags=()
for pair in "${remap[@]}"; do
    rust_flags+=("--remap-path-prefix=$pair")
    c_flags+=("$(printf %q "-ffile-prefix-map=$pair")")
done
messages=target/release-messages.json
(
    # Paths may have spaces in them; these are the forms that allow it. What a person has set of these does not count.
    CARGO_ENCODED_RUSTFLAGS=$(printf '%s\037' "${rust_flags[@]}")
    CARGO_ENCODED_RUSTFLAGS=${CARGO_ENCODED_RUSTFLAGS%?}
    export CARGO_ENCODED_RUSTFLAGS CC_SHELL_ESCAPED_FLAGS=1 CFLAGS="${c_flags[*]}"
    cargo build --profile dist --locked -p warpsmith-cli -p warpsmith-pir --message-format=json-render-diagnostics >"$messages"
)
programs=(warpsmith warpsmith-pir)
for program in "${programs[@]}"; do "target/dist/$program" --version; done

# 3. What lies beside it.
staged=target/release-archive/$name
rm -rf "$staged" "$staged".tar.gz*
mkdir -p "$staged/licenses" "$staged/completions"
for program in "${programs[@]}"; do
    install -m 755 "target/dist/$program" "$staged/$program"
    "$staged/$program" man --folder "$staged/man/man1"
    "$staged/$program" completions bash >"$staged/completions/$program.bash"
    "$staged/$program" completions fish >"$staged/completions/$program.fish"
    "$staged/$program" completions zsh >"$staged/completions/_$program"
done
cp README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$staged"
cp -r docs "$staged/docs"
tools/bill.py notices >"$staged/licenses/third-party.txt"
cp "$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html" "$staged/licenses/rust-standard-library.html"
tools/bill.py sbom >"$staged/warpsmith.cdx.json"
tools/bill.py check "$staged/warpsmith.cdx.json" "$messages"
(cd "$staged" && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs -d '\n' sha256sum >SHA256SUMS)
find "$staged" -type d -exec chmod 755 {} + -o -type f ! -name warpsmith ! -name warpsmith-pir -exec chmod 644 {} +

# 4. One archive.
archive=$staged.tar.gz
tar --create --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --directory="$(dirname "$staged")" "$name" | gzip --no-name -9 >"$archive"
(cd "$(dirname "$archive")" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "$archive: $(stat -c %s "$archive") bytes, $(find "$work/texts" -name '*.ptx' | wc -l) kernels as PTX, sha256 $(cut -d ' ' -f 1 "$archive.sha256")"
