#!/bin/sh
# Measures the library of a built tree. Without arguments: a put of 8 bytes and the round trip of a
# Short between two pinned ranks, cross-mapped and through Portals, next to a memcpy and the round
# trip of a cache line. With arguments: the figures of the program `bench`, with other libraries in
# turn, into docs/bench.
#   ci/bench.sh
#   ci/bench.sh [--peer PREFIX[,CONDUIT]] [--with openmpi|mpich|shmem] [--rounds N] [--ms MS]
#   ci/bench.sh --starts [--rounds N]
#   ci/bench.sh --hosts [--peer PREFIX,udp] [--rounds N] [--ms MS]      as root: over test hosts
set -eu
cd "$(dirname "$0")/.."

# have COMMAND PACKAGE...: tests for the command; as root, first installs it from these packages
# if it is missing.
have() {
    command -v "$1" >/dev/null 2>&1 && return
    tool=$1
    shift
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null 2>&1 || true
    fi
    command -v "$tool" >/dev/null 2>&1 && return
    echo "$tool is not installed (Debian packages: $*)" >&2
    return 1
}

if [ $# -gt 0 ]; then
    ci/tools.sh pkg-config
    case " $* " in *" --starts "* | *" --hosts "*) ;; *) have gnuplot gnuplot-nox || echo "nothing will be drawn" >&2 ;; esac
    case " $* " in *" openmpi "*) have mpicc.openmpi libopenmpi-dev openmpi-bin ;; esac
    case " $* " in *" shmem "*) have oshcc libopenmpi-dev openmpi-bin ;; esac
    case " $* " in *" mpich "*) have mpicc.mpich libmpich-dev mpich ;; esac
    below=
    case " $* " in
        *" --hosts "*)
            below="ci/with-hosts.sh 4"
            have mpirun.openmpi libopenmpi-dev openmpi-bin || true
            [ -e /usr/include/rdma/fabric.h ] || have fi_info libfabric-dev libfabric-bin || true
            ;;
    esac
    exec $below "${CARGO:-cargo}" run --quiet --release -p capi-tests --bin bench -- "$@"
fi
mkdir -p build/bench/two
for program in limits rma am; do
    ${CC:-cc} -O2 -std=gnu99 -Wall -Wextra -D_GNU_SOURCE=1 -DGASNET_SEQ -Ibuild/include capi-tests/bench/$program.c \
        -o build/bench/two/$program -Lbuild/lib -Wl,-rpath,"$PWD/build/lib" -lgasnet
done
echo "The machine's own limits:"
timeout 120 build/bench/two/limits -s 8:8 line_trip memcpy_latency
for path in cross-mapped portals; do
    if [ $path = portals ]; then export GASNET_SUPERNODE_MAXSIZE=1; fi
    printf '\nTwo ranks, %s:\n' "$path"
    timeout 120 build/bin/gasnetrun -n 2 build/bench/two/rma -s 8:8 put
    timeout 120 build/bin/gasnetrun -n 2 build/bench/two/am short_trip
done
