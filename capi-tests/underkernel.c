/* Runs a command as on an older kernel.
 *
 *   underkernel LEVEL COMMAND...   LEVEL is a version of Linux, such as 2.6.16 or 2.6.27
 *
 * A filter answers system calls and flags that are younger than LEVEL as that kernel would:
 * ENOSYS, or the error of an unknown flag. Flags that older kernels ignore are not filtered:
 * O_CLOEXEC and MSG_CMSG_CLOEXEC (2.6.23), POLLRDHUP (2.6.17), MAP_FIXED_NOREPLACE (4.17).
 * The command and all its children are concerned.
 *
 * Run by capi-tests/runner/src/kernels.rs. The machine's C library must do without what is
 * refused. That of today aborts when it is refused FUTEX_PRIVATE_FLAG (2.6.22). So waking with
 * this flag, which pthread_once always does, is not filtered, and programs whose threads wait
 * for locks need level 2.6.22 or later. */
#include "syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Versions as numbers that compare. */
#define V(a, b, c) ((a) << 16 | (b) << 8 | (c))

struct call {
    int number, since;
};

/* Calls by age. Numbers that this machine's headers do not know are refused as a whole, by
 * NEWEST. */
static const struct call calls[] = {
#define CALL(name, a, b, c) {SYS_##name, V(a, b, c)},
#ifdef SYS_get_robust_list
    CALL(get_robust_list, 2, 6, 17)
    CALL(set_robust_list, 2, 6, 17)
#endif
    CALL(splice, 2, 6, 17)
    CALL(sync_file_range, 2, 6, 17)
    CALL(tee, 2, 6, 17)
    CALL(vmsplice, 2, 6, 17)
    CALL(move_pages, 2, 6, 18)
    CALL(epoll_pwait, 2, 6, 19)
    CALL(getcpu, 2, 6, 19)
    CALL(utimensat, 2, 6, 22)
#ifdef SYS_signalfd
    CALL(signalfd, 2, 6, 22)
    CALL(eventfd, 2, 6, 22)
#endif
    CALL(timerfd_create, 2, 6, 25)
    CALL(timerfd_gettime, 2, 6, 25)
    CALL(timerfd_settime, 2, 6, 25)
    CALL(dup3, 2, 6, 27)
    CALL(epoll_create1, 2, 6, 27)
    CALL(eventfd2, 2, 6, 27)
    CALL(inotify_init1, 2, 6, 27)
    CALL(pipe2, 2, 6, 27)
    CALL(signalfd4, 2, 6, 27)
    CALL(accept4, 2, 6, 28)
    CALL(preadv, 2, 6, 30)
    CALL(pwritev, 2, 6, 30)
    CALL(perf_event_open, 2, 6, 31)
    CALL(rt_tgsigqueueinfo, 2, 6, 31)
    CALL(recvmmsg, 2, 6, 33)
    CALL(prlimit64, 2, 6, 36)
    CALL(fanotify_init, 2, 6, 37)
    CALL(fanotify_mark, 2, 6, 37)
    CALL(clock_adjtime, 2, 6, 39)
    CALL(name_to_handle_at, 2, 6, 39)
    CALL(open_by_handle_at, 2, 6, 39)
    CALL(syncfs, 2, 6, 39)
    CALL(sendmmsg, 3, 0, 0)
    CALL(setns, 3, 0, 0)
    CALL(process_vm_readv, 3, 2, 0)
    CALL(process_vm_writev, 3, 2, 0)
    CALL(kcmp, 3, 5, 0)
    CALL(finit_module, 3, 8, 0)
    CALL(sched_getattr, 3, 14, 0)
    CALL(sched_setattr, 3, 14, 0)
    CALL(renameat2, 3, 15, 0)
    CALL(getrandom, 3, 17, 0)
    CALL(memfd_create, 3, 17, 0)
    CALL(seccomp, 3, 17, 0)
    CALL(bpf, 3, 18, 0)
    CALL(execveat, 3, 19, 0)
    CALL(membarrier, 4, 3, 0)
    CALL(userfaultfd, 4, 3, 0)
    CALL(mlock2, 4, 4, 0)
    CALL(copy_file_range, 4, 5, 0)
    CALL(preadv2, 4, 6, 0)
    CALL(pwritev2, 4, 6, 0)
    CALL(pkey_alloc, 4, 9, 0)
    CALL(pkey_free, 4, 9, 0)
    CALL(pkey_mprotect, 4, 9, 0)
    CALL(statx, 4, 11, 0)
    CALL(io_pgetevents, 4, 18, 0)
    CALL(rseq, 4, 18, 0)
#undef CALL
};

/* From pidfd_send_signal (5.1) on, all machines number new calls alike. */
static const struct call newest[] = {
    {424, V(5, 1, 0)},  {428, V(5, 2, 0)},  {434, V(5, 3, 0)},  {437, V(5, 6, 0)},
    {436, V(5, 9, 0)},  {440, V(5, 10, 0)}, {441, V(5, 11, 0)}, {442, V(5, 12, 0)},
    {444, V(5, 13, 0)}, {447, V(5, 14, 0)}, {448, V(5, 15, 0)}, {449, V(5, 16, 0)},
};

/* A call fails with this error if its argument `i` has any of these bits. */
static void refuse_bits(int number, unsigned i, unsigned bits, unsigned error) {
    add(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 4);
    load(LOW(i));
    add(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    answer(SECCOMP_RET_ERRNO | error);
    load(offsetof(struct seccomp_data, nr));
}

/* A call fails with this error if its argument `i` has this value. */
static void refuse_value(int number, unsigned i, unsigned value, unsigned error) {
    add(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 4);
    load(LOW(i));
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    answer(SECCOMP_RET_ERRNO | error);
    load(offsetof(struct seccomp_data, nr));
}

static void refuse_private_waits(void) {
    add(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 5);
    load(LOW(1));
    add(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 2, 0);
    add(BPF_JMP | BPF_JSET | BPF_K, FUTEX_PRIVATE_FLAG, 0, 1);
    answer(SECCOMP_RET_ERRNO | ENOSYS);
    load(offsetof(struct seccomp_data, nr));
}

static void make(int level) {
    size_t i;
    begin(SECCOMP_RET_KILL);
    for (i = 0; i < COUNT(calls); i++)
        if (calls[i].since > level) answer_call(calls[i].number, SECCOMP_RET_ERRNO | ENOSYS);
    for (i = 0; i < COUNT(newest); i++)
        if (newest[i].since > level) break;
    if (i < COUNT(newest)) {
        add(BPF_JMP | BPF_JGE | BPF_K, (unsigned)newest[i].number, 0, 1);
        answer(SECCOMP_RET_ERRNO | ENOSYS);
    }
    /* Memory files, those of /dev/shm too, can be allocated since 3.5. */
    if (level < V(2, 6, 23)) answer_call(SYS_fallocate, SECCOMP_RET_ERRNO | ENOSYS);
    else if (level < V(3, 5, 0)) answer_call(SYS_fallocate, SECCOMP_RET_ERRNO | EOPNOTSUPP);
    if (level < V(2, 6, 22)) refuse_private_waits();
    if (level < V(2, 6, 24)) refuse_value(SYS_fcntl, 1, F_DUPFD_CLOEXEC, EINVAL);
    if (level < V(2, 6, 27)) {
        refuse_bits(SYS_socket, 1, SOCK_CLOEXEC | SOCK_NONBLOCK, EINVAL);
        refuse_bits(SYS_socketpair, 1, SOCK_CLOEXEC | SOCK_NONBLOCK, EINVAL);
    }
    if (level < V(3, 11, 0)) refuse_bits(SYS_openat, 2, O_TMPFILE & ~O_DIRECTORY, EISDIR);
    answer(SECCOMP_RET_ALLOW);
}

int main(int argc, char **argv) {
    int a = 0, b = 0, c = 0;
    if (argc < 3 || sscanf(argv[1], "%d.%d.%d", &a, &b, &c) < 2) {
        fprintf(stderr, "usage: underkernel LEVEL COMMAND...   (LEVEL: 2.6.16, 2.6.27, ...)\n");
        return 2;
    }
    make(V(a, b, c));
    if (put_in_force("underkernel")) return 77;
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
