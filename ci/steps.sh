# Sourced by scripts that run many checks, with $log set, the folder for their output. Adds up
# $passed, $failed and $skipped. Each check prints a line with its minutes; one that fails also
# prints the end of its output. The functions `progress NAME` and `ended NAME SECONDS` are called
# before and after each.
passed=0
failed=0
skipped=0

# timed NAME COMMAND...: runs the command into its log, $output; sets $code to its exit code, $took
# to minutes.
timed() {
    name=$1
    shift
    output=$log/$(echo "$name" | tr -c 'A-Za-z0-9._\n-' _).log
    began=$(date +%s)
    progress "$name"
    "$@" >"$output" 2>&1 3>&-
    code=$?
    ended "$name" $(($(date +%s) - began))
    took=$(echo "$began $(date +%s)" | awk '{ printf "%4.1f min", ($2 - $1) / 60 }')
}

# step NAME COMMAND...: one test. A command that ends with 77 is skipped; its last line says why.
# A line `skipped NAME: why` is a part that was skipped. What a line `summary: ...` says is added.
step() {
    timed "$@"
    parts
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

skip() {
    skipped=$((skipped + 1))
    echo "skipped $1: $2"
}

# parts: shows and counts the lines `skipped NAME: why` of the last command.
parts() {
    grep '^skipped [^ ]' "$output"
    skipped=$((skipped + $(grep -c '^skipped [^ ]' "$output")))
}

# tests NAME COMMAND...: Rust tests; adds up the numbers of the `test result:` lines. A command
# that fails without such a line is one failure, as is one that runs no test. One that ends with
# 77 is skipped. A line `skipped NAME: why` is one skipped case. Tests that find out at run time
# that they cannot run count as passed, and write such a line into the file CHECK_SKIPPED.
tests() {
    rm -f "$log/$1.skipped"
    case $log in /*) CHECK_SKIPPED=$log/$1.skipped ;; *) CHECK_SKIPPED=$PWD/$log/$1.skipped ;; esac
    export CHECK_SKIPPED
    timed "$@"
    if [ $code = 77 ]; then
        skip "$name" "$(tail -n 1 "$output")"
        return
    fi
    touch "$CHECK_SKIPPED"
    # A test may find out more than once.
    sort -u -k 2,2 -o "$CHECK_SKIPPED" "$CHECK_SKIPPED"
    cat "$CHECK_SKIPPED" >>"$output"
    p=$(($(sum passed "$output") - $(grep -c '' "$CHECK_SKIPPED")))
    f=$(sum failed "$output")
    i=$(sum ignored "$output")
    if [ $code != 0 ] && [ "$f" = 0 ]; then
        f=1
    elif [ "$p$f" = 00 ] && ! grep -q '^skipped [^ ]' "$output"; then
        echo "no test ran" >>"$output"
        f=1
    fi
    passed=$((passed + p))
    failed=$((failed + f))
    parts
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

sum() {
    sed -n "s/^test result:.* \([0-9][0-9]*\) $1.*/\1/p" "$2" | awk '{ n += $1 } END { print n + 0 }'
}
