#!/bin/sh
# Disassembles files and prints each instruction that a processor lacks: file, function, address
# and instruction. cross/CPU.cpu lists what the processor has. Bytes that are no instruction count
# as lacking too: data in a section of code must be known.
#   ci/cross/cpu.sh CPU FILE...
set -eu
cd "$(dirname "$0")/../.."
cpu=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
list=cross/$cpu.cpu
{
    cat "$list"
    for other in $(sed -n 's/^include //p' "$list"); do cat "cross/$other.cpu"; done
} | grep -vE '^(#|include |$)' >"$work/list"
status=0
for file; do
    code=$file
    # objdump needs 20 times as long for the many sections of an archive as for the same code linked.
    case $file in
    *.a)
        code=$work/linked
        ${LD:-ld} -shared --unresolved-symbols=ignore-all --whole-archive "$file" -o "$code"
        ;;
    esac
    ${OBJDUMP:-objdump} -d --no-show-raw-insn "$code" | awk -F '\t' -v file="$file" -v list="$work/list" '
        BEGIN {
            while ((getline line < list) > 0) {
                sub(/  .*/, "", line)
                if (line ~ /^!/) excluded[++ex] = substr(line, 2)
                else names[++n] = "^(" line ")$"
            }
        }
        /^[0-9a-f]+ </ { function_name = $0; sub(/^[0-9a-f]+ </, "", function_name); sub(/>:$/, "", function_name); next }
        NF < 2 || $1 !~ /^ *[0-9a-f]+:$/ { next }
        {
            text = $2
            while (sub(/^(rep|repz|repnz|lock|bnd|notrack|data16|addr32|cs|ds|es|fs|gs|ss|rex[.A-Z]*) /, "", text)) {}
            name = text
            sub(/ .*/, "", name)
            if (!(name in verdict)) {
                verdict[name] = 0
                for (i = 1; i <= n && !verdict[name]; i++) if (name ~ names[i]) verdict[name] = 1
                for (i = 1; i <= ex; i++) if (excluded[i] ~ ("^" name "[^a-z]")) verdict[name] = 2
            }
            count++
            if (verdict[name] == 1) next
            if (verdict[name] == 2) {
                bad = 0
                for (i = 1; i <= ex; i++) if (text ~ excluded[i]) bad = 1
                if (!bad) next
            }
            if (++found <= 20) { address = $1; gsub(/[ :]/, "", address); print file ": " function_name ": " address ": " $2 }
        }
        END {
            if (!count) { print file ": objdump finds no instruction in it"; exit 1 }
            if (found > 20) print file ": " found - 20 " more"
            exit found > 0
        }' || status=1
done
[ $status = 0 ] || echo "*** instructions that $cpu lacks (cross/$cpu.cpu lists those that it has)" >&2
exit $status
