/* A filter of system calls: its instructions, one after the other, and how it is put in force.
 * Used by underkernel.c and underlightweight.c, which say what it answers to which call. */
#ifndef SYSCALL_FILTER_H
#define SYSCALL_FILTER_H

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#elif defined __riscv
#define ARCH AUDIT_ARCH_RISCV64
#endif
/* Low and high halves of argument `i` on machines with the low byte first. */
#define LOW(i) (offsetof(struct seccomp_data, args) + 8 * (i))
#define HIGH(i) (LOW(i) + 4)

/* The kernel takes no filter with more instructions, and refuses one that is cut off. */
static struct sock_filter code[BPF_MAXINSNS];
static unsigned length;

static void add(int op, unsigned value, int yes, int no) {
    if (length < COUNT(code)) code[length] = (struct sock_filter)BPF_JUMP(op, value, (unsigned char)yes, (unsigned char)no);
    length++;
}

/* Loads a word of what is known of the call. */
static void load(unsigned offset) { add(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0); }

static void answer(unsigned verdict) { add(BPF_RET | BPF_K, verdict, 0, 0); }

/* Answers calls of another machine's programs with this verdict, and loads the call's number. */
static void begin(unsigned verdict) {
    load(offsetof(struct seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    answer(verdict);
    load(offsetof(struct seccomp_data, nr));
}

/* The call whose number is loaded gets this verdict. */
static void answer_call(int number, unsigned verdict) {
    add(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1);
    answer(verdict);
}

/* Puts the filter in force for this process and its children; 77 if this machine allows none. */
static int put_in_force(const char *name) {
    struct sock_fprog program = {(unsigned short)length, code};
    if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)) return 0;
    fprintf(stderr, "%s: this machine allows no filter: %s\n", name, strerror(errno));
    return 77;
}

#endif
