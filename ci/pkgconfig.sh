#!/bin/sh
# Writes the pkg-config file for one thread mode and one prefix to its standard output.
#   ci/pkgconfig.sh seq|par|parsync PREFIX
set -eu
cd "$(dirname "$0")/.."
mode=$1
prefix=$2
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
case $mode in
seq) defines="-DGASNET_SEQ" threads= ;;
par) defines="-DGASNET_PAR -D_REENTRANT" threads=-lpthread ;;
parsync) defines="-DGASNET_PARSYNC -D_REENTRANT" threads=-lpthread ;;
esac
sed -e "s|@PREFIX@|$prefix|" -e "s|@MODE@|$mode|" -e "s|@VERSION@|$version|" -e "s|@DEFINES@|$defines|" \
    -e "s|@THREADS@|$threads|" ci/gasnet.pc.in
