# Sourced by the scripts that build or check for another machine, with $target set. Reads
# cross/$target.target into variables of the same names, and sets `tree`, the build tree.
# Refuses a target that does not exist or that this machine cannot build.
STANDS_FOR= RUST_TARGET= CPU= WITHOUT= GLIBC= KERNEL= SHARED=yes MODES="seq par parsync" HOSTED=yes NETWORK=
COMPILER= HOST= LAUNCHER= QEMU=

# refuse CAUSE REMEDY: two lines, then the end, with code $unfit.
unfit=2
refuse() {
    echo "*** make cross TARGET=$target: $1" >&2
    echo "***   $2" >&2
    exit $unfit
}

if [ -z "$target" ] || [ ! -f "cross/$target.target" ]; then
    [ -n "$target" ] || echo "*** make cross: no target is given" >&2
    [ -z "$target" ] || echo "*** make cross TARGET=$target: there is no such target" >&2
    echo "***   TARGET= is one of:" >&2
    for file in cross/*.target; do
        name=${file##*/}
        printf '***   %-18s %s\n' "${name%.target}" "$(sed -n 's/^STANDS_FOR="\(.*\)"/\1/p' "$file")" >&2
    done
    exit 2
fi
# A target file declares. It has no commands.
wrong=$(grep -nvE '^(#.*|[A-Z_]+=("[^"$`\\]*"|[A-Za-z0-9_.+-]*)|)$' "cross/$target.target" || true)
[ -z "$wrong" ] || refuse "cross/$target.target:${wrong%%:*} is neither a comment nor NAME=value" "write NAME=\"value\""
# shellcheck disable=SC1090 # one of cross/*.target
. "./cross/$target.target"
tree=build-$target

# What this machine lacks is no mistake of the caller.
unfit=77
rust_library=$(${RUSTC:-rustc} --print target-libdir --target "$RUST_TARGET" 2>/dev/null || true)
if ! ls "$rust_library"/libstd-*.rlib >/dev/null 2>&1; then
    refuse "Rust's library for $RUST_TARGET is not installed" "rustup target add $RUST_TARGET"
fi
unfit=2
