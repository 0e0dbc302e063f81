#!/bin/sh
# What dynamic credits cost once they have settled: the rate of active messages with the figures that users have, against
# GASNET_PORTAL_DYNAMIC_CREDITS=0 with just so many credits that no request can lack one (which is checked). Both run in turn, for a
# short time and often, and it is the ratios of neighbours that count: what else happens on the machine meets both. A flood sends as
# fast as it can; a window never has more than 64 requests unanswered. docs/CREDITS.md has the figures.
#   ci/bench-credits.sh [ROUNDS=40] [LEAST=0.97]
# The exit code is 1 if the median of a ratio is below LEAST.
set -eu
cd "$(dirname "$0")/.."
rounds=${1:-40}
least=${2:-0.97}
dir=build/bench/credits
rm -rf $dir
mkdir -p $dir
${CC:-cc} -O2 -std=gnu99 -Wall -Wextra -D_GNU_SOURCE=1 -DGASNET_SEQ -Ibuild/include capi-tests/bench/am.c -o $dir/am \
    -Lbuild/lib -Wl,-rpath,"$PWD/build/lib" -lgasnet

# once WHICH PROCESSES CREDITS SIZES FIGURE...: a line per figure: its name, processes, size, value. No request needs more
# than so many credits. The first of the sizes only warms up what the others use.
once() {
    which=$1
    processes=$2
    # A sender has 2,048 chunks under way at most, and credits for a request that waits for one.
    plenty="GASNET_PORTAL_DYNAMIC_CREDITS=0 GASNET_PORTAL_CRED_PER_NODE=$((2049 * $3))"
    [ "$which" = fixed ] || plenty=
    sizes=$4
    shift 4
    # shellcheck disable=SC2086 # words
    env $plenty GASNET_TEST_COUNTERS="$PWD/$dir/counters" timeout 300 build/bin/gasnetrun -n "$processes" $dir/am -j -t 20 \
        -s "$sizes" "$@" |
        sed -n 's/.*"name":"\([a-z_]*\)","processes":\([0-9]*\),"size":\([0-9]*\),.*"value":\([^}]*\)}/\1 \2 \3 \4/p' |
        awk -v first="${sizes%:*}" '$3 != first' >>"$dir/$which"
    # The seventh number is how many requests lacked credits.
    awk -v which="$which" '{ stalls += $7 } END { exit which == "fixed" && stalls != 0 }' $dir/counters.* || {
        echo "requests lacked credits though there are plenty" >&2
        exit 1
    }
}

all() {
    once "$1" "$2" 1 32:256 short_flood medium_flood medium_window pairs_flood
    once "$1" "$2" 2 256:512 medium_flood medium_window
    once "$1" "$2" 4 512:1024 medium_flood medium_window
}

for processes in 2 8; do
    round=0
    while [ $round -lt "$rounds" ]; do
        # Who goes first alternates.
        if [ $((round % 2)) = 0 ]; then
            all dynamic $processes
            all fixed $processes
        else
            all fixed $processes
            all dynamic $processes
        fi
        round=$((round + 1))
    done
done
paste -d ' ' $dir/dynamic $dir/fixed | awk '{ print $1 "/" $2 "/" $3, $4, $8, $4 / $8 }' | sort -k1,1V -k4,4n |
    awk -v least="$least" '
        function at(share) { return ratio[int((n - 1) * share) + 1] }
        function show() {
            if (!n) return
            median = (ratio[int((n + 1) / 2)] + ratio[int(n / 2) + 1]) / 2
            printf "%-24s %12.0f %12.0f   %.3f (%.3f to %.3f)\n", name, d / n, f / n, median, at(0.25), at(0.75)
            if (median < least) low = 1
        }
        BEGIN { printf "%-24s %12s %12s   ratio of neighbours: median (quartiles)\n", "figure/processes/bytes", "dynamic", "plenty" }
        $1 != name { show(); name = $1; n = d = f = 0 }
        { ratio[++n] = $4; d += $2; f += $3 }
        END { show(); exit low }'
