#!/bin/sh
# All tests, with a sample of the large matrices that SEED chooses: without one the commit does, so that whoever repeats a
# commit repeats its sample, and the next commit meets other cases. Each script of ci/ counts as one test, each Rust test
# and each case of the C programs as one. The last line is the sum: `N passed, N failed, N skipped`.
set -u
exec 2>&1
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
SEED=${SEED:-$((0x$(git rev-parse --short=7 HEAD 2>/dev/null || echo 1)))}
export SEED
log=build/check
mkdir -p $log
passed=0
failed=0
skipped=0

# step NAME COMMAND...: one test.
step() {
    name=$1
    shift
    if "$@" >"$log/$name.log" 2>&1; then
        passed=$((passed + 1))
        echo "ok      $name"
    else
        failed=$((failed + 1))
        echo "FAILED  $name"
        sed 's/^/    /' "$log/$name.log" | tail -n 60
    fi
}

skip() {
    skipped=$((skipped + 1))
    echo "skipped $1 ($2)"
}

# tests NAME COMMAND...: Rust tests; adds up what the `test result:` lines say. A command that fails without such a line
# is one failure, one that ends with 77 is skipped; so is each case of which a line says `skipped NAME: why`.
tests() {
    name=$1
    shift
    "$@" >"$log/$name.log" 2>&1
    code=$?
    if [ $code = 77 ]; then
        skip "$name" "$(tail -n 1 "$log/$name.log")"
        return
    fi
    p=$(sum passed "$log/$name.log")
    f=$(sum failed "$log/$name.log")
    i=$(sum ignored "$log/$name.log")
    if [ $code != 0 ] && [ "$f" = 0 ]; then
        f=1
    fi
    passed=$((passed + p))
    failed=$((failed + f))
    grep '^skipped ' "$log/$name.log"
    skipped=$((skipped + $(grep -c '^skipped ' "$log/$name.log")))
    if [ "$f" = 0 ]; then
        echo "ok      $name ($p passed, $i not in this sample or ignored)"
    else
        echo "FAILED  $name ($p passed, $f failed, $i not in this sample or ignored)"
        if grep -q '^failures:' "$log/$name.log"; then
            sed -n '/^failures:/,/^test result/p' "$log/$name.log" | head -n 400
        else
            tail -n 60 "$log/$name.log"
        fi
    fi
}

sum() {
    sed -n "s/^test result:.* \([0-9][0-9]*\) $1.*/\1/p" "$2" | awk '{ n += $1 } END { print n + 0 }'
}

echo "SEED=$SEED"
step tools ci/tools.sh pkg-config +cmake +gfortran
step build ci/build.sh build
step build-faults ci/build.sh build-faults
# Over a libportals: only where libclang makes the binding.
if ci/build.sh build-libportals >$log/build-libportals.log 2>&1; then
    passed=$((passed + 1))
    echo "ok      build-libportals"
    step build-contrary ci/build.sh build-contrary
elif grep -q 'libclang is missing' $log/build-libportals.log; then
    skip build-libportals "libclang is missing: Debian package libclang-dev"
else
    failed=$((failed + 1))
    echo "FAILED  build-libportals"
    sed 's/^/    /' $log/build-libportals.log | tail -n 60
fi
if $cargo fmt --version >/dev/null 2>&1; then step fmt ci/fmt.sh; else skip fmt "rustfmt is not installed"; fi
if $cargo clippy --version >/dev/null 2>&1; then step clippy ci/clippy.sh; else skip clippy "clippy is not installed"; fi
step doc ci/doc.sh
step headers ci/headers.sh
step names ci/names.sh
step name-table ci/name-table.sh
if command -v cbindgen >/dev/null 2>&1; then
    step cbindgen ci/cbindgen.sh
else
    skip cbindgen "cbindgen is not installed"
fi
if command -v valgrind >/dev/null 2>&1; then
    step instructions ci/instructions.sh
else
    skip instructions "valgrind is not installed"
fi
tests unit timeout 1200 $cargo test --quiet --no-fail-fast --workspace --exclude capi-tests
tests pauses timeout 600 $cargo test --quiet -p portals3 --features faults --test pauses
for launcher in hydra openmpi slurm; do
    tests "$launcher" ci/launchers.sh $launcher timeout 600 \
        $cargo test --quiet --test launchers -- --ignored --test-threads 1 "$launcher::"
done
tests exits ci/launchers.sh any timeout 600 \
    $cargo test --quiet -p capi-tests --test programs -- --color never testexit --skip gasnetrun --skip pshm_nodes \
    --skip fault
tests runner timeout 600 $cargo test --quiet -p capi-tests --lib
tests programs timeout 1800 $cargo test --quiet -p capi-tests --test programs -- --color never
echo "SEED=$SEED repeats this sample; logs are in $log"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
