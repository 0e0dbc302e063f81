/* slowpeers: ranks that answer late, for the family `losses` of the runner. While the threads of
 * rank 0 wait for their answers, rank 1 stays in a handler, rank 2 computes, and rank 3 is
 * stopped. Nothing is lost, so the job passes. Before that each thread of rank 0 exchanges
 * traffic. A planted fault of the library loses a part of it: then the job ends.
 *
 * Arguments: threads of a rank, rounds of traffic, milliseconds.
 */
#include "check.h"
#include <signal.h>
#include <time.h>

#define H_QUICK 201
#define H_SLOW 202
#define H_BACK 203
#define MOST 16
#define PART 4096

static int threads, rounds, late;
/* Handlers of quick and of slow requests that have replied; those of slow ones that have begun. */
static gasnett_atomic_t quick = gasnett_atomic_init(0), slow = gasnett_atomic_init(0), begun = gasnett_atomic_init(0);
/* By thread of rank 0, the replies to it; its threads that have all their replies. */
static gasnett_atomic_t answered[MOST], done = gasnett_atomic_init(0);

static void pass_time(void) {
    struct timespec time;
    time.tv_sec = late / 1000;
    time.tv_nsec = late % 1000 * 1000000L;
    nanosleep(&time, NULL);
}

static void quick_h(gasnet_token_t token, gasnet_handlerarg_t id) {
    gasnett_atomic_increment(&quick, GASNETT_ATOMIC_REL);
    CHECK_OK(gasnet_AMReplyShort1(token, H_BACK, id));
}

static void slow_h(gasnet_token_t token, gasnet_handlerarg_t id) {
    if (gasnet_mynode() == 1 && gasnett_atomic_add(&begun, 1, 0) == 1) pass_time();
    CHECK_OK(gasnet_AMReplyShort1(token, H_BACK, id));
    gasnett_atomic_increment(&slow, GASNETT_ATOMIC_REL);
}

static void back_h(gasnet_token_t token, gasnet_handlerarg_t id) {
    (void)token;
    CHECK(id >= 0 && id < MOST, "argument %d", id);
    gasnett_atomic_increment(&answered[(unsigned)id % MOST], GASNETT_ATOMIC_REL);
}

/* A request to each of the other ranks, and their answers. */
static void ask(int id, int handler) {
    gasnett_atomic_val_t due = gasnett_atomic_read(&answered[id], 0) + 3;
    gasnet_node_t to;
    for (to = 1; to < 4; to++) CHECK_OK(gasnet_AMRequestShort1(to, (gasnet_handler_t)handler, id));
    GASNET_BLOCKUNTIL(gasnett_atomic_read(&answered[id], GASNETT_ATOMIC_ACQ) == due);
}

static void transfers(int id, int round) {
    char out[PART], in[PART];
    gasnet_node_t to = 1 + (gasnet_node_t)((id + round) % 3);
    gasnet_handle_t h[2];
    uint64_t pattern = check_mix((uint64_t)id << 16 | (uint64_t)round);
    check_fill(out, PART, pattern);
    h[0] = gasnet_put_nb(to, check_at(to, (size_t)id * 2 * PART), out, 64);
    h[1] = gasnet_put_nb_bulk(to, check_at(to, ((size_t)id * 2 + 1) * PART), out, PART);
    gasnet_wait_syncnb_all(h, 2);
    gasnet_get(in, to, check_at(to, ((size_t)id * 2 + 1) * PART), PART);
    check_same(in, PART, pattern, "a get after a put");
}

static void asker(int id) {
    int i;
    for (i = 0; i < rounds; i++) {
        ask(id, H_QUICK);
        transfers(id, i);
    }
    ask(id, H_SLOW);
    gasnett_atomic_increment(&done, GASNETT_ATOMIC_REL);
    GASNET_BLOCKUNTIL((int)gasnett_atomic_read(&done, GASNETT_ATOMIC_ACQ) == threads);
}

/* Stops this process; a child of it continues it. */
static void stop(void) {
    pid_t self = getpid(), child = fork();
    if (child == 0) {
        pass_time();
        kill(self, SIGCONT);
        _exit(0);
    }
    CHECK(child > 0, "no child");
    raise(SIGSTOP);
}

static void answerer(int id) {
    gasnett_atomic_val_t all = (gasnett_atomic_val_t)(threads * rounds);
    GASNET_BLOCKUNTIL(gasnett_atomic_read(&quick, GASNETT_ATOMIC_ACQ) == all);
    if (gasnet_mynode() == 2) pass_time();
    if (gasnet_mynode() == 3 && id == 0) stop();
    GASNET_BLOCKUNTIL((int)gasnett_atomic_read(&slow, GASNETT_ATOMIC_ACQ) == threads);
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {{H_QUICK, (void (*)())quick_h}, {H_SLOW, (void (*)())slow_h}, {H_BACK, (void (*)())back_h}};
    void (*body)(int);
    int i;
    check_init("slowpeers", &argc, &argv);
    threads = (int)check_arg(argc, argv, 1, 1);
    rounds = (int)check_arg(argc, argv, 2, 10);
    late = (int)check_arg(argc, argv, 3, 2500);
    if (gasnet_nodes() != 4 || threads < 1 || threads > (CHECK_PAR ? MOST : 1) || argc > 4)
        check_usage("[threads] [rounds] [milliseconds]\n");
    for (i = 0; i < MOST; i++) gasnett_atomic_set(&answered[i], 0, 0);
    check_attach(table, 3, (size_t)MOST * 2 * PART);
    check_barrier();
    body = gasnet_mynode() == 0 ? asker : answerer;
    /* The main thread is one of them: each waits inside the library. */
#if CHECK_PAR
    {
        struct check_thread *others = check_start(threads - 1, 1, body);
        body(0);
        check_join(others, threads - 1);
    }
#else
    body(0);
#endif
    check_barrier();
    check_done();
}
