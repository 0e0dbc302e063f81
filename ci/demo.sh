#!/bin/sh
# The demonstration of `make demo`, over a built tree. It runs testsmall as a job of two ranks,
# cross-mapped and through Portals. Then it runs every portable case of testexit as a job of
# two ranks, with its exit code.
set -eu
cd "$(dirname "$0")/.."
case $PWD in
*[[:space:]]*)
    echo "make demo: the path $PWD has a blank, so no program can be compiled against build/ there" >&2
    echo "  Build in a folder whose path has none." >&2
    exit 2
    ;;
esac
cc=${CC:-cc}
export PKG_CONFIG_PATH="$PWD/build/lib/pkgconfig"
run=build/bin/gasnetrun

mkdir -p build/demo
for name in testsmall testexit; do
    if command -v pkg-config >/dev/null 2>&1; then
        flags=$(pkg-config --cflags --libs gasnet-portals-seq)
    else
        flags="-D_GNU_SOURCE=1 -DGASNET_SEQ -I$PWD/build/include -L$PWD/build/lib -Wl,-rpath,$PWD/build/lib -lgasnet -lm"
    fi
    # shellcheck disable=SC2086 # a list of flags
    $cc -O2 -Icapi-tests "capi-tests/$name.c" -o "build/demo/$name" $flags
done

echo "== testsmall, 2 ranks, cross-mapped"
timeout 120 $run -n 2 build/demo/testsmall 10000 2048
echo
echo "== testsmall, 2 ranks, everything through Portals (GASNET_SUPERNODE_MAXSIZE=1)"
GASNET_SUPERNODE_MAXSIZE=1 timeout 120 $run -n 2 build/demo/testsmall 10000 2048
echo
echo "== testexit, 2 ranks: exit code of each case, which is its number"
wrong=0
for number in 1 2 3 4 5 6 7 8 9 10 11 12 13; do
    code=0
    timeout 60 $run -n 2 build/demo/testexit $number >build/demo/testexit.out 2>&1 || code=$?
    if [ $code = $number ]; then
        echo "testexit $number: exit code $code"
    else
        echo "testexit $number: exit code $code, WRONG"
        sed 's/^/    /' build/demo/testexit.out
        wrong=$((wrong + 1))
    fi
done
[ $wrong = 0 ]
