/* Runs a static program as on a lightweight kernel.
 *
 *   underlightweight COMMAND...
 *
 * A filter allows the system calls that the functions of cross/crayxt-catamount.symbols need:
 * those of the C library, and those of libportals3 and libcnos, which stand for Cray's. A call
 * that makes a process, a thread, a socket, a pipe or a memory file ends the program by SIGSYS.
 * Other calls fail with ENOSYS. Mappings are among them, except those of libportals3's shared
 * file: malloc of a C library of today then takes memory from the end of the heap.
 *
 * Run by capi-tests/runner/src/libportals/lightweight.rs. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#elif defined __riscv
#define ARCH AUDIT_ARCH_RISCV64
#endif
/* Low and high halves of arguments on machines with the low byte first. */
#define LOW(i) (offsetof(struct seccomp_data, args) + 8 * (i))
#define HIGH(i) (LOW(i) + 4)

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

static struct sock_filter code[2 * (COUNT(of_c_library) + COUNT(of_portals) + COUNT(deadly)) + 40];
static unsigned length;

static void add(int op, unsigned value, int yes, int no) {
    code[length++] = (struct sock_filter)BPF_JUMP(op, value, (unsigned char)yes, (unsigned char)no);
}

static void load(unsigned offset) { add(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0); }

static void answer(unsigned verdict) { add(BPF_RET | BPF_K, verdict, 0, 0); }

static void answer_all(const int *calls, size_t count, unsigned verdict) {
    size_t i;
    for (i = 0; i < count; i++) {
        add(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
        answer(verdict);
    }
}

/* `path` is the address of the command's name in this process: only this process executes it. */
static void make(uintptr_t path) {
    load(offsetof(struct seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    answer(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(struct seccomp_data, nr));
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
    struct sock_fprog program = {0, code};
    extern char **environ;
    if (argc < 2) {
        fprintf(stderr, "usage: underlightweight COMMAND...\n");
        return 2;
    }
    make((uintptr_t)argv[1]);
    program.len = (unsigned short)length;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)) {
        perror("underlightweight: this machine allows no filter");
        return 77;
    }
    execve(argv[1], argv + 1, environ);
    perror(argv[1]);
    return 127;
}
