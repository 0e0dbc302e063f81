#!/bin/sh
# Measures the steady-state cost of dynamic credits. This is the rate of active messages with
# the default settings, relative to GASNET_PORTAL_DYNAMIC_CREDITS=0 with enough credits for
# every request (which is checked). The two settings alternate in short runs, and the ratio
# of adjacent runs counts, so that other load affects both. Where permitted, the ranks run at
# real-time priority. A flood sends at the maximum rate; a window keeps at most 64 requests
# unanswered.
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

realtime="chrt -f 10"
$realtime true 2>/dev/null || {
    realtime=
    echo "no right to run in real time: other work on this machine will show" >&2
}

# once SETTING RANKS CREDITS SIZES FIGURE...: a line per figure: its name, ranks, size, value.
# CREDITS is the most that a request needs. The first size only warms up.
once() {
    which=$1
    processes=$2
    # A sender has at most 2,048 chunks in flight, and credits for one request that waits for a
    # chunk.
    variables="GASNET_PORTAL_DYNAMIC_CREDITS=0 GASNET_PORTAL_CRED_PER_NODE=$((2049 * $3))"
    [ "$which" = fixed ] || variables=
    sizes=$4
    shift 4
    # shellcheck disable=SC2086 # words
    env $variables GASNET_TEST_COUNTERS="$PWD/$dir/counters" timeout 300 $realtime build/bin/gasnetrun -n "$processes" $dir/am -j -t 20 \
        -s "$sizes" "$@" |
        sed -n 's/.*"name":"\([a-z_]*\)","processes":\([0-9]*\),"size":\([0-9]*\),.*"value":\([^}]*\)}/\1 \2 \3 \4/p' |
        awk -v first="${sizes%:*}" '$3 != first' >>"$dir/$which"
    # The seventh number counts the requests that lacked credits.
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
        # The setting that goes first alternates.
        if [ $((round % 2)) = 0 ]; then
            order="dynamic fixed"
        else
            order="fixed dynamic"
        fi
        for which in $order; do
            all $which $processes
        done
        round=$((round + 1))
    done
done
paste -d ' ' $dir/dynamic $dir/fixed | awk '{ print $1 "/" $2 "/" $3, $4, $8, $4 / $8 }' >$dir/rounds
sort -k1,1V -k4,4n $dir/rounds | awk -v least="$least" '
    function at(share,  i) {
        i = 1 + (n - 1) * share
        return v[int(i)] + (i > int(i) ? (v[int(i) + 1] - v[int(i)]) * (i - int(i)) : 0)
    }
    function show() {
        if (!n) return
        printf "| %s | %.0f | %.0f | %.3f (%.3f to %.3f) |\n", name, d / n, p / n, at(0.5), at(0.25), at(0.75)
        if (at(0.5) < least) low = 1
    }
    BEGIN { print "| figure / processes / bytes | requests/s, dynamic | plenty | ratio: median (quartiles) |\n|---|---|---|---|" }
    $1 != name { show(); name = $1; n = d = p = 0 }
    { v[++n] = $4; d += $2; p += $3 }
    END { show(); exit low }'
