#!/bin/sh
# Runs the functions that decode foreign bytes under libFuzzer and AddressSanitizer.
#   ci/fuzz.sh SECONDS [TARGET...]   each target for this many seconds; without a TARGET, all
#   ci/fuzz.sh merge [TARGET...]     adds the inputs found so far that reach new branches to the
#                                    committed corpus
# A target is a test whose name begins with fuzz_; fuzz/corpus/TARGET holds its inputs. Inputs that
# reach new branches are kept in soak/fuzz/TARGET, inputs that fail in soak/fuzz-failed. The
# sanitizer of the stable toolchain needs RUSTC_BOOTSTRAP. Ends with 77 if it does not build here.
set -eu
cd "$(dirname "$0")/.."
what=${1-}
[ -n "$what" ] || {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
shift
cargo=${CARGO:-cargo}
. ci/sanitizer-build.sh
instrumented address --cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0
programs=$(test_programs target/fuzz -p handshake -p portals3 -p gasnet --lib --bins) || exit $?

failed=
found=
for program in $programs; do
    for test in $("$program" --list 2>/dev/null | sed -n 's/: test$//p' | grep -E '(^|::)fuzz_'); do
        target=${test##*fuzz_}
        case " ${*:-$target} " in
        *" $target "*) ;;
        *) continue ;;
        esac
        found="$found $target"
        mkdir -p "soak/fuzz/$target" soak/fuzz-failed
        run="$program $test --exact --nocapture"
        if [ "$what" = merge ]; then
            args="-set_cover_merge=1 -use_counters=0 fuzz/corpus/$target soak/fuzz/$target"
        else
            args="-max_total_time=$what soak/fuzz/$target fuzz/corpus/$target"
        fi
        FUZZ_TARGET=$target
        # In a merge libFuzzer starts itself again, by a shell, with other arguments.
        FUZZ_PROGRAM="again() { FUZZ_ARGS=\"\$*\" $run; }; again"
        FUZZ_ARGS="-timeout=20 -max_len=4096 -print_final_stats=1 -artifact_prefix=soak/fuzz-failed/$target- $args"
        export FUZZ_TARGET FUZZ_ARGS FUZZ_PROGRAM
        # shellcheck disable=SC2086 # words
        if $run >"soak/fuzz/$target.log" 2>&1; then
            sed -n 's/^stat::number_of_executed_units: */'"$target"' runs: /p' "soak/fuzz/$target.log"
        else
            failed="$failed $target"
            echo "$target FAILED:"
            grep -v '^#[0-9]*[[:space:]]*\(NEW\|REDUCE\|pulse\|RELOAD\)' "soak/fuzz/$target.log" | tail -n 60
        fi
    done
done
[ -n "$found" ] || failed=" no target was found"
for target; do
    case " $found " in
    *" $target "*) ;;
    *)
        echo "no such target: $target" >&2
        failed="$failed $target"
        ;;
    esac
done
[ -z "$failed" ] || {
    echo "failed:$failed"
    exit 1
}
