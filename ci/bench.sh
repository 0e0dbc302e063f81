#!/bin/sh
# Measures the library over a built tree. Without arguments: the speed figures of two pinned processes on both paths, in a
# minute. With arguments, those of the program `bench`: beside other installations of GASNet, into docs/bench.
#   ci/bench.sh
#   ci/bench.sh --peer PREFIX[,CONDUIT] [--rounds N] [--ms MS]
set -eu
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then
    ci/tools.sh pkg-config
    if ! command -v gnuplot >/dev/null 2>&1 && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        # Without it the data are written and not drawn.
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq gnuplot-nox >/dev/null 2>&1 || true
    fi
    exec "${CARGO:-cargo}" run --quiet --release -p capi-tests --bin bench -- "$@"
fi
mkdir -p build/bench
${CC:-cc} -O2 -std=gnu99 -Wall -Wextra -D_GNU_SOURCE=1 -DGASNET_SEQ -Ibuild/include capi-tests/bench/latency.c \
    -o build/bench/latency -Lbuild/lib -Wl,-rpath,"$PWD/build/lib" -lgasnet
timeout 120 build/bin/gasnetrun -n 2 build/bench/latency
GASNET_SUPERNODE_MAXSIZE=1 timeout 120 build/bin/gasnetrun -n 2 build/bench/latency
