#!/bin/sh
# All tests, with a sample of the large matrices.
# SEED chooses the sample. Without SEED, the commit chooses: a repeated run of one commit repeats
# its sample, and the next commit meets other cases.
# Each script of ci/ counts as one test, as does each Rust test and each case of the C programs.
# Each step prints its minutes. The last line is the sum: `N passed, N failed, N skipped`.
# On a terminal, a line on standard error says which step runs. It also says how long the rest
# takes if the steps take as long as the last time.
set -u
if [ -t 2 ]; then exec 3>&2; fi
exec 2>&1
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
if [ -z "${SEED-}" ]; then
    commit=$(git rev-parse --short=7 HEAD 2>/dev/null) || {
        commit=1
        echo "git knows no commit here, which would choose the sample"
    }
    SEED=$((0x$commit))
fi
export SEED
log=build/check
mkdir -p $log
# What the steps took the last time: names and seconds.
before=$log/.seconds
# The launchers are three, and as many run next to other steps.
all_steps=$((4 + $(grep -c '^ *\(if .*then \)\?\(step\|tests\) ' "$0")))
done_steps=0

# progress NAME: shows that a step begins.
progress() {
    done_steps=$((done_steps + 1))
    { true >&3; } 2>/dev/null || return 0
    left=$(awk 'FILENAME == ARGV[1] { done[$1] = 1; next } !($1 in done) { n += $2 } END { if (n) print int(n / 60 + 0.5) }' \
        "$before.new" "$before" 2>/dev/null)
    printf '\r\033[K[%s of %s%s] %s' $done_steps "$all_steps" "${left:+, about $left min left}" "$1" >&3
}

# ended NAME SECONDS: it has ended.
ended() {
    { printf '\r\033[K' >&3; } 2>/dev/null
    echo "$1 $2" >>"$before.new"
}
. ci/steps.sh

# result NAME: waits for what ci/check-background.sh runs; prints what it has printed, and returns
# its exit code.
result() {
    until [ -e "$log/$1.code" ] || ! kill -0 $background 2>/dev/null; do sleep 1; done
    cat "$log/$1.background"
    return "$(cat "$log/$1.code" || echo 1)"
}

echo "SEED=$SEED"
: >"$before.new"
start=$(date +%s)
step tools ci/tools.sh pkg-config +cmake +gfortran +strace +qemu-user:qemu-x86_64 +python3-pip:pip3
rm -f "$log"/*.code "$log"/*.background
# One cross-build, by SEED: the next seed takes the other. One tree over a libportals alone: seven
# seeds in a row, which between them run all cases, take the same. What an earlier check has left
# is out of date.
target=crayxt-cnl
[ $((SEED % 2)) = 0 ] || target=x86_64-old
tree=build-contrary
[ $((SEED / 7 % 2)) = 0 ] || tree=build-lightweight
rm -rf build-contrary/lib build-lightweight/lib
background=
trap '[ -z "$background" ] || kill -- "-$background" 2>/dev/null' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
setsid ci/check-background.sh $log $tree 3>&- &
background=$!
step build ci/build.sh build
step fmt ci/fmt.sh
step names ci/names.sh
step name-table ci/name-table.sh
step names-ex ci/names-ex.sh
step speed-table ci/speed-table.sh
step layers ci/layers.sh
step names-once ci/names-once.sh
step words ci/words.sh
step examples ci/examples.sh
step imports ci/imports.sh
step links ci/links.sh
step workflows ci/workflows.sh
step abi ci/abi.sh
step abi-release ci/abi.sh --release
step api ci/api.sh
step cbindgen ci/cbindgen.sh
step instructions ci/instructions.sh
step cross-refusals ci/cross/refusals.sh
# The same packages each time. With fewer, cargo chooses other features of a crate, and compiles
# all that uses it again.
units="--workspace --exclude capi-tests"
# Repetitions and random lists of operations of crate portals3: the soak has more.
tests unit env PORTALS3_STRESS=1 PROPTEST_CASES=40 timeout 1200 $cargo test --quiet --no-fail-fast $units
tests pauses timeout 600 $cargo test --quiet -p portals3 --features faults --test pauses
for launcher in hydra openmpi slurm; do
    tests "$launcher" ci/launchers.sh $launcher timeout 600 \
        $cargo test --quiet $units --test launchers -- --ignored --test-threads 1 "$launcher::"
done
step build-faults result build-faults
step build-libportals result build-libportals
if [ $code = 0 ]; then
    step $tree result $tree
fi
tests "cross-$target" timeout -k 5 900 ci/cross-check.sh $target sample
tests exits ci/launchers.sh some timeout 600 \
    $cargo test --quiet -p capi-tests --test programs -- --color never testexit --skip gasnetrun --skip pshm_nodes \
    --skip fault
tests runner timeout 600 $cargo test --quiet -p capi-tests --lib
tests programs timeout 1800 $cargo test --quiet -p capi-tests --test programs -- --color never
for name in clippy doc headers; do
    step $name result $name
done
mv "$before.new" "$before"
echo "SEED=$SEED repeats this sample; logs are in $log; $((($(date +%s) - start) / 60)) minutes in all"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
