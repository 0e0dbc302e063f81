#!/bin/sh
# Compares the outside names of an archive with cross/TARGET.symbols, and the versions of glibc's
# functions that linked files need with the target's. Prints each name that is not listed, and each
# version above the target's.
#   ci/cross/names.sh TARGET [FILE...]   by default libgasnet.a and all programs of build-TARGET
#   ci/cross/names.sh TARGET -p          prints what to add to the list, and what it need not have
set -eu
cd "$(dirname "$0")/../.."
target=$1
shift
. ci/cross/target.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
list=cross/$target.symbols

# The lines of a list and of the lists that it includes: `NAME [weak]  why`.
lines() {
    grep -vE '^(#|include |$)' "$1" || true
    for other in $(sed -n 's/^include //p' "$1"); do lines "cross/$other.symbols"; done
}
lines "$list" >"$work/lines"
unexplained=$(grep -vE '^[^ ]+( weak)?  +[^ ]' "$work/lines" || true)
[ -z "$unexplained" ] || {
    echo "$unexplained"
    echo "*** $list: a line is \"NAME  why\" or \"NAME weak  why\"" >&2
    exit 1
}
awk '{ print $1, ($2 == "weak" ? "weak" : "strong") }' "$work/lines" | sort -u >"$work/listed"

# outside ARCHIVE: its undefined names.
outside() {
    ${NM:-nm} "$1" | awk '$1 == "U" { print $2, "strong" } $1 == "w" || $1 == "v" { print $2, "weak" }' | sort -u
}

[ $# != 0 ] && [ "$1" != -p ] || [ -e "$tree/lib/libgasnet.a" ] ||
    refuse "$tree/lib/libgasnet.a does not exist" "make cross TARGET=$target"
if [ "${1-}" = -p ]; then
    outside "$tree/lib/libgasnet.a" >"$work/outside"
    echo "not listed in $list:"
    comm -13 "$work/listed" "$work/outside" | sed 's/^/  /'
    echo "listed, but not needed by $tree/lib/libgasnet.a:"
    comm -23 "$work/listed" "$work/outside" | sed 's/^/  /'
    exit 0
fi
if [ $# = 0 ]; then
    for file in "$tree"/lib/libgasnet.a "$tree"/lib/libgasnet.so.0 "$tree"/bin/gasnet* "$tree"/tests/*/test*; do
        [ ! -f "$file" ] || [ -L "$file" ] || set -- "$@" "$file"
    done
fi

status=0
for file; do
    case $file in
    *.a)
        # A name that may be strong may be weak.
        outside "$file" | awk -v list="$work/listed" '
            BEGIN { while ((getline line < list) > 0) { split(line, word, " "); kind[word[1]] = word[2] } }
            kind[$1] != $2 && kind[$1] != "strong" { print $1, $2 }' >"$work/more"
        if [ -s "$work/more" ]; then
            while read -r name kind; do
                echo "$file: it needs $name ($kind), which $list does not list as $kind"
            done <"$work/more"
            status=1
        fi
        ;;
    *)
        [ -n "$GLIBC" ] || continue
        ${OBJDUMP:-objdump} -T "$file" | awk -v level="$GLIBC" -v file="$file" '
            match($0, /\(?GLIBC_[A-Z0-9._]+\)?/) && /\*UND\*/ {
                version = substr($0, RSTART, RLENGTH)
                gsub(/[()]/, "", version)
                number = version
                sub(/^GLIBC_/, "", number)
                n = split(number, part, ".")
                split(level, most, ".")
                if (part[1] !~ /^[0-9]+$/ || part[1] + 0 > most[1] + 0 || (part[1] + 0 == most[1] + 0 && part[2] + 0 > most[2] + 0)) {
                    print file ": it needs " $NF " of " version ", the target has " level
                    bad = 1
                }
            }
            END { exit bad }' || status=1
        ;;
    esac
done
[ $status = 0 ] || echo "*** a program for $target could not be linked or started there" >&2
exit $status
