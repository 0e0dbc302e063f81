#!/bin/sh
# The table of instructions in docs/internals/speed.md says what ci/instructions.tsv says.
#   ci/speed-table.sh            compares
#   ci/speed-table.sh --write    writes the table anew
set -eu
cd "$(dirname "$0")/.."
page=docs/internals/speed.md
new=$(mktemp)
trap 'rm -f "$new"' EXIT
trap 'exit 130' INT TERM HUP

# Operation | its rows in ci/instructions.tsv, in the order of the sum | atomic operations | cache
# lines. Active messages always go through the conduit, whether segments are cross-mapped or not.
awk -F'\t' '
    function thousands(n) { return n < 1000 ? n : int(n / 1000) "," sprintf("%03d", n % 1000) }
    function sum(paths, mode, list, i, n, text) {
        n = split(paths, list, " ")
        for (i = 1; i <= n; i++) {
            if (!((list[i], mode) in count)) {
                if (mode == "cross-mapped") return "as `portals`"
                print "ci/instructions.tsv has no " list[i] " " mode > "/dev/stderr"
                exit bad = 1
            }
            text = text (i > 1 ? " + " : "") thousands(count[list[i], mode])
        }
        return text
    }
    FILENAME == "ci/instructions.tsv" { count[$1, $2] = $3; next }
    FILENAME == "-" { rows[++nrows] = $0; next }
    /^<!-- end -->$/ { inside = 0 }
    !inside
    /^<!-- instructions -->$/ {
        inside = found = 1
        print "| operation | instructions on path `cross-mapped` | `portals` | `events` | " \
            "atomic operations | cache lines moved between cores |"
        print "|---|---|---|---|---|---|"
        for (r = 1; r <= nrows; r++) {
            split(rows[r], f, / *\| */)
            line = "| " f[1]
            line = line " | " sum(f[2], "cross-mapped") " | " sum(f[2], "portals") " | " sum(f[2], "events")
            line = line " | " f[3] " | " f[4] " |"
            gsub(/\|  \|/, "| |", line)
            print line
        }
    }
    END {
        if (!bad && (!found || inside)) {
            print "no <!-- instructions --> with an <!-- end -->" > "/dev/stderr"
            bad = 1
        }
        exit bad
    }
' ci/instructions.tsv - $page >"$new" <<'ROWS'
blocking put of 8 B | put_8 | `cross-mapped` 0, `portals` 1 | the data
blocking get of 8 B | get_8 | `cross-mapped` 0, `portals` 1 | the data
put_nb of 8 B and its sync | put_nb_8 | `cross-mapped` 0, `portals` 1 | the data
put_nbi of 8 B and its sync | put_nbi_8 | `cross-mapped` 0, `portals` 1 | the data
blocking put of 8 B, a size that the compiler does not know | put_any_8 | `cross-mapped` 0, `portals` 1 | the data
blocking put of 4 KiB | put_4096 | `cross-mapped` 0, `portals` 1 | the data
Short: send the request + serve it and reply + take the reply | short_request short_serve short_take | 3 + 3 + 0 | event slot; both slots; event slot
the same with 4 arguments in request and reply | short_4_request short_4_serve short_4_take | 3 + 3 + 0 | the same
Medium of 64 B whose handler sends no reply: send the request + serve it + poll of the sender | medium_64_request medium_64_serve medium_64_take | 5 for the request | the event slot, and one cache line per 64 B
idle poll | poll_idle | 0 |
ROWS
if [ "${1:-}" = --write ]; then
    cat "$new" >$page
elif ! diff $page "$new"; then
    echo "$page differs from ci/instructions.tsv: run ci/speed-table.sh --write"
    exit 1
fi
