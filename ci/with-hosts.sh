#!/bin/sh
# Runs a command on the first of N test hosts, which are network namespaces of this machine:
#   ci/with-hosts.sh N command [arguments]
# Needs root, iproute2 and util-linux; exits with 77 where the system does not allow it.
#
# A host has its own network, name, /run and /dev/shm, and all but the first their own processes.
# They are called host1 to hostN and know each other by these names. The command finds
# HOSTS=host1,host2,... and GASNET_SSH_CMD, which enters a host as ssh would. When the command
# ends, the hosts vanish with all their processes; KILL_HOST, a program, does that to the host that
# is its argument.
set -u
number=$1
shift
[ "$(id -u)" = 0 ] || { echo "with-hosts.sh: needs root" >&2; exit 77; }
for tool in ip nsenter unshare; do
    command -v $tool >/dev/null || { echo "with-hosts.sh: $tool is missing" >&2; exit 77; }
done

id=$$
calls=
folder=$(mktemp -d) || exit 1
bridge=gt$id-b
end() {
    [ -z "$calls" ] || kill -9 "$calls" 2>/dev/null
    for n in $(seq 2 "$number"); do
        "$folder/kill" "host$n" 2>/dev/null
    done
    ip netns del "$bridge" 2>/dev/null
    for n in $(seq "$number"); do
        ip netns del "gt$id-$n" 2>/dev/null
    done
    rm -rf "$folder"
}
trap end EXIT
trap 'exit 130' INT TERM HUP
refused() { echo "with-hosts.sh: the system allows no network namespaces: $1" >&2; exit 77; }

ip netns add "$bridge" || refused "ip netns add"
ip -n "$bridge" link add br0 type bridge || refused "bridge"
ip -n "$bridge" link set br0 up
{
    echo 127.0.0.1 localhost
    for n in $(seq "$number"); do echo "10.77.0.$n host$n"; done
} >"$folder/hosts"
mkdir "$folder/pids"

# Enters a host, as ssh does: options, the host, and the words of the command. In a host with its
# own processes it asks the loop below, since such a host cannot enter another one.
cat >"$folder/enter" <<END
#!/bin/sh
while :; do
    case \$1 in
        -[oplFi]) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
host=\$1
shift
if [ "\$(cat /proc/sys/kernel/hostname)" != host1 ] && [ -z "\${OUTSIDE:-}" ]; then
    call=\$(mktemp -d "$folder/call.XXXXXX") || exit 255
    mkfifo "\$call/in" "\$call/out" "\$call/err"
    printf '%s' "\$host" >"\$call/host"
    printf '%s' "\$*" >"\$call/command"
    exec 4<&0
    cat <&4 >"\$call/in" &
    echo "\$call" >"$folder/calls"
    cat "\$call/err" >&2 &
    err=\$!
    cat "\$call/out"
    wait \$err
    until [ -s "\$call/code" ]; do sleep 0.02; done
    exit "\$(cat "\$call/code")"
fi
[ "\$host" != host1 ] || exec sh -c "\$*"
read -r pid network 2>/dev/null <"$folder/pids/\$host" || {
    echo "\$host: no such host" >&2
    exit 255
}
# A host of that host asks the loop again.
unset OUTSIDE
exec nsenter -t "\$pid" -m -n -p -u -i -w"\$PWD" sh -c "\$*"
END
# A process whose number was that of a host, but which is in another network, is left alone.
cat >"$folder/kill" <<END
#!/bin/sh
read -r pid network <"$folder/pids/\$1" || exit 1
[ "\$(stat -Lc %i "/proc/\$pid/ns/net")" = "\$network" ] && exec kill -9 "\$pid"
END
chmod +x "$folder/enter" "$folder/kill"

mkfifo "$folder/calls"
while read -r call; do
    {
        OUTSIDE=1 "$folder/enter" "$(cat "$call/host")" "$(cat "$call/command")"
        echo $? >"$call/code"
    } <"$call/in" >"$call/out" 2>"$call/err" &
done <>"$folder/calls" &
calls=$!

# What makes a host of a process: its name, its table of hosts, its shared memory.
furnish="echo host\$n >/proc/sys/kernel/hostname && mount -t tmpfs tmpfs /dev/shm &&
mount -t tmpfs tmpfs /run && mount --bind '$folder/hosts' /etc/hosts || exit 1"

for n in $(seq "$number"); do
    ns=gt$id-$n
    ip netns add "$ns" || refused "ip netns add"
    # At most 15 letters.
    ip link add "v$n" netns "$ns" type veth peer name "v$n" netns "$bridge" || refused veth
    ip -n "$bridge" link set "v$n" master br0 up
    ip -n "$ns" link set "v$n" name eth0
    ip -n "$ns" addr add "10.77.0.$n/24" dev eth0
    ip -n "$ns" link set eth0 up
    ip -n "$ns" link set lo up
    [ "$n" -gt 1 ] || continue
    setsid ip netns exec "$ns" unshare --mount --pid --uts --ipc --fork --mount-proc \
        --propagation private sh -c "n=$n; $furnish; echo >'$folder/ready.$n'; exec sleep infinity" \
        </dev/null >/dev/null 2>"$folder/error.$n" &
    unshare=$!
    tries=0
    until [ -e "$folder/ready.$n" ]; do
        tries=$((tries + 1))
        [ $tries -lt 500 ] || refused "$(cat "$folder/error.$n")"
        sleep 0.02
    done
    # The init of the host is the child of unshare.
    init=$(cat "/proc/$unshare/task/$unshare/children" 2>/dev/null)
    init=${init% }
    case $init in
        '' | *' '*) refused "no init" ;;
    esac
    echo "$init $(stat -Lc %i "/proc/$init/ns/net")" >"$folder/pids/host$n"
done

HOSTS=$(seq -s , -f 'host%g' "$number")
GASNET_SSH_CMD=$folder/enter KILL_HOST=$folder/kill
export HOSTS GASNET_SSH_CMD KILL_HOST
ip netns exec "gt$id-1" unshare --mount --uts --ipc --propagation private \
    sh -c "n=1; $furnish; exec \"\$@\"" sh "$@"
