#!/bin/sh
# Uses every name of ci/names.tsv in the shape that the table gives. It does so as C99 and
# C++98, in every thread mode, after gasnet.h and with gasnet_tools.h alone. Links them, and
# compares with the exports of the shared library. Prints how many names are usable, and the
# reasons why others are not.
#   ci/name-table.sh [table]
set -eu
cd "$(dirname "$0")/.."
table=${1:-ci/names.tsv}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
lib=build/lib/libgasnet.so

# program tools|gasnet [pending]: prints a source that uses each name of that header. The names
# are those that exist, or with `pending` those that are absent for a reason. #line directives give
# each use its name.
program() {
    cat <<'HEAD'
#ifdef WITH_GASNET
#include <gasnet.h>
#include <gasnet_vis.h>
#endif
#include <gasnet_tools.h>
static int i;
static unsigned u;
static uint32_t u32;
static uint64_t u64;
static int64_t i64;
static size_t n;
static double d;
static void *p;
static const char *s;
static char buf[4096];
static volatile int flag;
static gasnett_mutex_t mutex;
static gasnett_cond_t cond;
static gasnett_rwlock_t rwlock;
static gasnett_sighandlerfn_t handler;
GASNETT_THREADKEY_DEFINE(names_key);
#ifdef WITH_GASNET
static gasnet_token_t token;
static gasnet_handle_t h;
static gasnet_valget_handle_t v;
static gasnet_hsl_t hsl;
static gasnet_seginfo_t seg;
static gasnet_nodeinfo_t info;
static gasnet_memvec_t vec[1];
static void *addrs[1];
static size_t strides[1], counts[2];
#endif
HEAD
    awk -F '\t' -v header="$1" -v pending="${2:+1}" '
        /^#/ || (header == "tools" && $2 != "tools") || (pending != "") != ($5 != "") { next }
        function place(line) { printf "#line %d \"%s\"\n", line, $1 }
        function macro() { printf "#ifndef %s\n#error not a macro\n#endif\n", $1 }
        # Each row has its own variables.
        function own() { for (k = 1; k <= 4; k++) printf "#define %s %s_%d\n", small[k], small[k], NR }
        function disown() { for (k = 1; k <= 4; k++) printf "#undef %s\n", small[k] }
        BEGIN { split("f v x key", small, " ") }
        { place(1) }
        $3 == "integer" {
            macro()
            printf "#if (%s) + 1 == (%s)\n#error no number\n#endif\n", $1, $1
            printf "extern char row_%d[1 + ((%s) & 1)];\n", NR, $1
        }
        $3 == "switch" { printf "#if %s\n#endif\n", $1 }
        $3 == "undefined" { printf "#ifdef %s\n#error must not be defined\n#endif\n", $1 }
        $3 == "family" { printf "#ifndef %s\n#error not a macro\n#endif\n", $4 }
        $3 == "literal" { macro(); printf "extern const char row_%d[]; const char row_%d[] = \"(\" %s \")\";\n", NR, NR, $1 }
        $3 == "token" {
            macro()
            printf "typedef char row_%d[sizeof(_STRINGIFY(%s)) > 1 ? 1 : -1];\n", NR, $1
        }
        $3 == "constant" || $3 == "initialiser" {
            own(); place(1); printf "static %s;\n", $4; disown()
        }
        $3 == "declaration" { own(); place(1); print $4; disown() }
        $3 == "type" { printf "extern %s row_%d; typedef char size_%d[sizeof(%s)];\n", $1, NR, NR, $1 }
        $3 == "call" || $3 == "function" || $3 == "data" {
            printf "void row_%d(void); void row_%d(void) { %s; }\n", NR, NR, $4
        }
    ' "$table"
    echo 'int main(void) { return 0; }'
}

program gasnet >"$work/gasnet.c"
program tools >"$work/tools.c"
cp "$work/gasnet.c" "$work/gasnet.cc"
cp "$work/tools.c" "$work/tools.cc"
: >"$work/failed"
count=0

# try SOURCE COMPILER...: with -ftrack-macro-expansion=0, gcc reports the row, not the inside of
# a macro.
try() {
    source=$1
    shift
    count=$((count + 1))
    if ! "$@" -w -Iinclude "$source" >"$work/out" 2>&1; then
        sed -n 's/^\([A-Za-z0-9_]*\):[0-9:]* \(fatal \)*error: \(.*\)/\1: \3/p' "$work/out" | sed "s|\$| [$*]|" >>"$work/failed"
        if ! grep -q '^[A-Za-z0-9_]*:[0-9:]* .*error: ' "$work/out"; then
            sed 's/^/?: /' "$work/out" | head -n 20 >>"$work/failed"
        fi
    fi
}

settings=$(awk -F '\t' '$3 == "setting" && $1 !~ /LITE_MODE|THREAD_SAFE|PLEASE_INLINE/ { printf " -D%s=0", $1 }' "$table")
gcc="gcc -ftrack-macro-expansion=0 -fmax-errors=0 -fsyntax-only"
gxx="g++ -ftrack-macro-expansion=0 -fmax-errors=0 -fsyntax-only"
for mode in SEQ PARSYNC PAR; do
    try "$work/gasnet.c" $gcc -std=c99 -DWITH_GASNET -DGASNET_$mode
done
try "$work/gasnet.c" $gcc -std=gnu17 -DWITH_GASNET -DGASNET_PAR -DGASNET_SEGMENT_LARGE -DGASNET_DEBUG
try "$work/gasnet.cc" $gxx -std=c++98 -DWITH_GASNET -DGASNET_PAR
try "$work/gasnet.cc" $gxx -std=c++17 -DWITH_GASNET -DGASNET_SEQ
# shellcheck disable=SC2086 # a list of flags
try "$work/gasnet.c" $gcc -std=gnu17 -DWITH_GASNET -DGASNET_SEQ $settings '-DGASNETT_USE_PLEASE_INLINE(f)=static'
try "$work/tools.c" $gcc -std=c99
try "$work/tools.c" $gcc -std=c99 -DGASNETT_THREAD_SAFE
try "$work/tools.cc" $gxx -std=c++98
if command -v clang >/dev/null; then
    try "$work/gasnet.c" clang -fsyntax-only -std=c99 -DWITH_GASNET -DGASNET_PAR
    try "$work/gasnet.cc" clang++ -fsyntax-only -std=c++98 -DWITH_GASNET -DGASNET_PAR
fi
cat >"$work/lite.c" <<'END'
#include <gasnet_tools.h>
uint64_t GASNETT_NEVER_INLINE(f, f(const char *p));
uint64_t f(const char *p) {
  gasnett_local_mb();
  gasnett_assume(p);
  return *p ? gasnett_ticks_now() : (uint64_t)gasnett_nsleep(GASNETT_CACHE_LINE_BYTES);
}
GASNETT_IDENT(client, "$Client: " _STRINGIFY(GASNETT_THREAD_MODEL) " $");
GASNETT_IDENT(tools, "$Tools: " GASNETT_CONFIG_STRING " of " GASNETT_SYSTEM_TUPLE " $");
END
cp "$work/lite.c" "$work/lite.cc"
try "$work/lite.c" gcc -fsyntax-only -DGASNETT_LITE_MODE
try "$work/lite.cc" g++ -fsyntax-only -std=c++98 -DGASNETT_LITE_MODE

# Names with a reason for their absence that exist nevertheless: they cause no error, or are
# exported.
pending=$(awk -F '\t' '!/^#/ && $5 != "" { n++ } END { print n + 0 }' "$table")
program gasnet pending >"$work/pending.c"
$gcc -w -std=gnu17 -DWITH_GASNET -DGASNET_PAR -Iinclude "$work/pending.c" >"$work/out" 2>&1 || true
sed -n 's/^\([A-Za-z0-9_]*\):[0-9:]* \(fatal \)*error: .*/\1/p' "$work/out" | sort -u >"$work/missing"
: >"$work/exported"
if [ -e $lib ]; then
    try "$work/gasnet.c" gcc -DWITH_GASNET -DGASNET_PAR -o "$work/program" -Lbuild/lib -Wl,--no-as-needed -lgasnet
    ${NM:-nm} -D --defined-only --without-symbol-versions $lib | awk '{ print $3 }' | sort >"$work/exported"
    awk -F '\t' '$5 == "" && ($3 == "function" || $3 == "data") { print $1 }' "$table" | sort |
        comm -23 - "$work/exported" | sed 's/$/: not exported/' >>"$work/failed"
    awk -F '\t' '$5 != "" && $3 == "function" { print $1 }' "$table" | sort | comm -23 - "$work/exported" \
        >>"$work/missing"
    awk -F '\t' '!/^#/ { print $1 }' "$table" ci/names-ex.tsv | sort -u >"$work/known"
    grep '^gasnett*_' "$work/exported" | comm -23 - "$work/known" |
        sed 's/$/: exported, but not in the table/' >>"$work/failed"
fi
sort -u "$work/missing" -o "$work/missing"

if [ -s "$work/failed" ]; then
    echo "ci/name-table.sh: names that cannot be used as $table says:" >&2
    # One line per name.
    sort -t: -k1,1 -u "$work/failed" | cut -c 1-200 >&2
    exit 1
fi
awk -F '\t' -v count=$count -v missing="$work/missing" -v pending="$pending" '
    BEGIN { while ((getline name <missing) > 0) gone[name] = 1 }
    /^#/ { next }
    { all++ }
    $5 != "" && !($1 in gone) { late++; next }
    $3 == "absent" || $5 != "" { absent[$3 == "absent" ? $4 : $5]++; without++ }
    END {
        printf "ci/name-table.sh: %d names, %d usable in their shape in %d compilations, %d absent:\n", all, all - without, count, without
        for (reason in absent) printf "    %d: %s\n", absent[reason], reason
        if (late > 0) printf "    (%d of the %d names with a reason exist: delete the reason from the table)\n", late, pending
    }' "$table"
