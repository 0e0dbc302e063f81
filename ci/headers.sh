#!/bin/sh
# Every header compiles alone and without a warning, in every thread and segment mode. It does
# so as C99, as C++98 and as the newest languages of the compilers. Programs that must be
# rejected are rejected.
#   ci/headers.sh              all
#   ci/headers.sh sample       for `make check`: every other mode of each header, by SEED
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
warn="-Wall -Wextra -pedantic -Werror -Wshadow -Wundef -Wno-unused-parameter -Iinclude -fsyntax-only"
warn_c=-Wstrict-prototypes
count=0

try() { # compiler, source, flags...
    if ! "$@" 2>"$work/err"; then
        echo "ci/headers.sh: $*" >&2
        cat "$work/err" >&2
        exit 1
    fi
    count=$((count + 1))
}

# alone HEADER: it compiles alone, in every mode, or in those that the sample takes.
alone() {
    h=$(basename "$1")
    printf '#include "%s"\ntypedef int not_empty;\n' "$h" >"$work/a.c"
    cp "$work/a.c" "$work/a.cc"
    case $h in
        gasnet_tools.h | gasnet_locks.h | gasnet_debugmalloc.h | gasnet_atomics.h | gasnet_basic.h | gasnet_config.h | gasnet_platform.h | gasnet_portable_platform.h | gasnet_abi.h | gasnet_fwd.h)
            modes=": -DGASNETT_THREAD_SAFE -pthread:-DGASNETT_THREAD_SINGLE" ;;
        *) modes="-DGASNET_SEQ -DGASNET_PARSYNC -DGASNET_PAR -DGASNET_PAR=1:-DGASNET_SEGMENT_LARGE -DGASNET_SEQ:-DGASNET_SEGMENT_EVERYTHING:-DGASNET_DEBUG" ;;
    esac
    # GASNet-EX needs variadic macros.
    case $h in
        gasnetex*.h | gasnet_ratomic.h | gasnet_mk.h) c="c99 c11" first="c++11 c++14 c++17" ;;
        *) c=c99 first=c++98 ;;
    esac
    turn=${SEED:-1}
    for mode in $modes; do
        turn=$((turn + 1))
        if [ "$sample" = yes ] && [ $((turn % 2)) = 0 ]; then continue; fi
        flags=$(echo "$mode" | tr : ' ')
        for cc in gcc clang; do
            command -v $cc >/dev/null || continue
            for std in $c gnu17 gnu2x; do
                # shellcheck disable=SC2086
                try $cc -std=$std $warn $warn_c $flags "$work/a.c"
            done
        done
        for cc in g++ clang++; do
            command -v $cc >/dev/null || continue
            for std in $first c++20; do
                # shellcheck disable=SC2086
                try $cc -std=$std $warn $flags "$work/a.cc"
            done
        done
    done
}

sample=no
if [ "${1-}" = sample ]; then
    sample=yes
    shift
fi
if [ "${1-}" = alone ]; then
    alone "$2"
    echo $count
    exit
fi
[ $sample = no ] || set -- sample
printf '%s\n' include/*.h | xargs -n 1 -P "$(nproc)" ci/headers.sh "$@" alone >"$work/counts"
count=$(awk '{ n += $1 } END { print n }' "$work/counts")

# Another header, such as Open MPI's mpi.h, may define some of our names first, with other values,
# and may mistake the compiler for another one.
{
    echo '#define PLATFORM_COMPILER_PGI 1'
    echo '#define PLATFORM_COMPILER_PGI_C 1'
    echo '#define PLATFORM_COMPILER_PGI_CXX 1'
    for name in $(grep -oE '^#define PLATFORM_[A-Z]+_(VERSION|FAMILY|ID)[A-Z_]*' include/gasnet_platform.h | cut -d' ' -f2 | sort -u); do
        echo "#define $name (-7)"
    done
    cat <<'END'
#include <gasnet.h>
#if PLATFORM_COMPILER_VERSION < 0 || !PLATFORM_COMPILER_VERSION_GE(1, 0, 0) || \
    defined(PLATFORM_COMPILER_PGI) || defined(PLATFORM_COMPILER_PGI_C) || defined(PLATFORM_COMPILER_PGI_CXX)
#error theirs
#endif
END
} >"$work/a.c"
grep -q 'define PLATFORM_COMPILER_VERSION (-7)' "$work/a.c"
cp "$work/a.c" "$work/a.cc"
# shellcheck disable=SC2086
try gcc -std=c99 $warn -DGASNET_PAR "$work/a.c"
# shellcheck disable=SC2086
try g++ -std=c++98 $warn -DGASNET_PAR "$work/a.cc"

# Nothing is declared twice, and the halves of a word are joined without sign extension.
cat >"$work/a.c" <<'END'
#include <gasnet.h>
#include <gasnet_vis.h>
#include <gasnet_tools.h>
typedef char word[GASNETI_MAKEWORD(1, (int)-1) == 0x1ffffffffu ? 1 : -1];
typedef char halves[GASNETI_HIWORD(0x1ffffffffu) == 1 && GASNETI_LOWORD(0x1ffffffffu) == 0xffffffffu ? 1 : -1];
END
# shellcheck disable=SC2086
try gcc -std=c99 $warn -Wredundant-decls -DGASNET_PAR "$work/a.c"

# gasnet_fwd.h alone has the types that its specification lists, and those of a team's members.
cat >"$work/a.c" <<'END'
#include <gasnet_fwd.h>
typedef struct {
  gex_Rank_t rank;
  gex_EP_Index_t index;
  gex_Addr_t addr;
  gex_Event_t event;
  gex_Flags_t flags;
  gex_DT_t dt;
  gex_OP_t op;
  gex_EP_Capabilities_t capabilities;
  gex_EP_Location_t location;
} all_types;
END
cp "$work/a.c" "$work/a.cc"
# shellcheck disable=SC2086
try gcc -std=c99 $warn "$work/a.c"
# shellcheck disable=SC2086
try g++ -std=c++98 $warn "$work/a.cc"

# Both interfaces in one object, in either order, share handles and tokens.
for order in "gasnet gasnetex" "gasnetex gasnet"; do
    for header in $order; do echo "#include <$header.h>"; done >"$work/a.c"
    cat >>"$work/a.c" <<'END'
#include <gasnet_tools.h>
int reply(gasnet_token_t token, gex_Token_t same);
int reply(gasnet_token_t token, gex_Token_t same) {
  return gex_AM_ReplyShort(token, 200, 0, 1, 2) + gasnet_AMReplyShort1(same, 200, 1);
}
void put(gex_TM_t tm, void *to);
void put(gex_TM_t tm, void *to) {
  gasnet_handle_t handle = gex_RMA_PutNB(tm, 0, to, to, 0, GEX_EVENT_NOW, 0);
  gex_Event_t event = gasnet_put_nb(0, to, to, 0);
  gasnet_wait_syncnb(event);
  gex_Event_Wait(handle);
}
END
    cp "$work/a.c" "$work/a.cc"
    for mode in SEQ PAR; do
        # shellcheck disable=SC2086
        try gcc -std=c99 $warn -DGASNET_$mode "$work/a.c"
        # shellcheck disable=SC2086
        try g++ -std=c++11 $warn -DGASNET_$mode "$work/a.cc"
    done
done

# The names of C++ functions that take handles and tokens are the same in all objects.
for headers in gasnet gasnetex "gasnet gasnetex" "gasnetex gasnet"; do
    # shellcheck disable=SC2086
    printf '#include <%s.h>\n' $headers >"$work/a.cc"
    case $headers in
        gasnet*gasnet) types="gasnet_handle_t, gex_Token_t" ;;
        gasnet) types="gasnet_handle_t, gasnet_token_t" ;;
        *) types="gex_Event_t, gex_Token_t" ;;
    esac
    echo "void named($types) {}" >>"$work/a.cc"
    try g++ -std=c++11 -DGASNET_PAR -Iinclude -c "$work/a.cc" -o "$work/a.o"
    nm "$work/a.o" | grep named | cut -d' ' -f2-
done | LC_ALL=C sort -u >"$work/named"
if [ "$(wc -l <"$work/named")" != 1 ]; then
    echo "ci/headers.sh: types depend on the headers that an object includes:" >&2
    cat "$work/named" >&2
    exit 1
fi

# With GASNET_WITH_EX, gasnet.h has GASNet-EX and the tools, whichever header comes first. The
# release is that of GASNet-EX then, and that of GASNet-1 otherwise.
for first in gasnet gasnet_fwd gasnetex gasnet_coll gasnet_vis; do
    cat >"$work/a.c" <<END
#include <$first.h>
#include <gasnet.h>
#if defined(GASNET_WITH_EX) != (GASNET_RELEASE_VERSION_MAJOR > 2000)
#error release
#endif
#ifdef GASNET_WITH_EX
char *setting(gex_TM_t tm, gex_AM_SrcDesc_t desc, const char *name);
char *setting(gex_TM_t tm, gex_AM_SrcDesc_t desc, const char *name) {
  return tm && desc ? gasnett_getenv(name) : NULL;
}
#endif
int wait(gasnet_handle_t handle);
int wait(gasnet_handle_t handle) { return gasnet_try_syncnb(handle); }
END
    cp "$work/a.c" "$work/a.cc"
    # shellcheck disable=SC2086
    try gcc -std=c99 $warn -DGASNET_PAR -DGASNET_WITH_EX "$work/a.c"
    # shellcheck disable=SC2086
    try g++ -std=c++11 $warn -DGASNET_SEQ -DGASNET_WITH_EX "$work/a.cc"
    [ "$first" = gasnetex ] && continue
    # shellcheck disable=SC2086
    try g++ -std=c++98 $warn -DGASNET_PAR "$work/a.cc"
done

# The string of the configuration in an object names the release and specification of its header.
printf '#include <gasnetex.h>\nconst char *config(void);\nconst char *config(void) { return GASNET_CONFIG_STRING; }\n' >"$work/a.c"
try gcc -std=c99 -DGASNET_PAR -Iinclude -c "$work/a.c" -o "$work/a.o"
for text in '[$]GASNetConfig: (client) ' ''; do
    if ! strings "$work/a.o" | grep -q "^${text}RELEASE=2025.8.0,SPEC=0.19,"; then
        echo "ci/headers.sh: the object has no ${text}RELEASE=2025.8.0,SPEC=0.19" >&2
        exit 1
    fi
done

# gasnet_tools.h after gasnetex.h alone.
printf '#include <gasnetex.h>\n#include <gasnet_tools.h>\ntypedef int not_empty;\n' >"$work/a.c"
cp "$work/a.c" "$work/a.cc"
# shellcheck disable=SC2086
try gcc -std=c99 $warn -DGASNET_PAR "$work/a.c"
# shellcheck disable=SC2086
try g++ -std=c++11 $warn -DGASNET_SEQ "$work/a.cc"

# In C++ each call may be qualified, as ::gasnet_AMPoll(), whether it is a function or a macro. Its
# arguments depend on a type here, so that only the name is looked up.
qualified() { # language, includes
    printf '#include <%s.h>\n' $2 >"$work/a.cc"
    g++ -std="$1" -DGASNET_PAR -Iinclude -dM -E "$work/a.cc" |
        sed -nE 's/^#define ((gasnet|gex)_[A-Za-z0-9_]+)\(([^)]*)\) .*/\1 \3/p' | LC_ALL=C sort |
        awk '{ name = $1; $1 = ""; n = /\.\.\./ ? 9 : split($0, parameters, ",")
            for (list = ""; n > 0; n--) list = list (list == "" ? "t" : ", t")
            print "template <class T> void q_" name "(T t) { (void)t; (void)::" name "(" list "); }" }' >"$work/calls"
    [ "$(wc -l <"$work/calls")" -gt 200 ]
    cat "$work/calls" >>"$work/a.cc"
    for cc in g++ clang++; do
        command -v $cc >/dev/null || continue
        # shellcheck disable=SC2086
        try $cc -std="$1" $warn -DGASNET_PAR "$work/a.cc"
    done
}
qualified c++98 "gasnet gasnet_vis gasnet_coll gasnet_tools"
qualified c++11 "gasnet gasnet_vis gasnet_coll gasnetex gasnet_ratomic gasnet_tools"
qualified c++20 "gasnet gasnet_vis gasnet_coll gasnetex gasnet_ratomic gasnet_tools"

# Each function that the trace records has a macro that passes the line of the call.
printf '#include <%s.h>\n' gasnet gasnet_vis gasnet_coll gasnetex >"$work/a.c"
gcc -std=c99 -DGASNET_PAR -Iinclude -dM -E "$work/a.c" | sed -nE 's/^#define (g[a-zA-Z0-9_]+)\(.*/\1/p' |
    LC_ALL=C sort >"$work/macros"
find src/capi src/runtime -name '*.rs' -exec cat {} + | tr '\n' ' ' |
    grep -oE '(watch!|span!|Probe::new)\([^"()]*"(gasnet|gex)_[A-Za-z_]+"' | sed -E 's/.*"(.*)"/\1/' |
    LC_ALL=C sort -u >"$work/traced"
# The lock functions of both interfaces are recorded by one name; a wait is a macro only.
sed -i 's/^gasnet_hsl_\(.\)\(.*\)/&\ngex_HSL_\u\1\2/; /^gasnet_blockuntil$/d' "$work/traced"
[ "$(wc -l <"$work/traced")" -gt 70 ]
if LC_ALL=C sort "$work/traced" | comm -23 - "$work/macros" | grep .; then
    echo "ci/headers.sh: these have no macro with GASNETI_HERE" >&2
    exit 1
fi

# The inline paths for other sizes cause no warning in a client.
cat >"$work/a.c" <<'END'
#include <gasnet.h>
int main(void) {
  int from = 1, to = 2;
  gasnet_put(0, &to, &from, sizeof from);
  gasnet_get_bulk(&to, 0, &from, sizeof to);
  gasnet_wait_syncnb(gasnet_get_nb(&to, 0, &from, sizeof to));
  gasnet_memset(0, &to, 0, sizeof to);
  return (int)gasnet_get_val(0, &to, sizeof to);
}
END
for level in 0 g 1 2 3 s; do
    # Some warnings need code generation.
    # shellcheck disable=SC2086
    try gcc -std=c99 ${warn% -fsyntax-only} -O$level -DGASNET_PAR -c "$work/a.c" -o "$work/a.o"
done

# Objects of one mode link, with link-time optimisation too. The linker refuses a mixture, unless
# full link-time optimisation makes one object of all first.
printf '#include <gasnet.h>\nint main(void) { return 0; }\n' >"$work/a.c"
printf '#include <gasnet.h>\n' >"$work/b.c"
for cc in gcc "gcc -flto" clang "clang -flto" "clang -flto=thin"; do
    command -v "${cc%% *}" >/dev/null || continue
    for linker in bfd gold; do
        command -v ld.$linker >/dev/null || continue
        link="$cc -O2 -Iinclude -fuse-ld=$linker -o $work/linked"
        # Some installations of clang lack the linker's plugin for its optimisation.
        printf 'int main(void) { return 0; }\n' >"$work/empty.c"
        $link "$work/empty.c" 2>"$work/err" || continue
        for mode in PAR SEQ; do
            $cc -O2 -Iinclude -DGASNET_$mode -c "$work/b.c" -o "$work/$mode.o"
        done
        # shellcheck disable=SC2086
        try $link -DGASNET_PAR "$work/a.c" "$work/PAR.o"
        case $cc in *-flto) continue ;; esac
        if $link -DGASNET_PAR "$work/a.c" "$work/SEQ.o" 2>"$work/err" ||
            ! grep -q "multiple definition.*gasneti_thread_mode_differs" "$work/err"; then
            echo "ci/headers.sh: $link: SEQ and PAR were not refused:" >&2
            cat "$work/err" >&2
            exit 1
        fi
        count=$((count + 1))
    done
done

# A wait evaluates its argument once.
cat >"$work/a.c" <<'END'
#include <gasnetex.h>
#include <gasnet.h>
void waits(gasnet_handle_t *handles, gex_Event_t *events);
void waits(gasnet_handle_t *handles, gex_Event_t *events) {
  int i = 0;
  gasnet_wait_syncnb(handles[i++]);
  gasnet_wait_syncnb(handles[i++]);
  gex_Event_Wait(*events++);
  gex_Event_Wait(*events++);
}
END
cp "$work/a.c" "$work/a.cc"
for level in 0 2; do
    # shellcheck disable=SC2086
    try gcc -std=c99 ${warn% -fsyntax-only} -O$level -DGASNET_PAR -c "$work/a.c" -o "$work/a.o"
    # shellcheck disable=SC2086
    try g++ -std=c++11 ${warn% -fsyntax-only} -O$level -DGASNET_PAR -c "$work/a.cc" -o "$work/a.o"
done

refused() { # text expected, source, flags...
    text=$1
    printf '%b' "$2" >"$work/bad.c"
    shift 2
    if gcc -Iinclude -c -o "$work/bad.o" "$@" "$work/bad.c" 2>"$work/err"; then
        echo "ci/headers.sh: this should not compile with $*:" >&2
        cat "$work/bad.c" >&2
        exit 1
    fi
    if ! grep -q "$text" "$work/err"; then
        echo "ci/headers.sh: refused without saying '$text':" >&2
        cat "$work/err" >&2
        exit 1
    fi
    count=$((count + 1))
}
refused "warn_unused_result" '#include <gasnetex.h>\nvoid f() { gex_Coll_BarrierNB(0, 0); }\n' \
    -x c++ -std=c++11 -Werror=unused-result -DGASNET_SEQ
refused "warn_unused_result" '#include <gasnetex.h>\nvoid f(void) { gex_Coll_BarrierNB(0, 0); }\n' \
    -Werror=unused-result -DGASNET_SEQ
refused "exactly one of GASNET_SEQ" '#include <gasnet.h>\n'
refused "exactly one of GASNET_SEQ" '#include <gasnet.h>\n' -DGASNET_SEQ -DGASNET_PAR
refused "at most one of GASNET_SEGMENT" '#include <gasnet.h>\n' -DGASNET_SEQ -DGASNET_SEGMENT_FAST -DGASNET_SEGMENT_LARGE
refused "before gasnet_tools.h" '#include <gasnet_tools.h>\n#define GASNET_PAR 1\n#include <gasnet.h>\n'
refused "Include gasnet.h before gasnet_tools.h" '#include <gasnet_tools.h>\n' -DGASNET_PAR
refused "GASNETT_LITE_MODE" '#include <gasnet.h>\n#include <gasnet_tools.h>\n' -DGASNET_PAR -DGASNETT_LITE_MODE
echo "ci/headers.sh: $count compilations went as they should"
