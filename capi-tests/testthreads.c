/* testthreads: many threads of every rank put, get and send messages at once, each checking
 * its own data. In total more threads than a process may have at a time; and the highest
 * thread number works as well as the lowest. */
/* faults: flip_put flip_get flip_am flip_arg skip_sync:portals drop_am */
/* args: 4 20 */
/* nodes: any */
/* threads: par */
#include "check.h"

#define USAGE "[-d] [threads per process 4] [iterations 50]\n  -d  new threads for every iteration\n"
#define H_SHORT 201
#define H_MEDIUM 202
#define H_LONG 203
#define H_BACK 204
#define H_MEDIUM_BACK 205

/* Bytes of the segment per thread: 2048 each for puts, Longs, gets and the local side of gets. */
#define PART 2048
#define SLICE (4 * PART)
#define MOST GASNETT_MAX_THREADS

static int threads, iters;
static gasnett_atomic_t expected[MOST], answered[MOST];

static char *slice(gasnet_node_t node, int id, int part) {
    return check_at(node, (size_t)id * SLICE + (size_t)part * PART);
}

/* The work: thread `id` of one rank with the same thread of this rank. */
static gasnet_node_t partner(gasnet_node_t node, int id) { return (node + 1 + (gasnet_node_t)id) % gasnet_nodes(); }

static void short_h(gasnet_token_t token, gasnet_handlerarg_t id, gasnet_handlerarg_t inverse) {
    CHECK(id == ~inverse && id >= 0 && id < MOST, "arguments %d and %d", id, inverse);
    CHECK_OK(gasnet_AMReplyShort2(token, H_BACK, id, ~id));
}

static void back_h(gasnet_token_t token, gasnet_handlerarg_t id, gasnet_handlerarg_t inverse) {
    (void)token;
    CHECK(id == ~inverse && id >= 0 && id < MOST, "arguments %d and %d", id, inverse);
    gasnett_atomic_increment(&answered[(unsigned)id % MOST], GASNETT_ATOMIC_REL);
}

static void medium_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t id, gasnet_handlerarg_t pattern) {
    check_same(buf, n, (uint64_t)(uint32_t)pattern, "a Medium");
    CHECK_OK(gasnet_AMReplyMedium2(token, H_MEDIUM_BACK, buf, n, id, pattern));
}

static void medium_back_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t id,
                          gasnet_handlerarg_t pattern) {
    check_same(buf, n, (uint64_t)(uint32_t)pattern, "a Medium reply");
    back_h(token, id, ~id);
}

static void long_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t id, gasnet_handlerarg_t pattern) {
    check_same(buf, n, (uint64_t)(uint32_t)pattern, "a Long");
    CHECK_OK(gasnet_AMReplyShort2(token, H_BACK, id, ~id));
}

static void await(int id) {
    gasnett_atomic_val_t want = gasnett_atomic_add(&expected[id], 1, 0);
    GASNET_BLOCKUNTIL(gasnett_atomic_read(&answered[id], GASNETT_ATOMIC_ACQ) == want);
}

/* One operation of each kind with the partner of thread `id`. */
static void work(int id, int round) {
    gasnet_node_t to = partner(gasnet_mynode(), id);
    uint64_t random = check_mix(gasnet_mynode() * UINT64_C(1000003) + (uint64_t)id * 4096 + (uint64_t)round);
    uint32_t pattern = (uint32_t)check_mix(random) | 1;
    char buf[PART], back[PART];
    size_t n = check_random(&random, PART) + 1;
    gasnet_handle_t h[2];
    uint64_t value;

    check_fill(buf, n, pattern);
    switch (check_random(&random, 3)) {
        case 0: gasnet_put_bulk(to, slice(to, id, 0), buf, n); break;
        case 1: gasnet_wait_syncnb(gasnet_put_nb(to, slice(to, id, 0), buf, n)); break;
        default:
            gasnet_put_nbi_bulk(to, slice(to, id, 0), buf, n);
            gasnet_wait_syncnbi_puts();
            break;
    }
    memset(back, 0, n);
    switch (check_random(&random, 3)) {
        case 0: gasnet_get_bulk(back, to, slice(to, id, 0), n); break;
        case 1: gasnet_wait_syncnb(gasnet_get_nb(back, to, slice(to, id, 0), n)); break;
        default:
            gasnet_begin_nbi_accessregion();
            gasnet_get_nbi_bulk(back, to, slice(to, id, 0), n / 2);
            gasnet_get_nbi_bulk(back + n / 2, to, slice(to, id, 0) + n / 2, n - n / 2);
            gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
            break;
    }
    check_same(back, n, pattern, "a get after a put");

    h[0] = gasnet_put_nb_val(to, slice(to, id, 2), pattern, 8);
    h[1] = gasnet_memset_nb(to, slice(to, id, 2) + 8, (int)(pattern & 0xff), 24);
    gasnet_wait_syncnb_all(h, 2);
    value = gasnet_get_val(to, slice(to, id, 2), 8);
    CHECK(value == pattern, "a value of 0x%lx instead of 0x%x", (unsigned long)value, (unsigned)pattern);
    gasnet_get(back, to, slice(to, id, 2) + 8, 24);
    check_constant(back, 24, (int)(pattern & 0xff), "a memset");

    CHECK_OK(gasnet_AMRequestShort2(to, H_SHORT, id, ~id));
    await(id);
    CHECK_OK(gasnet_AMRequestLong2(to, H_LONG, buf, n, slice(to, id, 1), id, (gasnet_handlerarg_t)pattern));
    await(id);
    if (n > gasnet_AMMaxMedium()) n = gasnet_AMMaxMedium();
    CHECK_OK(gasnet_AMRequestMedium2(to, H_MEDIUM, buf, n, id, (gasnet_handlerarg_t)pattern));
    await(id);
}

static volatile int first_round;

static void worker(int id) {
    int i;
    for (i = 0; i < iters; i++) {
        work(id, i);
        if (id == 0) check_alive("threads at work");
    }
}

static void short_lived(int id) { work(id, first_round); }

/* As many threads as a process may have, including the main thread, all alive at once. Some of
 * them work, one by one, since more would only wait for a CPU. */
static pthread_barrier_t meeting;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void crowd_member(int id) {
    gasnet_node_t to = partner(gasnet_mynode(), id);
    gasnet_put_val(to, slice(to, id, 3), (gasnet_register_value_t)id, 1);
    gasnet_AMPoll();
    pthread_barrier_wait(&meeting);
    if (id % 16 == 15 || id >= MOST - 4) {
        pthread_mutex_lock(&turn);
        work(id, -1);
        pthread_mutex_unlock(&turn);
    }
    pthread_barrier_wait(&meeting);
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {{H_SHORT, short_h},
                                     {H_MEDIUM, medium_h},
                                     {H_LONG, long_h},
                                     {H_BACK, back_h},
                                     {H_MEDIUM_BACK, medium_back_h}};
    int dynamic = 0, i;

    check_init("testthreads", &argc, &argv);
    for (i = 1; i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "-d")) dynamic = 1;
        else check_usage(USAGE);
    }
    threads = (int)check_arg(argc, argv, i, 4);
    iters = (int)check_arg(argc, argv, i + 1, 50);
    if (threads < 1 || threads >= MOST || iters < 1 || argc > i + 2) check_usage(USAGE);
    for (i = 0; i < MOST; i++) {
        gasnett_atomic_set(&expected[i], 0, 0);
        gasnett_atomic_set(&answered[i], 0, 0);
    }
    check_attach(table, 5, (size_t)MOST * SLICE);

    check_barrier();
    if (!dynamic) check_join(check_start(threads, 0, worker), threads);
    for (i = 0; i < (dynamic ? iters : 2 * MOST / threads); i++) { /* more than may live at once */
        check_alive("threads that come and go");
        first_round = i;
        check_join(check_start(threads, 0, short_lived), threads);
    }
    check_barrier();
    check_alive("as many threads as there may be");
    pthread_barrier_init(&meeting, NULL, MOST - 1);
    check_join(check_start(MOST - 1, 0, crowd_member), MOST - 1);
    check_barrier();
    check_done();
}
