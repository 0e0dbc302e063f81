#!/bin/sh
# Compiles each program of examples/ as a newcomer does, with its Makefile. Runs it as a job of
# four processes on both paths, and compares what it prints. mixed_mpi runs once per MPI that is
# installed; without one it is skipped. The hello world of README.md must be examples/hello.c.
#   ci/examples.sh [built tree]
set -eu
cd "$(dirname "$0")/.."
tree=${1:-$PWD/build}
out=$PWD/build/examples
mkdir -p "$out"
cp examples/*.c examples/Makefile "$out"

fail() {
    echo "FAILED: $*"
    exit 1
}

# The indented block of README.md from the #include to the closing brace.
awk '/^    #include <gasnet.h>$/ { on = 1 } on { sub(/^    /, ""); print } on && /^}$/ { exit }' README.md |
    diff - examples/hello.c || fail "README.md shows another hello.c than examples/"

# run NAME COMMAND...: what it prints, in sorted order, must be the standard input.
run() {
    name=$1
    shift
    cat >"$out/expected"
    code=0
    timeout 120 "$@" >"$out/printed" 2>"$out/errors" || code=$?
    sort "$out/printed" | diff "$out/expected" - && [ $code = 0 ] || {
        cat "$out/errors"
        fail "$name: exit code $code, output as above ($*)"
    }
    echo "ok $name"
}

make -s -C "$out" PREFIX="$tree" clean
make -s -C "$out" PREFIX="$tree" || fail "compilation"
for supernode in 0 1; do
    export GASNET_SUPERNODE_MAXSIZE=$supernode
    start="$tree/bin/gasnetrun -n 4 $out"
    run hello $start/hello <<'END'
Hello from rank 0 of 4
Hello from rank 1 of 4
Hello from rank 2 of 4
Hello from rank 3 of 4
END
    run ring $start/ring <<'END'
1000 rounds of 4 ranks: the token is 6000, expected 6000
END
    run stencil $start/stencil <<'END'
4 ranks of 100 cells, 5000 steps: heat 1000.000000, expected 1000.000000
END
    run threads $start/threads <<'END'
rank 0 of 4 served 4000 requests of 4 threads
rank 1 of 4 served 4000 requests of 4 threads
rank 2 of 4 served 4000 requests of 4 threads
rank 3 of 4 served 4000 requests of 4 threads
END
done
unset GASNET_SUPERNODE_MAXSIZE

# The launchers of both are as strict about root and CPUs as they may be; here it is only a test.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
mpis=0
for mpi in mpich:mpiexec.hydra openmpi:mpirun.openmpi; do
    compiler=mpicc.${mpi%%:*}
    launcher=${mpi#*:}
    if command -v "$compiler" >/dev/null 2>&1 && command -v "$launcher" >/dev/null 2>&1; then
        mpis=$((mpis + 1))
        rm -f "$out/mixed_mpi"
        make -s -C "$out" PREFIX="$tree" MPICC="$compiler" mixed_mpi || fail "compilation with $compiler"
        run "mixed_mpi, ${mpi%%:*}" "$launcher" -n 4 "$out/mixed_mpi" <<'END'
4 ranks: the sum is 6, expected 6
END
    fi
done
[ $mpis != 0 ] || echo "skipped mixed_mpi: needs the Debian package libmpich-dev or libopenmpi-dev"
