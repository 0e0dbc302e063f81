#!/bin/sh
# Measures the speed figures over a built tree: two pinned processes, on both paths.
#   ci/bench.sh [rounds]
set -eu
cd "$(dirname "$0")/.."
mkdir -p build/bench
${CC:-cc} -O2 -std=gnu99 -Wall -Wextra -D_GNU_SOURCE=1 -DGASNET_SEQ -Ibuild/include capi-tests/bench/latency.c \
    -o build/bench/latency -Lbuild/lib -Wl,-rpath,"$PWD/build/lib" -lgasnet
timeout 120 build/bin/gasnetrun -n 2 build/bench/latency "$@"
GASNET_SUPERNODE_MAXSIZE=1 timeout 120 build/bin/gasnetrun -n 2 build/bench/latency "$@"
