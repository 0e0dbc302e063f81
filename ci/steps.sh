# Sourced by scripts that run many checks, with $log set, the folder for their output. Adds up
# $passed, $failed and $skipped. Each check prints a line with its seconds; one that fails also
# prints the end of its output.
passed=0
failed=0
skipped=0

# timed NAME COMMAND...: runs the command into its log, $output; sets $code to its exit code.
timed() {
    name=$1
    shift
    output=$log/$(echo "$name" | tr -c 'A-Za-z0-9._\n-' _).log
    began=$(date +%s)
    "$@" >"$output" 2>&1
    code=$?
    took=$(printf '%4d s' $(($(date +%s) - began)))
}

# skip NAME WHY: one check that cannot run here.
skip() {
    skipped=$((skipped + 1))
    echo "skipped $1: $2"
}

# step NAME COMMAND...: one check. A command that ends with 77 is skipped; its last line says why.
# What a command says in a line `summary: ...` is added to its line.
step() {
    timed "$@"
    case $code in
    0)
        passed=$((passed + 1))
        echo "ok      $took  $name$(sed -n 's/^summary\(: .*\)/\1/p' "$output")"
        ;;
    77) skip "$name" "$(tail -n 1 "$output")" ;;
    *)
        failed=$((failed + 1))
        echo "FAILED  $took  $name"
        sed 's/^/    /' "$output" | tail -n 60
        ;;
    esac
}

# sum WORD: adds up the numbers before this word in the `test result:` lines of the output.
sum() {
    sed -n "s/^test result:.* \([0-9][0-9]*\) $1.*/\1/p" "$output" | awk '{ n += $1 } END { print n + 0 }'
}

# tests NAME COMMAND...: many checks, whose numbers are in `test result:` lines. A command that
# fails without such a line is one failure. One that ends with 77 is skipped. A line
# `skipped NAME: why` is one skipped case.
tests() {
    timed "$@"
    if [ $code = 77 ]; then
        skip "$name" "$(tail -n 1 "$output")"
        return
    fi
    p=$(sum passed)
    f=$(sum failed)
    i=$(sum ignored)
    if [ $code != 0 ] && [ "$f" = 0 ]; then
        f=1
    fi
    passed=$((passed + p))
    failed=$((failed + f))
    grep '^skipped ' "$output"
    skipped=$((skipped + $(grep -c '^skipped ' "$output")))
    if [ "$f" = 0 ]; then
        echo "ok      $took  $name ($p passed, $i not in this sample or ignored)"
    else
        echo "FAILED  $took  $name ($p passed, $f failed, $i not in this sample or ignored)"
        if grep -q '^failures:' "$output"; then
            sed -n '/^failures:/,/^test result/p' "$output" | head -n 400
        else
            tail -n 60 "$output"
        fi
    fi
}
