#!/bin/sh
# Runs a command if the launcher of another job system is usable. Otherwise ends with 77 and one
# line with the reason.
#   ci/launchers.sh hydra COMMAND...      MPICH's mpiexec
#   ci/launchers.sh openmpi COMMAND...    Open MPI's mpirun
#   ci/launchers.sh slurm COMMAND...      srun, in a temporary cluster of this machine
#   ci/launchers.sh any COMMAND...        all usable launchers, possibly none
#   ci/launchers.sh some COMMAND...       all usable launchers, at least one
# The variable LAUNCHERS gives their names to the command. Below ci/with-hosts.sh, the cluster of
# srun has all test hosts, and the other launchers must start processes on them.
# With CI=true, as root, it installs Debian's packages first.
set -u
launcher=$1
shift
# Debian installs daemons there.
PATH=$PATH:/usr/sbin:/sbin

cannot() {
    echo "$launcher: $*"
    exit 77
}

# need PACKAGES PROGRAMS
need() {
    for program in $2; do
        command -v "$program" >/dev/null 2>&1 || missing=$program
    done
    [ -z "${missing:-}" ] && return
    if [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        apt-get update -qq >/dev/null 2>&1
        # shellcheck disable=SC2086 # a list of words
        DEBIAN_FRONTEND=noninteractive timeout 600 apt-get install -y -qq --no-install-recommends $1 >/dev/null 2>&1
    fi
    for program in $2; do
        command -v "$program" >/dev/null 2>&1 || cannot "$program is not installed (Debian packages $1)"
    done
}

LAUNCHERS="${LAUNCHERS:-} $launcher"
export LAUNCHERS
case $launcher in
any | some)
    LAUNCHERS=
    how_many=$launcher
    usable=
    for launcher in hydra openmpi slurm; do
        if why=$("$0" $launcher true 2>&1); then
            set -- "$0" $launcher "$@"
            usable=yes
        else
            echo "without $launcher: $(echo "$why" | tail -n 1)" >&2
        fi
    done
    [ "$how_many$usable" != some ] || cannot "no launcher of another job system is usable"
    exec "$@"
    ;;
hydra)
    need "mpich libmpich-dev" mpiexec.hydra
    # hydra may fail on programs that end at once.
    # shellcheck disable=SC2086 # a list of options
    timeout 60 mpiexec.hydra ${HOSTS:+-launcher ssh -launcher-exec $GASNET_SSH_CMD -iface eth0 -hosts $HOSTS} \
        -n 2 sleep 0.3 || cannot "mpiexec.hydra cannot run sleep"
    "$@"
    exit
    ;;
openmpi)
    need "openmpi-bin libopenmpi-dev libpmix2" mpirun.openmpi
    # shellcheck disable=SC2086 # a list of options
    timeout 60 mpirun.openmpi --allow-run-as-root --oversubscribe \
        ${HOSTS:+--mca plm_rsh_agent $GASNET_SSH_CMD --mca oob_tcp_if_include eth0 --host $HOSTS} \
        -n 2 true || cannot "mpirun cannot run true"
    "$@"
    exit
    ;;
slurm) ;;
*)
    echo "usage: $0 hydra | openmpi | slurm | any COMMAND..." >&2
    exit 2
    ;;
esac

need "slurmctld slurmd slurm-client munge" "slurmctld slurmd srun munged"
[ "$(id -u)" = 0 ] || cannot "a cluster of one machine can only be started by root"
dir=$(mktemp -d)
pids=
stop() {
    for pid in $pids; do
        kill "$pid" 2>/dev/null
    done
    sleep 1
    # The step daemons, too: they may outlive the step for long.
    for environ in /proc/[0-9]*/environ; do
        if { tr '\0' '\n' <"$environ"; } 2>/dev/null | grep -qx "SLURM_CONF=$dir/slurm.conf"; then
            pid=${environ#/proc/}
            pid=${pid%/environ}
            [ "$pid" = $$ ] || kill -9 "$pid" 2>/dev/null
        fi
    done
    wait 2>/dev/null
    rm -rf "$dir"
}
trap stop EXIT
trap 'exit 1' INT TERM HUP

chmod 755 "$dir"
mkdir "$dir/state"
dd if=/dev/urandom of="$dir/munge.key" bs=1024 count=1 2>/dev/null
chmod 400 "$dir/munge.key"
host=$(hostname -s 2>/dev/null || hostname)
# Each host has a munged and a slurmd. What belongs to one test host is in its own /run.
own=$dir address=127.0.0.1
[ -z "${HOSTS:-}" ] || own=/run address=$host
# Below the ephemeral ports, and different from those of a cluster that runs at the same time.
port=$((16384 + $$ % 8192 * 2))
cat >"$dir/slurm.conf" <<END
ClusterName=gasnet
SlurmctldHost=$host($address)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$own/munge.socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$own/spool
# PMIx has a folder here for each step, by a number that another cluster may use too.
TmpFS=$own/tmp
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$own/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
KillWait=2
$(for node in $(echo "${HOSTS:-$host}" | tr , ' '); do
    echo "NodeName=$node NodeAddr=$([ -n "${HOSTS:-}" ] && echo "$node" || echo 127.0.0.1) CPUs=$(nproc) State=UNKNOWN"
done)
PartitionName=all Nodes=${HOSTS:-$host} Default=YES OverSubscribe=FORCE MaxTime=INFINITE State=UP
END
# This plugin needs no cgroups.
echo CgroupPlugin=cgroup/v1 >"$dir/cgroup.conf"
export SLURM_CONF="$dir/slurm.conf"
cat >"$dir/daemons" <<END
mkdir -p $own/spool $own/tmp
chmod 1777 $own/tmp
munged --foreground --force --socket=$own/munge.socket --key-file=$dir/munge.key --pid-file=$own/munge.pid \
    --seed-file=$own/munge.seed --log-file=$own/munge.log &
exec slurmd -D -c
END
slurmctld -D -c >"$dir/slurmctld.out" 2>&1 &
pids="$pids $!"
if [ -z "${HOSTS:-}" ]; then
    sh "$dir/daemons" >"$dir/daemons.out" 2>&1 &
    pids="$pids $!"
else
    for node in $(echo "$HOSTS" | tr , ' '); do
        "$GASNET_SSH_CMD" "$node" "exec sh $dir/daemons" >"$dir/daemons-$node.out" 2>&1 </dev/null &
        pids="$pids $!"
    done
fi
tries=0
until timeout 20 srun --immediate=5 -n 1 true >"$dir/srun.out" 2>&1; do
    tries=$((tries + 1))
    if [ $tries -ge 10 ]; then
        tail -n 5 "$dir"/*.log "$dir"/*.out
        cannot "the cluster does not come up"
    fi
    sleep 1
done
"$@"
