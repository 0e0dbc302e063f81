#!/bin/sh
# Texts are plain English on short lines:
# - comments and Markdown end before column 100 (tables, links and code blocks of output excepted);
# - no text contains a word or phrase of ci/words.txt.
# Every violation is one line `file:line: text`.
set -eu
cd "$(dirname "$0")/.."
. ci/checkout.sh
export LC_ALL=C.UTF-8
found=0
texts() { git ls-files -- "$@" ':!ci/words.txt' ':!LICENSE*' ':!Cargo.lock'; }

report() {
    if [ -n "$2" ]; then
        printf '%s\n' "$2" | sed "s|^|$1: |"
        found=1
    fi
}

# Rust: `//` at the start of a line or after code. C: between /* and */. The lines that the test
# runner reads from the head of a program are data. awk counts bytes (mawk always does), so the
# bytes that continue a character are not counted.
width='function width(text) { gsub(/[\200-\277]/, "", text); return length(text) }'
report "long line" "$(texts '*.rs' | xargs grep -nHE '.{100}' |
    grep -E '^[^:]+:[0-9]+:[[:space:]]*//|[[:space:]]// ' |
    grep -vE '^[^:]+:[0-9]+:[[:space:]]*//[/!] *\|' || true)"
report "long line" "$(texts '*.c' '*.h' | LC_ALL=C xargs awk "$width"'
    FNR == 1 { inside = 0 }
    { comment = inside || /\/\*/ || /^ *\/\// }
    /\/\*/ { inside = 1 }
    inside && /\*\// { inside = 0 }
    comment && width($0) > 99 && !/\\$/ && !/^\/\* (env|faults): / { print FILENAME ":" FNR ":" $0 }' || true)"
report "long line" "$(texts '*.sh' '*.toml' '*.yml' Makefile .ci/run | xargs grep -nHE '^[[:space:]]*#.{99}' || true)"
report "long line" "$(texts '*.md' | LC_ALL=C xargs awk "$width"'
    FNR == 1 { code = 0 }
    /^ *```/ { code = !code }
    width($0) > 99 && !code && !/^ *\|/ && !/\]\(/ && !/^    / { print FILENAME ":" FNR ":" $0 }' || true)"

words=$(grep -v '^#' ci/words.txt | paste -sd '|')
report "old style" "$(texts '*.rs' '*.c' '*.h' '*.md' '*.sh' '*.toml' '*.yml' '*.[1-9]' Makefile .ci/run |
    xargs grep -nHiEw -e "$words" || true)"
exit $found
