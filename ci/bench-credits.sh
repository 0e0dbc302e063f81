#!/bin/sh
# What dynamic credits cost once they have settled: the rate of active messages with the figures that users have, against
# GASNET_PORTAL_DYNAMIC_CREDITS=0 with so many credits that no request ever lacks one (which is checked). Both run in turn,
# and it is the ratios of neighbours that count. Wants a quiet machine with as many CPUs as it can get.
#   ci/bench-credits.sh [ROUNDS=10] [LEAST=0.97]
# The exit code is 1 if the median of a ratio is below LEAST.
set -eu
cd "$(dirname "$0")/.."
rounds=${1:-10}
least=${2:-0.97}
dir=build/bench/credits
rm -rf $dir
mkdir -p $dir
${CC:-cc} -O2 -std=gnu99 -Wall -Wextra -D_GNU_SOURCE=1 -DGASNET_SEQ -Ibuild/include capi-tests/bench/am.c -o $dir/am \
    -Lbuild/lib -Wl,-rpath,"$PWD/build/lib" -lgasnet
# A sender has 2,048 chunks under way at most, of at most 8 credits each.
plenty="GASNET_PORTAL_DYNAMIC_CREDITS=0 GASNET_PORTAL_CRED_PER_NODE=16384"

# once WHICH PROCESSES [VARIABLE...]: a line per figure: its name, processes, size, value.
once() {
    which=$1
    processes=$2
    shift 2
    env "$@" GASNET_TEST_COUNTERS="$PWD/$dir/counters" timeout 300 build/bin/gasnetrun -n "$processes" $dir/am -j -t 200 -s 64:1024 \
        short_flood medium_flood pairs_flood |
        sed -n 's/.*"name":"\([a-z_]*\)","processes":\([0-9]*\),"size":\([0-9]*\),.*"value":\([^}]*\)}/\1 \2 \3 \4/p' >>"$dir/$which"
    # The seventh number is how many requests lacked credits.
    cat $dir/counters.* | awk -v which="$which" -v n="$processes" '
        { stalls += $7 }
        END { print which, n, stalls; exit which == "fixed" && stalls != 0 }' >>$dir/stalls || {
        echo "requests lacked credits though there are plenty" >&2
        exit 1
    }
}

for processes in 2 8; do
    round=0
    while [ $round -lt "$rounds" ]; do
        # Who goes first alternates.
        if [ $((round % 2)) = 0 ]; then
            once dynamic $processes
            # shellcheck disable=SC2086 # words
            once fixed $processes $plenty
        else
            # shellcheck disable=SC2086
            once fixed $processes $plenty
            once dynamic $processes
        fi
        round=$((round + 1))
    done
done
paste -d ' ' $dir/dynamic $dir/fixed | awk '{ print $1 "/" $2 "/" $3, $4, $8, $4 / $8 }' | sort -k1,1 -k4,4n |
    awk -v least="$least" '
        function show() {
            if (!n) return
            median = (ratio[int((n + 1) / 2)] + ratio[int(n / 2) + 1]) / 2
            printf "%-24s %12.0f %12.0f   %.3f (%.3f to %.3f)\n", name, d / n, f / n, median, ratio[1], ratio[n]
            if (median < least) low = 1
        }
        BEGIN { printf "%-24s %12s %12s   ratio of neighbours: median (least to most)\n", "flood/processes/bytes", "dynamic", "plenty" }
        $1 != name { show(); name = $1; n = d = f = 0 }
        { ratio[++n] = $4; d += $2; f += $3 }
        END { show(); exit low }'
