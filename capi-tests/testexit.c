/* testexit: the ends of a job, one per run. The launcher must return the code of the first
 * exit, no process may hang or stay, and the text TEST FAILED must not appear. The runner
 * holds the table of expected codes.
 *
 * Where the variable TESTEXIT_PIPE names a pipe, each process keeps it open while it lives. It
 * writes one line, with the time, when it exits, and one when its SIGQUIT handler runs. */
/* faults: wrong_code */
/* args: 1 */
/* nodes: any */
/* threads: both */
#include "check.h"

#include <fcntl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#define USAGE "[-r] [-l rank] case [threads 4]\n" \
    "  -r  ranks numbered from the other end\n" \
    "  -l  this rank counts as the last\n" \
    "   1  all exit\n" \
    "   2  all return from main\n" \
    "   3  the last exits, the others are in a barrier\n" \
    "   4  the last gets SIGINT, the others are in a barrier\n" \
    "   5  the last exits, the others spin without calls\n" \
    "   6  all exit before attach\n" \
    "   7  the last exits before attach, the others attach\n" \
    "   8  the last returns from main, the others are in a barrier\n" \
    "   9  the last returns from main, the others spin without calls\n" \
    "  10  all exit in handlers of their partners' requests\n" \
    "  11  the last exits in a handler, at the request of the first\n" \
    "  12  the last exits in a handler, at its own request\n" \
    "  13  the last exits in handlers, at the request of all\n" \
    " PAR only:\n" \
    "  14  all threads of all ranks exit\n" \
    "  15  one thread exits, the others are in a barrier, poll or spin\n" \
    "  16  one thread exits, the others spin without calls\n" \
    "  17  one thread exits, the others poll\n" \
    "  18  one thread exits, the others send messages, put and get\n" \
    " Crashes and signals of the last rank:\n" \
    " 100  none: a backtrace, then all exit with 0\n" \
    " 101  SIGQUIT, whose handler prints a backtrace and returns\n" \
    " 102  gasnett_fatalerror\n" \
    " 103  abort\n" \
    " 104  a null pointer\n" \
    " 105  SIGBUS\n" \
    " 106  SIGFPE\n" \
    " 107 to 113  100 to 106 in a thread of its own (PAR)\n" \
    " More:\n" \
    " 120  the last calls _exit, the others are in a barrier\n" \
    " 121  the last is killed, the others spin without calls\n" \
    " 122  the last exits out of a SIGALRM handler that interrupts malloc, printf or a delivery; the others poll\n" \
    " 123  the last has a child that exits with another code, and leaves it another that lives on; all exit\n"

#define H_EXIT 201
#define H_NOISE 202
#define H_TAKES 203

static int number, nodes, me, threads = 4;
static volatile int handler_returns;

/* Ranks as the case counts them: from the other end with -r, and shifted until `last` is the
 * last. */
static int reversed, last;
static gasnet_node_t real(int node) {
    return (gasnet_node_t)(reversed ? nodes - 1 - node : (node + last + 1) % nodes);
}
static int counted(int node) { return reversed ? nodes - 1 - node : (node + 2 * nodes - last - 1) % nodes; }
static int is_last(void) { return me == nodes - 1; }

static int pipe_end = -1;

/* Writes to the pipe; usable in signal handlers. */
static void report(const char *what) {
    char line[80];
    struct timespec now;
    int n;
    if (pipe_end < 0) return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    n = snprintf(line, sizeof line, "%s %d %ld%09ld\n", what, me, (long)now.tv_sec, now.tv_nsec);
    if (n > 0 && write(pipe_end, line, (size_t)n) < 0) pipe_end = -1;
}

/* The exits, reported. */
GASNETT_NORETURN static void leave(int code) {
    report("leaves");
    gasnet_exit(code);
}

static void say(const char *text) {
    char line[120];
    int n = snprintf(line, sizeof line, "testexit %d: rank %d %s\n", number, me, text);
    if (n > 0 && write(1, line, (size_t)n) < 0) _exit(98);
}

static void still_here(int sig) {
    (void)sig;
    say("TEST FAILED: it is still there");
    _exit(99);
}

/* Must not be reached. */
GASNETT_NORETURN static void failed(const char *where) {
    say(where);
    say("TEST FAILED: it went on");
    gasnet_exit(97);
}

static void on_quit(int sig) {
    (void)sig;
    report("quit");
    if (handler_returns) {
        say("got SIGQUIT: backtrace");
        gasnett_print_backtrace(1);
        return;
    }
    say("got SIGQUIT");
    gasnet_exit(4);
}

static void exit_h(gasnet_token_t token, gasnet_handlerarg_t code) {
    (void)token;
    leave(code);
}

static void noise_h(gasnet_token_t token) { (void)token; }

static void takes_h(gasnet_token_t token, void *buf, size_t bytes) {
    (void)token;
    (void)buf;
    (void)bytes;
}

/* ---- what the others do ---- */

static void in_barrier(void) {
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    failed("left the barrier");
}

/* No call of the library. */
static void spinning(void) {
    for (;;) gasnett_sched_yield();
}

static void polling(void) {
    static volatile int never;
    GASNET_BLOCKUNTIL(never);
    failed("left GASNET_BLOCKUNTIL");
}

#if CHECK_PAR
static void noisy(int id) {
    uint64_t random = check_mix((uint64_t)(me * 1000 + id));
    char buf[64];
    memset(buf, id, sizeof buf);
    for (;;) {
        gasnet_node_t to = (gasnet_node_t)check_random(&random, (size_t)nodes);
        char *there = check_at(to, 64 * (size_t)(me * 16 + id % 16));
        switch (check_random(&random, 6)) {
            case 0: gasnet_AMRequestShort0(to, H_NOISE); break;
            case 1: gasnet_put(to, there, buf, sizeof buf); break;
            case 2: gasnet_get(buf, to, there, sizeof buf); break;
            case 3: gasnet_wait_syncnb(gasnet_put_nb(to, there, buf, sizeof buf)); break;
            case 4: gasnet_put_val(to, there, 1, 1); break;
            default: gasnet_AMPoll(); break;
        }
    }
}
#endif

/* ---- what the last one does ---- */

static void on_alarm(int sig) {
    (void)sig;
    leave(22);
}

/* An alarm at a time that differs from run to run interrupts any operation. */
GASNETT_NORETURN static void interrupted(void) {
    struct itimerval timer;
    char buf[512];
    memset(&timer, 0, sizeof timer);
    memset(buf, 0, sizeof buf);
    timer.it_value.tv_usec = 1000 + (long)(gasnett_ticks_now() % 5000);
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (;;) {
        free(malloc(4000));
        printf("interrupted sooner or later\n");
        gasnet_AMRequestMedium0(real(0), H_TAKES, buf, sizeof buf);
    }
}

/* Children that are not part of the job: one exits, one outlives the job. They have no
 * environment, so that the runner does not count them as left behind. */
static void with_children(void) {
    char *none = NULL;
    pid_t child = fork();
    if (child == 0) exit(24);
    waitpid(child, NULL, 0);
    if (fork() == 0) {
        close(0);
        close(1);
        close(2);
        if (pipe_end >= 0) close(pipe_end);
        execle("/bin/sleep", "sleep", "4", (char *)NULL, &none);
        _exit(25);
    }
}

static void crash(int kind) {
    static volatile int zero = 0;
    static int *volatile nowhere = NULL;
    static volatile int sink;
    switch (kind) {
        case 0:
            gasnett_print_backtrace(1);
            return;
        case 1:
            handler_returns = 1;
            raise(SIGQUIT);
            return;
        default: break;
    }
    report("leaves");
    switch (kind) {
        case 2: gasnett_fatalerror("testexit case %d on rank %d", number, me);
        case 3: abort();
        case 4: *nowhere = 1; break;
        case 5: raise(SIGBUS); break;
        default:
            sink = 1 / zero;
            (void)sink;
            raise(SIGFPE); /* where a division by zero raises no signal */
            break;
    }
    failed("survived");
}

#if CHECK_PAR
static pthread_barrier_t meeting;

static void thread_body(int id) {
    pthread_barrier_wait(&meeting);
    switch (number) {
        case 14: leave(14);
        case 15:
            if (me == 0 && id == 0) {
                usleep(200000);
                leave(15);
            }
            if (me == 0 && id == 1 && nodes > 1) in_barrier(); /* a single rank would exit */
            if (id == (me == 0 ? 1 : 0)) polling();
            spinning();
            break;
        case 16:
        case 17:
        case 18:
            if (is_last() && id == threads - 1) {
                usleep(200000);
                leave(number);
            }
            if (number == 16) spinning();
            if (number == 17) polling();
            noisy(id);
            break;
        default:
            if (is_last() && id == threads - 1) crash(number - 107);
            pthread_barrier_wait(&meeting);
            return;
    }
    failed("a thread went on");
}
#endif

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {{H_EXIT, exit_h}, {H_NOISE, noise_h}, {H_TAKES, takes_h}};
    const char *pipe_name = getenv("TESTEXIT_PIPE");
    int i = 1;

    if (pipe_name) pipe_end = open(pipe_name, O_WRONLY);
    check_init("testexit", &argc, &argv);
    signal(SIGALRM, still_here);
    nodes = (int)gasnet_nodes();
    last = nodes - 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "-r"))
            reversed = 1;
        else if (!strcmp(argv[i], "-l") && i + 1 < argc)
            last = atoi(argv[++i]);
        else
            check_usage(USAGE);
    }
    if (i >= argc || argc > i + 2 || last < 0 || last >= nodes) check_usage(USAGE);
    me = counted((int)gasnet_mynode());
    number = atoi(argv[i]);
    threads = (int)check_arg(argc, argv, i + 1, 4);
    if (number < 1 || (number > 18 && number < 100) || (number > 113 && number < 120) || number > 123 || threads < 2)
        check_usage(USAGE);
    if (!CHECK_PAR && ((number > 13 && number < 100) || (number > 106 && number < 120))) check_usage(USAGE);

    if (number == 6) leave(6);
    if (number == 7 && is_last()) {
        usleep(200000);
        leave(7);
    }
    check_attach(table, 3, 64 * 16 * (size_t)nodes);
    if (number == 7) failed("attached without all");
    gasnett_reghandler(SIGQUIT, on_quit);
    check_barrier();
    check_alive("exit");

    switch (number) {
        case 1: leave(1);
        case 2: report("leaves"); return 2;
        case 3:
        case 4:
        case 5:
        case 8:
        case 9:
            if (is_last()) {
                usleep(500000);
                report("leaves");
                if (number == 8 || number == 9) return number;
                if (number != 4) gasnet_exit(number);
                raise(SIGINT);
                polling();
            }
            if (number == 5 || number == 9) spinning();
            in_barrier();
            break;
        case 10:
            gasnet_AMRequestShort1(real((me ^ 1) < nodes ? me ^ 1 : me), H_EXIT, 10);
            polling();
            break;
        case 11:
            if (me == 0) gasnet_AMRequestShort1(real(nodes - 1), H_EXIT, 11);
            polling();
            break;
        case 12:
            if (is_last()) gasnet_AMRequestShort1(real(nodes - 1), H_EXIT, 12);
            polling();
            break;
        case 13:
            gasnet_AMRequestShort1(real(nodes - 1), H_EXIT, 13);
            polling();
            break;
        case 100:
        case 101:
        case 102:
        case 103:
        case 104:
        case 105:
        case 106:
            if (is_last()) crash(number - 100);
            check_barrier();
            break;
        case 120:
            if (is_last()) {
                report("leaves");
                _exit(20);
            }
            in_barrier();
            break;
        case 121:
            if (is_last()) {
                report("leaves");
                kill(getpid(), SIGKILL);
            }
            spinning();
            break;
        case 122:
            if (is_last()) interrupted();
            polling();
            break;
        case 123:
            if (is_last()) with_children();
            check_barrier();
            leave(23);
        default:
#if CHECK_PAR
            pthread_barrier_init(&meeting, NULL, (unsigned)threads);
            check_join(check_start(threads, 0, thread_body), threads);
            check_barrier();
#endif
            break;
    }
    /* Only the cases without an exit get here. */
    if (number != 100 && number != 101 && number != 107 && number != 108) failed("reached the end");
    leave(0);
}
