#!/bin/sh
# Makes a release of the commit that is checked out, in dist/:
#   libgasnet-VERSION.tar.xz       the sources, with the crates in vendor/, so that a build needs
#                                  no network; THIRD-PARTY.txt has the licences of what is linked
#   libgasnet-VERSION.cdx.json     the bill of materials (CycloneDX), also of libportals3
#   SHA256SUMS
# Then builds from the tarball without a network, and runs the demonstration.
#   packaging/release.sh           as above
#   packaging/release.sh --sources the tarball without the test build, for packages
#   packaging/release.sh --tag     as above, then an annotated tag with the text of the changelog
# Installs cargo-about and cargo-cyclonedx into build/tools where they are missing. The same
# commit gives the same tarball.
set -eu
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
about=0.9.3
cyclonedx=0.5.9
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
name=libgasnet-$version
stop() {
    echo "$1" >&2
    echo "  $2" >&2
    exit 1
}
command -v git >/dev/null 2>&1 && commit=$(git rev-parse --short HEAD 2>/dev/null) ||
    stop "a release is made from a commit, and this is no git checkout" "Clone the repository."
grep -q "^## \[$version\] - 20" CHANGELOG.md ||
    stop "CHANGELOG.md has no section [$version] with a date" "Write it, or raise the version in Cargo.toml."
grep -q "\"$version\"" include/gasnet_config.h ||
    stop "include/gasnet_config.h has another version than Cargo.toml" "Set GASNETI_LIBRARY_VERSION to $version."
[ -z "$(git status --porcelain)" ] || echo "changes that are not committed are left out"
if tagged=$(git rev-parse --quiet --verify "v$version^{commit}"); then
    [ "${1-}" != --tag ] || stop "v$version is tagged already" "Raise the version in Cargo.toml."
    [ "$tagged" = "$(git rev-parse HEAD)" ] ||
        echo "this is not the release $version: its tag is at another commit, $(git rev-parse --short "$tagged")"
fi

mkdir -p dist build/tools
PATH=$PATH:$PWD/build/tools/bin
tool() {
    command -v "$1" >/dev/null 2>&1 || "$cargo" install --quiet --locked --root build/tools "$@" ||
        stop "$1 cannot be installed" "Install it with cargo."
}
tool cargo-about --version $about --features cli
tool cargo-cyclonedx --version $cyclonedx

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
out=$PWD/dist
tree=$work/$name
export SOURCE_DATE_EPOCH="$(git log -1 --format=%ct)"
git archive --prefix="$name/" HEAD | tar -x -C "$work"
cd "$tree"

# Crates for other systems are listed in Cargo.lock, so cargo wants to see them, but it does not
# compile them. Of these, only the manifest and the checksum of the whole are kept. Outside of
# the tree at first: cargo-about would take their licences for those of the tree.
mkdir -p .cargo
"$cargo" vendor --locked --versioned-dirs ../vendor >.cargo/config.toml 2>"$work/vendor.log" ||
    stop "$(cat "$work/vendor.log")" "cargo vendor has failed."
targets=$(${RUSTC:-rustc} --print target-list | sed -n 's/.*-linux-.*/--target &/p')
# shellcheck disable=SC2086 # a list of options
"$cargo" tree --offline --locked --workspace --all-features --edges normal,build,dev $targets --prefix none --format '{p}' |
    sed 's/^\([^ ]*\) v\([^ ]*\).*/\1-\2/' | sort -u >"$work/used"
for crate in ../vendor/*; do
    grep -qx "${crate##*/}" "$work/used" && continue
    package=$(sed -n 's/.*\("package":"[^"]*"\).*/\1/p' "$crate/.cargo-checksum.json")
    find "$crate" -mindepth 1 ! -name Cargo.toml -delete
    mkdir "$crate/src"
    : >"$crate/src/lib.rs"
    # Targets that the manifest names by path no longer exist.
    sed -i '/^\[\[\(bin\|test\|bench\|example\)\]\]/,/^$/d; s/^build = .*/build = false/; s|^path = .*|path = "src/lib.rs"|' "$crate/Cargo.toml"
    printf '{"files":{},%s}' "$package" >"$crate/.cargo-checksum.json"
done
# Test data of crates that is compiled code.
find ../vendor -name '*.dll' -o -name '*.exe' -o -name '*.lib' | while read -r file; do
    crate=$(echo "$file" | cut -d / -f 1-3)
    rm "$file"
    sed -i "s|\"${file#"$crate"/}\":\"[^\"]*\",||" "$crate/.cargo-checksum.json"
done

# cargo_about CONFIGURATION OUTPUT [OPTION]
cargo_about() {
    cargo-about generate --offline --locked --fail --config "$1" --output-file "$2" ${3-} packaging/about.hbs >"$work/about.log" 2>&1 ||
        stop "$(tail -n 20 "$work/about.log")" "A crate has a licence that packaging/about.toml does not accept, or none."
}
cargo_about packaging/about.toml THIRD-PARTY.txt
sed '/^ignore-/d' packaging/about.toml >"$work/all.toml"
cargo_about "$work/all.toml" ../vendor/LICENSES.txt --workspace

cargo-cyclonedx cyclonedx --format json --spec-version 1.5 >"$work/cyclonedx.log" 2>&1 ||
    stop "$(tail -n 20 "$work/cyclonedx.log")" "cargo-cyclonedx has failed."
sed "s|$work||g" gasnet.cdx.json >"$out/$name.cdx.json"
sed "s|$work||g" portals/capi/portals3-c.cdx.json >"$out/libportals3-$version.cdx.json"
find . -name '*.cdx.json' -delete

mv ../vendor vendor
sed -i 's|^directory = .*|directory = "vendor"|' .cargo/config.toml

cd "$work"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go-w,u+w -c "$name" |
    xz -T0 -6 >"$out/$name.tar.xz"
cd "$out"
sha256sum "$name.tar.xz" "$name.cdx.json" "libportals3-$version.cdx.json" >SHA256SUMS
echo "dist/$name.tar.xz of commit $commit: $(du -h "$name.tar.xz" | cut -f 1), $(grep -c . "$work/used") crates and packages"
[ "${1-}" != --sources ] || exit 0

# Without a network, and without what cargo has fetched before.
rm -rf "$tree"
tar -xf "$name.tar.xz" -C "$work"
offline=
if unshare --net true 2>/dev/null; then
    offline="unshare --net"
else
    echo "skipped network: this user may not make a network namespace; cargo is offline"
fi
cd "$tree"
mkdir "$work/cargo"
# shellcheck disable=SC2086 # a command or nothing
env -u RUSTFLAGS CARGO_HOME="$work/cargo" CARGO_NET_OFFLINE=true PORTALS=emulation $offline \
    make --no-print-directory lib portals >"$work/build.log" 2>&1 ||
    stop "$(tail -n 40 "$work/build.log")" "The tarball does not build."
ci/demo.sh >"$work/demo.log" 2>&1 || stop "$(tail -n 40 "$work/demo.log")" "The demonstration fails."
make --no-print-directory install install-portals DESTDIR="$work/stage" PREFIX=/usr CARGO=false >/dev/null
echo "built offline from the tarball, demonstration passed, $(find "$work/stage" ! -type d | wc -l) files installed"

cd "$out/.."
[ "${1-}" = --tag ] || exit 0
awk -v version="$version" '$0 ~ "^## \\[" version "\\]" { found = 1; next } /^## / { found = 0 } found' CHANGELOG.md >"$work/notes"
git tag -a "v$version" --cleanup=verbatim -F - <<END
libgasnet $version

$(cat "$work/notes")
END
echo "tagged v$version"
