/* testcontend: how much threads disturb each other. Some threads make round trips and puts
 * while others poll, put or compete for one lock. The results are checked, and the times
 * printed in a table over the number of threads. */
/* faults: skip_lock drop_am flip_arg flip_put */
/* args: 3 20 */
/* nodes: any */
/* threads: par */
#include "check.h"

#define USAGE "[-rev] [most threads 4] [iterations 50] [sections ABCD]\n" \
    "  -rev      the odd processes are active, not the even ones\n" \
    "  sections  A one thread sends, the others poll; B all threads send; C all threads put and get; D one lock\n"

#define H_PING 201
#define H_PONG 202
#define MOST 64
#define SLOT 64

static int n_threads, iters, active;
static const char *section_names = "ABCD";
static int section;
static gasnet_node_t peer;
static gasnett_atomic_t pongs[MOST], finished = gasnett_atomic_init(0);
static gasnet_hsl_t lock = GASNET_HSL_INITIALIZER;
static volatile long pings; /* with the lock */
static long expected_pings;
static pthread_barrier_t meeting;

static void ping_h(gasnet_token_t token, gasnet_handlerarg_t id, gasnet_handlerarg_t inverse) {
    CHECK(id == ~inverse && id >= 0 && id < MOST, "arguments %d and %d", id, inverse);
    gasnet_hsl_lock(&lock);
    pings = pings + 1;
    gasnet_hsl_unlock(&lock);
    CHECK_OK(gasnet_AMReplyShort2(token, H_PONG, id, ~id));
}

static void pong_h(gasnet_token_t token, gasnet_handlerarg_t id, gasnet_handlerarg_t inverse) {
    (void)token;
    CHECK(id == ~inverse && id >= 0 && id < MOST, "arguments %d and %d", id, inverse);
    gasnett_atomic_increment(&pongs[(unsigned)id % MOST], GASNETT_ATOMIC_REL);
}

static void ping(int id) {
    gasnett_atomic_val_t want = gasnett_atomic_read(&pongs[id], 0) + 1;
    CHECK_OK(gasnet_AMRequestShort2(peer, H_PING, id, ~id));
    GASNET_BLOCKUNTIL(gasnett_atomic_read(&pongs[id], GASNETT_ATOMIC_ACQ) == want);
}

static void put_and_get(int id, int round) {
    uint64_t word = check_mix((uint64_t)(id * 65536 + round)), back = 0;
    gasnet_put(peer, check_at(peer, (size_t)id * SLOT), &word, 8);
    gasnet_get(&back, peer, check_at(peer, (size_t)id * SLOT), 8);
    CHECK(back == word, "thread %d put 0x%lx and got 0x%lx", id, (unsigned long)word, (unsigned long)back);
}

static void under_lock(void) {
    long old;
    gasnet_hsl_lock(&lock);
    old = pings;
    gasnett_sched_yield();
    pings = old + 1;
    gasnet_hsl_unlock(&lock);
}

static void body(int id) {
    int i;
    pthread_barrier_wait(&meeting);
    if (section == 'A' && id > 0) {
        GASNET_BLOCKUNTIL(gasnett_atomic_read(&finished, 0) != 0);
    } else {
        for (i = 0; i < iters; i++) {
            if (section == 'A' || section == 'B') ping(id);
            else if (section == 'C') put_and_get(id, i);
            else under_lock();
        }
        gasnett_atomic_increment(&finished, 0);
    }
    pthread_barrier_wait(&meeting);
}

/* Microseconds of an operation with `threads` threads in every active rank. */
static double measure(int threads) {
    struct check_thread *t;
    int passive = peer != gasnet_mynode() && !active, pingers = section == 'A' ? 1 : threads;
    double began;

    check_alive("threads in contention");
    gasnett_atomic_set(&finished, 0, 0);
    if (section == 'D' || ((section == 'A' || section == 'B') && (passive || peer == gasnet_mynode())))
        expected_pings += (long)pingers * iters;
    check_barrier();
    if (section != 'D' && passive) {
        /* This barrier serves the partner's threads. */
        check_barrier();
        return 0;
    }
    pthread_barrier_init(&meeting, NULL, (unsigned)threads + 1);
    t = check_start(threads, 0, body);
    pthread_barrier_wait(&meeting);
    began = check_now();
    pthread_barrier_wait(&meeting);
    began = (check_now() - began) / iters / 1000;
    check_join(t, threads);
    pthread_barrier_destroy(&meeting);
    check_barrier();
    return began;
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {{H_PING, ping_h}, {H_PONG, pong_h}};
    int most, i, s, reverse = 0, printer;

    check_init("testcontend", &argc, &argv);
    for (i = 1; i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "-rev")) reverse = 1;
        else check_usage(USAGE);
    }
    most = (int)check_arg(argc, argv, i, 4);
    iters = (int)check_arg(argc, argv, i + 1, 50);
    if (i + 2 < argc) section_names = argv[i + 2];
    if (most < 1 || most > MOST || iters < 1 || argc > i + 3) check_usage(USAGE);
    for (i = 0; i < MOST; i++) gasnett_atomic_set(&pongs[i], 0, 0);
    check_attach(table, 2, MOST * SLOT);
    peer = check_peer();
    active = peer == gasnet_mynode() || (gasnet_mynode() % 2 == 1) == reverse;
    printer = gasnet_mynode() == (gasnet_node_t)(reverse && gasnet_nodes() > 1);

    if (printer)
        printf("testcontend: us of an operation of each thread, %d processes, %d iterations\n%7s %11s %11s %11s %11s\n",
               (int)gasnet_nodes(), iters, "threads", "A one sends", "B all send", "C put + get", "D one lock");
    for (n_threads = 1; n_threads <= most; n_threads++) {
        double us[4];
        for (s = 0; s < 4; s++) {
            section = "ABCD"[s];
            us[s] = strchr(section_names, section) ? measure(n_threads) : 0;
        }
        if (printer) printf("%7d %11.3f %11.3f %11.3f %11.3f\n", n_threads, us[0], us[1], us[2], us[3]);
    }
    check_barrier();
    gasnet_hsl_lock(&lock);
    CHECK(pings == expected_pings, "%ld counted under the lock instead of %ld", pings, expected_pings);
    gasnet_hsl_unlock(&lock);
    check_done();
}
