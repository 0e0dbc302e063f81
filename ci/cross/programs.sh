#!/bin/sh
# Compiles the C test programs against a cross-built tree, into build-TARGET/tests/MODE. PROGRAMS
# names them; all by default. A program is compiled again only if the library or a source is newer.
#   ci/cross/programs.sh TARGET
set -eu
cd "$(dirname "$0")/../.."
target=$1
. ci/cross/target.sh
[ "${PROGRAMS-}" != none ] || exit 0
cc=$PWD/$tree/bin/$target-cc

# value NAME MODE: a variable of a make fragment, as make computes it.
value() {
    printf 'include %s/include/portals-conduit/portals-%s.mak\nall:\n\t@echo $(%s)\n' "$PWD/$tree" "$2" "$1" | make -s -f - all
}

# compile MODE CFLAGS LIBS
compile() {
    mode=$1
    bad=0
    mkdir -p "$tree/tests/$mode"
    for source in capi-tests/test*.c; do
        name=$(basename "$source" .c)
        case " ${PROGRAMS:-$name} " in *" $name "*) ;; *) continue ;; esac
        threads=$(sed -n 's|^/\* threads: \(.*\) \*/|\1|p' "$source")
        case ${threads:-both} in both | "$mode") ;; *) continue ;; esac
        segments=
        if grep -q '^/\* segments: everything \*/' "$source"; then segments=-DGASNET_SEGMENT_EVERYTHING; fi
        program=$tree/tests/$mode/$name
        [ -e "$program" ] && [ -z "$(find "$source" capi-tests/*.h include/*.h "$tree/lib/libgasnet.a" -newer "$program" | head -n 1)" ] && continue
        # shellcheck disable=SC2086 # flags
        if "$cc" -std=gnu99 -O2 -w $2 $segments -I capi-tests "$source" -o "$program.new" $3; then
            mv "$program.new" "$program"
            echo "$program"
        else
            echo "*** $source does not compile for $target, $mode" >&2
            bad=1
        fi
    done
    return $bad
}
jobs=
for mode in $MODES; do
    [ "$mode" != parsync ] || continue
    compile "$mode" "$(value GASNET_CPPFLAGS "$mode")" "$(value GASNET_STATIC_LIBS "$mode")" >"$tree/tests.$mode.list" &
    jobs="$jobs $!"
done
failed=
for job in $jobs; do wait "$job" || failed=yes; done
cat "$tree"/tests.*.list
rm -f "$tree"/tests.*.list
[ -z "$failed" ]
