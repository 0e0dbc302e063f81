#!/bin/sh
# The layers hold. Prints what is wrong. Arguments choose checks; without any, all run:
#   libc    only crate sys names libc
#   lines   no Rust file has more than 600 lines
#   opened  what opens a descriptor moves it above the standard ones: one file makes owned
#           descriptors of numbers
#   young   crate sys calls no function that is younger than glibc 2.4, but the system call
set -eu
cd "$(dirname "$0")/.."
. ci/checkout.sh

# Comments may name it.
check_libc() {
    git grep -nE '^[^/]*\blibc::|^[^/]*\b(use|extern crate) libc\b' -- '*.rs' ':!sys/*' |
        sed 's/^/libc outside sys: /'
    git ls-files '*Cargo.toml' | grep -v '^sys/' | while read -r file; do
        # The workspace may give its version.
        sed '/^\[workspace\.dependencies\]/,/^$/d' "$file" | grep -qE '^ *libc *[.=]' &&
            echo "depends on libc: $file"
    done
}

check_lines() {
    git ls-files '*.rs' | xargs wc -l | awk '$1 > 600 && $2 != "total" { print "more than 600 lines: " $2 " has " $1 }'
}

check_opened() {
    git grep -n 'from_raw_fd' -- 'sys/src/*.rs' 'src/*.rs' 'portals/src/*.rs' 'portals/capi/src/*.rs' \
        ':!sys/src/descriptor.rs' | sed 's/^/a descriptor that may be 0, 1 or 2: /'
}

check_young() {
    young='accept4|close_range|dup3|epoll_create1|epoll_pwait|eventfd|execvpe|explicit_bzero|fallocate|fexecve|futimens'
    young=$young'|getauxval|getentropy|getrandom|gettid|inotify_init1|memfd_create|mkostemp|pidfd_open|pipe2|preadv|prlimit|prlimit64'
    young=$young'|process_vm_readv|process_vm_writev|pthread_getname_np|pthread_setname_np|pthread_sigqueue|pwritev|reallocarray|recvmmsg'
    young=$young'|sched_getcpu|sendmmsg|setns|signalfd|statx|sync_file_range|syncfs|tgkill|timerfd_create|utimensat'
    git grep -nE "libc::($young)\\(" -- 'sys/src/*.rs' | sed 's/^/younger than glibc 2.4: /'
}

[ $# -gt 0 ] || set -- libc lines opened young
wrong=$(for check in "$@"; do "check_$check" || true; done)
[ -z "$wrong" ] || { echo "$wrong"; exit 1; }
