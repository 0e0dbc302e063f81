#!/bin/sh
# What ci/check.sh runs next to its tests: scripts that only compile, one after the other, at the
# lowest priority. Tests that run meanwhile often wait or sleep. ci/check.sh starts it in a
# session of its own, to end it with all that it has started, and collects the results.
#   ci/check-background.sh LOG TREE   writes LOG/NAME.background and then LOG/NAME.code, for each
#                                     NAME. TREE is built over the libportals of build-libportals
set -u
cd "$(dirname "$0")/.."
log=$1
# Cargo locks a target folder.
export CARGO_TARGET_DIR=target/background

run() { # name, script and its arguments
    name=$1
    shift
    "$@" >"$log/$name.background" 2>&1
    code=$?
    echo $code >"$log/$name.code.new"
    mv "$log/$name.code.new" "$log/$name.code"
}

# libclang makes the binding to a libportals.
over_libportals() {
    ci/build.sh build-libportals && return
    grep -q 'libclang is missing' "$log/build-libportals.background" || return 1
    echo "libclang is missing: Debian package libclang-dev"
    return 77
}

renice -n 19 -p $$ >/dev/null 2>&1
run build-faults ci/build.sh build-faults
run build-libportals over_libportals
if [ $code = 0 ]; then
    run "$2" ci/build.sh "$2"
fi
run clippy ci/clippy.sh
run doc ci/doc.sh
run headers ci/headers.sh sample
