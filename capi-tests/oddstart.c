/* Odd starts: conditions under which a job may be started, and a rank that starts under them.
 *
 *   oddstart WORDS -- COMMAND...    makes the conditions, then executes the command
 *   oddstart WORDS END              makes the conditions, then is a rank that ends so:
 *                                   `exit` (gasnet_exit(5) in all), `killed` (rank 1 by SIGKILL)
 *
 * WORDS are separated by commas:
 *   none
 *   block         all signals are blocked
 *   nopidfd       pidfd_open does not exist, as in Linux before 5.3
 *   idle, busy, malloc, exits, quits
 *                 another thread, which sleeps, computes, allocates, calls exit, calls _exit
 *   dlopen        the library is loaded twice more, and called by its symbol
 *   childbefore   a child was forked before gasnet_init, and exits while the job runs
 *   childafter    a child is forked after gasnet_init, and exits
 *   sigchld       a handler of SIGCHLD that collects every child
 *   brokenpipe    nothing reads stderr, to which the rank writes, and a handler of SIGQUIT returns
 *
 * Run by capi-tests/runner/src/starts.rs. Each rank has the name of its program, puts its number
 * into the segment of the next one, sends it a Short, and checks what arrived. */
#include <gasnet.h>

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#define HANDLER 200

static volatile int arrived = -1;
static int child_after, broken_pipe;

static void short_handler(gasnet_token_t token, gasnet_handlerarg_t from) {
    (void)token;
    arrived = (int)from;
}

static void *thread(void *word) {
    const char *what = word;
    volatile unsigned long count = 0;
    for (;;) {
        if (!strcmp(what, "busy")) count++;
        else if (!strcmp(what, "malloc")) free(malloc(1000 + (size_t)random() % 100000));
        else usleep(1000);
        if (!strcmp(what, "exits") && ++count > 20) exit(3);
        if (!strcmp(what, "quits") && ++count > 20) _exit(3);
    }
    return NULL;
}

static void collect(int sig) {
    int saved = errno;
    (void)sig;
    while (waitpid(-1, NULL, WNOHANG) > 0) {}
    errno = saved;
}

static void ignore(int sig) { (void)sig; }

/* Makes stderr a pipe without a reader. */
static int break_pipe(void) {
    int ends[2];
    return !pipe(ends) && dup2(ends[1], 2) == 2 && !close(ends[0]) && !close(ends[1]) && signal(SIGQUIT, ignore) != SIG_ERR;
}

static int without_pidfd(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

/* Returns 0 if the condition cannot be made. */
static int make(const char *word) {
    pthread_t id;
    sigset_t all;
    if (!strcmp(word, "none") || !strcmp(word, "dlopen")) return 1;
    if (!strcmp(word, "block")) return !sigfillset(&all) && !sigprocmask(SIG_SETMASK, &all, NULL);
    if (!strcmp(word, "nopidfd")) return !without_pidfd();
    if (!strcmp(word, "sigchld")) return signal(SIGCHLD, collect) != SIG_ERR;
    if (!strcmp(word, "childafter")) return child_after = 1;
    if (!strcmp(word, "brokenpipe")) return broken_pipe = break_pipe();
    if (!strcmp(word, "childbefore")) {
        pid_t child = fork();
        if (child == 0) {
            usleep(5000);
            _exit(9);
        }
        return child > 0;
    }
    return !pthread_create(&id, NULL, thread, (void *)(uintptr_t)word) && (usleep(2000), 1);
}

static int end(int code) {
    fflush(stdout);
    gasnet_exit(code);
    return code;
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {{HANDLER, (void (*)(void))short_handler}};
    gasnet_seginfo_t *seg;
    gasnet_node_t me, n, next;
    int (*init)(int *, char ***) = NULL;
    char *word, *words, name[2][16] = {"", ""};
    if (argc < 3) return 2;
    words = strdup(argv[1]);
    for (word = strtok(words, ","); word; word = strtok(NULL, ",")) {
        if (!make(word)) {
            fprintf(stderr, "oddstart: %s: %s\n", word, strerror(errno));
            return 77;
        }
    }
    if (!strcmp(argv[2], "--")) {
        execvp(argv[3], argv + 3);
        return 127;
    }
    if (strstr(argv[1], "dlopen")) {
        void *one = dlopen("libgasnet.so.0", RTLD_NOW), *two = dlopen("libgasnet.so.0", RTLD_NOW | RTLD_LOCAL);
        if (!one || one != two) return 2;
        dlclose(two);
        *(void **)&init = dlsym(one, "gasnet_init");
    }
    prctl(PR_GET_NAME, name[0], 0, 0, 0);
    if (init ? init(&argc, &argv) : gasnet_init(&argc, &argv)) return 2;
    if (gasnet_attach(table, 1, GASNET_PAGESIZE, 0)) return 2;
    prctl(PR_GET_NAME, name[1], 0, 0, 0);
    me = gasnet_mynode();
    n = gasnet_nodes();
    if (strcmp(name[0], name[1])) return end(2);
    next = (me + 1) % n;
    seg = calloc(n, sizeof *seg);
    if (!seg || gasnet_getSegmentInfo(seg, (int)n)) return end(2);
    if (child_after) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) exit(9);
        if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 9) return end(2);
    }
    if (broken_pipe && write(2, ".", 1) != -1) return end(2);
    gasnet_put(next, seg[next].addr, &me, sizeof me);
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    if (gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS)) return end(2);
    if (*(gasnet_node_t *)seg[me].addr != (me + n - 1) % n) return end(2);
    if (gasnet_AMRequestShort1(next, HANDLER, (gasnet_handlerarg_t)me)) return end(2);
    GASNET_BLOCKUNTIL(arrived >= 0);
    if (arrived != (int)((me + n - 1) % n)) return end(2);
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    if (gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS)) return end(2);
    printf("rank %d of %d: PASS\n", (int)me, (int)n);
    fflush(stdout);
    if (!strcmp(argv[2], "killed")) {
        if (me == 1) kill(getpid(), SIGKILL);
        for (;;) gasnet_AMPoll();
    }
    return end(5);
}
