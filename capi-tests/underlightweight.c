/* Runs a static program as on a lightweight kernel.
 *
 *   underlightweight COMMAND...
 *
 * A filter allows the system calls that the functions of cross/crayxt-catamount.symbols need.
 * These are functions of the C library, and of libportals3 and libcnos, which stand for Cray's.
 * A call that makes a process, a thread, a socket, a pipe or a memory file ends the program by
 * SIGSYS. Other calls fail with ENOSYS. Mappings are among them, except those of libportals3's
 * shared file. So malloc of a C library of today takes memory from the end of the heap.
 *
 * Run by capi-tests/runner/src/libportals/lightweight.rs. */
#include "syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALL(name) SYS_##name,

/* The C library: its start, files, time, signals, memory from the end of the heap. */
static const int of_c_library[] = {
#ifdef SYS_arch_prctl
    CALL(arch_prctl) CALL(open) CALL(readlink) CALL(stat) CALL(pause)
#endif
    CALL(set_tid_address) CALL(set_robust_list) CALL(rseq) CALL(prlimit64) CALL(readlinkat) CALL(getrandom)
    CALL(mprotect) CALL(brk) CALL(exit) CALL(exit_group) CALL(uname) CALL(sysinfo) CALL(getrlimit) CALL(setrlimit)
    CALL(openat) CALL(close) CALL(read) CALL(write) CALL(writev) CALL(lseek) CALL(fstat) CALL(newfstatat)
    CALL(ioctl) CALL(getcwd) CALL(clock_gettime) CALL(clock_getres) CALL(clock_nanosleep) CALL(nanosleep)
    CALL(gettimeofday) CALL(rt_sigaction) CALL(rt_sigprocmask) CALL(rt_sigreturn) CALL(rt_sigtimedwait)
    CALL(restart_syscall) CALL(sigaltstack) CALL(getpid) CALL(gettid) CALL(getppid) CALL(kill) CALL(tgkill)
};

/* libportals3 and libcnos: the memory file of the job, the barrier of ptlrun, waiting. */
static const int of_portals[] = {
    CALL(ftruncate) CALL(fallocate) CALL(fcntl) CALL(munmap) CALL(sendto) CALL(recvfrom) CALL(sched_yield) CALL(futex)
    CALL(process_vm_readv) CALL(process_vm_writev) CALL(prctl) CALL(geteuid) CALL(getuid) CALL(sched_getaffinity)
};

/* What no function of the list may lead to. */
static const int deadly[] = {
#ifdef SYS_fork
    CALL(fork) CALL(vfork) CALL(pipe) CALL(eventfd) CALL(epoll_create)
#endif
    CALL(clone) CALL(clone3) CALL(execveat) CALL(socket) CALL(socketpair) CALL(connect) CALL(bind) CALL(listen)
    CALL(accept) CALL(accept4) CALL(pipe2) CALL(memfd_create) CALL(eventfd2) CALL(signalfd4) CALL(epoll_create1)
    CALL(timerfd_create) CALL(pidfd_open) CALL(shmget) CALL(userfaultfd)
};

static void answer_all(const int *calls, size_t count, unsigned verdict) {
    size_t i;
    for (i = 0; i < count; i++) answer_call(calls[i], verdict);
}

/* `path` is the address of the command's name in this process: only this process executes it. */
static void make(uintptr_t path) {
    begin(SECCOMP_RET_KILL_PROCESS);
    answer_all(of_c_library, COUNT(of_c_library), SECCOMP_RET_ALLOW);
    answer_all(of_portals, COUNT(of_portals), SECCOMP_RET_ALLOW);
    answer_all(deadly, COUNT(deadly), SECCOMP_RET_KILL_PROCESS);
    add(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 0, 6);
    load(LOW(0));
    add(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)path, 0, 3);
    load(HIGH(0));
    add(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(path >> 32), 0, 1);
    answer(SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_KILL_PROCESS);
    /* The memory file of libportals3 is shared. */
    add(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3);
    load(LOW(3));
    add(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS | MAP_PRIVATE, 1, 0);
    answer(SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_ERRNO | ENOSYS);
}

int main(int argc, char **argv) {
    extern char **environ;
    if (argc < 2) {
        fprintf(stderr, "usage: underlightweight COMMAND...\n");
        return 2;
    }
    make((uintptr_t)argv[1]);
    if (put_in_force("underlightweight")) return 77;
    execve(argv[1], argv + 1, environ);
    perror(argv[1]);
    return 127;
}
