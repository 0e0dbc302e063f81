# Read by ci/fuzz.sh and ci/sanitize.sh: how Rust code is built with a sanitizer by the stable
# toolchain.

host=$(${RUSTC:-rustc} -vV | sed -n 's/^host: //p')

# instrumented SANITIZER FLAG...: sets RUSTFLAGS for this sanitizer. Ends the script with 77 if
# the toolchain has no runtime for it.
instrumented() {
    sanitizer=$1
    shift
    export RUSTC_BOOTSTRAP=1
    RUSTFLAGS="-Zsanitizer=$sanitizer -Cforce-frame-pointers=yes $*"
    mkdir -p target
    # Into a file: as root, rustc would replace /dev/null by its output.
    if echo 'fn main() {}' | ${RUSTC:-rustc} -Cunsafe-allow-abi-mismatch=sanitizer --emit metadata \
        -o target/sanitizer-probe.rmeta - 2>/dev/null; then
        RUSTFLAGS="$RUSTFLAGS -Cunsafe-allow-abi-mismatch=sanitizer"
    fi
    export RUSTFLAGS
    # shellcheck disable=SC2086 # words
    echo 'fn main() {}' | ${RUSTC:-rustc} $RUSTFLAGS -o target/sanitizer-probe - >target/sanitizer-probe.log 2>&1 || {
        sed 's/^/    /' target/sanitizer-probe.log
        echo "this toolchain builds no programs with the sanitizer $sanitizer"
        exit 77
    }
}

# test_programs FOLDER ARG...: builds the tests that `cargo test ARG...` would run into a target
# folder; prints the paths of the programs.
test_programs() {
    folder=$1
    shift
    # With --target, build scripts and macros are built without the flags.
    ${CARGO:-cargo} test --quiet --no-run --target "$host" --target-dir "$folder" "$@" \
        --message-format=json-render-diagnostics >"$folder.json" || return 1
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' "$folder.json" | sort -u
}
