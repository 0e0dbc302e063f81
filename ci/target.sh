# Sourced by scripts that build, possibly for another machine: CARGO_BUILD_TARGET is its Rust
# target, CC its compiler and linker. Sets `released`: the folder of cargo's output below its
# target directory. The paths of this folder and of cargo's sources stay out of what is built.
released=release
if [ -n "${CARGO_BUILD_TARGET-}" ]; then
    released=$CARGO_BUILD_TARGET/release
    linker=CARGO_TARGET_$(echo "$CARGO_BUILD_TARGET" | tr 'a-z-' 'A-Z_')_LINKER
    printenv "$linker" >/dev/null || export "$linker=${CC:-cc}"
fi
# The scripts that write client files replace words in templates by paths.
case ${0##*/}:$PWD in
*build*:*[\&\|\\]*)
    printf '%s\n' "$PWD has one of the characters & | \\, which the client files cannot hold" \
        "  Build in a folder without them." >&2
    exit 2
    ;;
esac
# Flags in RUSTFLAGS are the user's, and take the place of those in cargo's configuration.
case $PWD${CARGO_HOME:-${HOME-}} in
*[[:space:]]*)
    # Flags are separated by blanks. Scripts that only copy say nothing.
    case ${0##*/} in
    *build*)
        echo "warning: $PWD or ${CARGO_HOME:-${HOME-}} has a blank: what is built contains these paths" >&2
        case $PWD in
        *[[:space:]]*) echo "warning: programs cannot be compiled against $PWD/build, whose path has a blank: install it elsewhere" >&2 ;;
        esac
        ;;
    esac
    ;;
*)
    remaps="--remap-path-prefix=$(pwd -P)=. --remap-path-prefix=${CARGO_HOME:-${HOME-}/.cargo}/registry/src=/cargo"
    if [ -n "${RUSTFLAGS-}" ]; then
        export RUSTFLAGS="$RUSTFLAGS $remaps"
    else
        export CARGO_BUILD_RUSTFLAGS="${CARGO_BUILD_RUSTFLAGS-} $remaps"
    fi
    ;;
esac
