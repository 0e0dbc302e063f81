/* testflood: floods of active messages of random kind and size. Checks every payload, that
 * each request arrived once, and that each answer came. Ranks may stop polling for a while,
 * and handlers may be slow. */
/* faults: flip_am flip_arg drop_am */
/* args: -r 100 -w 3000 all */
/* nodes: any */
/* threads: both */
#include "check.h"

#define USAGE "[-r requests 500] [-t threads 1] [-w us 0] [-s ms 0] [-k kinds SMLA] [-l largest Long 5000] [-x seed 1] [-z]\n" \
    "                  [every-to-one|one-to-every|pairs|random|all]\n" \
    "  -r  requests of each thread that sends        -t  such threads of a process (PAR)\n" \
    "  -w  microseconds that each 16th handler takes  -s  milliseconds that each process once does not poll\n" \
    "  -k  S Short, M Medium, L Long, A LongAsync    -z  all of the largest size\n" \
    "  all (the default) is one pattern after the other\n"

enum kind { SHORT, MEDIUM, LONG, LONG_ASYNC, KINDS };
enum pattern { EVERY_TO_ONE, ONE_TO_EVERY, PAIRS, RANDOM, PATTERNS };
static const char *const patterns[] = {"every-to-one", "one-to-every", "pairs", "random"};

#define H_SHORT 201
#define H_DATA 202
#define H_SHORT_BACK 203
#define H_DATA_BACK 204

/* A segment has three areas for each rank. They are the destination of its Longs to us, that of
 * its Long replies, and the source of our LongAsyncs to it. It also has the count that this rank
 * has sent us. A Long holds one of SLOTS pieces of each area, from before it is sent until its
 * answer arrives. So no two Longs use the same piece. */
enum area { DEST, BACK, SOURCE, AREAS };
#define SLOTS 2
struct sent {
    uint64_t count, sum;
};

static gasnet_node_t me, nodes;
static size_t largest = 5000, tables;
static int requests = 500, threads = 1, slow_us = 0, stop_ms = 0, all_largest = 0;
static uint64_t seed = 1;
static const char *kinds = "SMLA";
static enum pattern pattern;

/* Per rank: requests from it and the sum of their identities; requests that we sent to it. */
static gasnett_atomic64_t *came, *came_sum, *went, *went_sum;
static gasnett_atomic64_t answers = gasnett_atomic64_init(0), due_answers = gasnett_atomic64_init(0);
static gasnett_atomic64_t came_all = gasnett_atomic64_init(0);
/* Pieces in use: per rank, SLOTS for each thread. */
static gasnett_atomic_t *busy;

static size_t piece(gasnet_node_t other, int slot) { return (size_t)other * (size_t)(SLOTS * threads) + (size_t)slot; }

static char *place(gasnet_node_t owner, enum area area, gasnet_node_t other, int slot) {
    size_t pieces = (size_t)nodes * (size_t)(SLOTS * threads);
    return check_at(owner, ((size_t)area * pieces + piece(other, slot)) * largest);
}

static uint64_t content(gasnet_node_t source, gasnet_handlerarg_t index) {
    return check_mix(seed ^ check_mix(((uint64_t)source << 32) | (uint32_t)index));
}

/* The answer to a request: none, a Short, a Medium with as much of it as fits, a Long with all
 * of it. The slots of Longs are released by their answers. */
enum answer { NONE, EMPTY, MEDIUM_BACK, LONG_BACK };
static enum answer answer_to(gasnet_handlerarg_t index, int slot) {
    static const enum answer plain[] = {NONE, NONE, EMPTY, MEDIUM_BACK}, with_slot[] = {EMPTY, EMPTY, MEDIUM_BACK, LONG_BACK};
    size_t i = check_mix((uint64_t)(uint32_t)index ^ 77) % 4;
    return slot < 0 ? plain[i] : with_slot[i];
}

/* ---- handlers ---- */

static void data_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t index, gasnet_handlerarg_t slot,
                   gasnet_handlerarg_t size, gasnet_handlerarg_t check) {
    gasnet_node_t source = 0;
    size_t part = n < gasnet_AMMaxMedium() ? n : gasnet_AMMaxMedium();
    CHECK_OK(gasnet_AMGetMsgSource(token, &source));
    CHECK(check == ~(index ^ slot ^ size) && (size_t)size == n, "request 0x%x 0x%x 0x%x 0x%x of %lu bytes",
          (unsigned)index, (unsigned)slot, (unsigned)size, (unsigned)check, (unsigned long)n);
    check_same(buf, n, content(source, index), "a request");
    if ((index & 63) == 0) check_alive("a request");
    if (slow_us && (index & 15) == 0) usleep((useconds_t)slow_us);
    gasnett_atomic64_add(&came_sum[source], content(source, index), 0);
    gasnett_atomic64_add(&came[source], 1, 0);
    switch (answer_to(index, slot)) {
        case NONE: break;
        case EMPTY: CHECK_OK(gasnet_AMReplyShort4(token, H_SHORT_BACK, index, slot, 0, ~(index ^ slot))); break;
        case MEDIUM_BACK:
            CHECK_OK(gasnet_AMReplyMedium4(token, H_DATA_BACK, buf, part, index, slot, (gasnet_handlerarg_t)part,
                                           ~(index ^ slot ^ (gasnet_handlerarg_t)part)));
            break;
        default:
            CHECK_OK(gasnet_AMReplyLong4(token, H_DATA_BACK, buf, n, place(source, BACK, me, slot), index, slot, size,
                                         check));
            break;
    }
    gasnett_atomic64_add(&came_all, 1, GASNETT_ATOMIC_REL);
}

static void short_h(gasnet_token_t token, gasnet_handlerarg_t index, gasnet_handlerarg_t slot,
                    gasnet_handlerarg_t size, gasnet_handlerarg_t check) {
    data_h(token, NULL, 0, index, slot, size, check);
}

static void data_back_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t index, gasnet_handlerarg_t slot,
                        gasnet_handlerarg_t size, gasnet_handlerarg_t check) {
    gasnet_node_t source = 0;
    CHECK_OK(gasnet_AMGetMsgSource(token, &source));
    CHECK(check == ~(index ^ slot ^ size) && (size_t)size == n, "reply 0x%x 0x%x 0x%x 0x%x of %lu bytes",
          (unsigned)index, (unsigned)slot, (unsigned)size, (unsigned)check, (unsigned long)n);
    check_same(buf, n, content(me, index), "a reply");
    if (slot >= 0 && slot < SLOTS * threads)
        gasnett_atomic_set(&busy[piece(source, slot)], 0, GASNETT_ATOMIC_REL);
    gasnett_atomic64_add(&answers, 1, GASNETT_ATOMIC_REL);
}

static void short_back_h(gasnet_token_t token, gasnet_handlerarg_t index, gasnet_handlerarg_t slot,
                         gasnet_handlerarg_t size, gasnet_handlerarg_t check) {
    data_back_h(token, NULL, 0, index, slot, size, check);
}

/* ---- sending ---- */

static int free_slot(gasnet_node_t to, int thread) {
    int slot;
    for (slot = thread * SLOTS; slot < (thread + 1) * SLOTS; slot++)
        if (!gasnett_atomic_read(&busy[piece(to, slot)], GASNETT_ATOMIC_ACQ)) return slot;
    return -1;
}

static void send(gasnet_node_t to, gasnet_handlerarg_t index, int thread, char *buffer, uint64_t *dice) {
    enum kind kind = (enum kind)(strchr("SMLA", kinds[check_random(dice, strlen(kinds))]) - "SMLA");
    size_t most = kind == SHORT ? 0 : kind == MEDIUM ? gasnet_AMMaxMedium() : largest;
    size_t n = all_largest ? most : check_random(dice, most + 1);
    gasnet_handlerarg_t size = (gasnet_handlerarg_t)n, slot = -1, check;
    char *source = buffer, *dest = NULL;
    if (kind >= LONG) {
        GASNET_BLOCKUNTIL((slot = free_slot(to, thread)) >= 0);
        gasnett_atomic_set(&busy[piece(to, slot)], 1, 0);
        dest = place(to, DEST, me, slot);
        if (kind == LONG_ASYNC || check_random(dice, 2)) source = place(me, SOURCE, to, slot);
    }
    check = ~(index ^ slot ^ size);
    check_fill(source, n, content(me, index));
    gasnett_atomic64_add(&went_sum[to], content(me, index), 0);
    gasnett_atomic64_add(&went[to], 1, 0);
    if (answer_to(index, slot) != NONE) gasnett_atomic64_add(&due_answers, 1, 0);
    switch (kind) {
        case SHORT: CHECK_OK(gasnet_AMRequestShort4(to, H_SHORT, index, slot, size, check)); break;
        case MEDIUM: CHECK_OK(gasnet_AMRequestMedium4(to, H_DATA, source, n, index, slot, size, check)); break;
        case LONG: CHECK_OK(gasnet_AMRequestLong4(to, H_DATA, source, n, dest, index, slot, size, check)); break;
        default: CHECK_OK(gasnet_AMRequestLongAsync4(to, H_DATA, source, n, dest, index, slot, size, check)); break;
    }
}

static int sends(void) { return pattern != ONE_TO_EVERY || me == 0; }

/* Makes no library call for a while. */
static void stop(void) {
    if (stop_ms) usleep((useconds_t)stop_ms * 1000);
}

static void flood(int thread) {
    uint64_t dice = check_mix(seed ^ ((uint64_t)pattern << 48) ^ ((uint64_t)me << 16) ^ (uint64_t)thread);
    char *buffer = (char *)malloc(largest > gasnet_AMMaxMedium() ? largest : gasnet_AMMaxMedium());
    int i;
    for (i = 0; i < requests; i++) {
        gasnet_node_t to = 0;
        /* Rank 0 and ranks that do not send pause at the beginning, the others in the middle. */
        if (thread == 0 && me != 0 && i == requests / 2) stop();
        /* A few to each in turn, so that credits run out before chunks. */
        if (pattern == ONE_TO_EVERY) to = (gasnet_node_t)(i / 4 % (int)nodes);
        if (pattern == PAIRS) to = check_peer();
        if (pattern == RANDOM) to = (gasnet_node_t)check_random(&dice, nodes);
        if (i % 64 == 0) check_alive(patterns[pattern]);
        send(to, (gasnet_handlerarg_t)(((int)pattern * threads + thread) * requests + i), thread, buffer, &dice);
    }
    free(buffer);
}

static void run(void) {
    gasnet_node_t i;
    uint64_t expected = 0;
    struct sent *reported = (struct sent *)check_at(me, tables);
    check_barrier();
    if (me == 0 || !sends()) stop();
    if (sends()) {
#if CHECK_PAR
        struct check_thread *others = check_start(threads - 1, 1, flood);
        flood(0);
        GASNET_BLOCKUNTIL(gasnett_atomic64_read(&answers, GASNETT_ATOMIC_ACQ) == gasnett_atomic64_read(&due_answers, 0));
        check_join(others, threads - 1);
#else
        flood(0);
#endif
    }
    GASNET_BLOCKUNTIL(gasnett_atomic64_read(&answers, GASNETT_ATOMIC_ACQ) == gasnett_atomic64_read(&due_answers, 0));
    for (i = 0; i < nodes; i++) {
        struct sent sent;
        sent.count = gasnett_atomic64_read(&went[i], 0);
        sent.sum = gasnett_atomic64_read(&went_sum[i], 0);
        gasnet_put(i, check_at(i, tables + me * sizeof sent), &sent, sizeof sent);
    }
    check_barrier();
    for (i = 0; i < nodes; i++) expected += reported[i].count;
    GASNET_BLOCKUNTIL(gasnett_atomic64_read(&came_all, GASNETT_ATOMIC_ACQ) >= expected);
    check_barrier();
    for (i = 0; i < nodes; i++) {
        uint64_t count = gasnett_atomic64_read(&came[i], 0);
        CHECK(count == reported[i].count, "%lu requests of process %d came, it sent %lu", (unsigned long)count, (int)i,
              (unsigned long)reported[i].count);
        CHECK(gasnett_atomic64_read(&came_sum[i], 0) == reported[i].sum, "other requests of process %d came than it sent",
              (int)i);
    }
    if (me == 0) printf("%-13s done: %lu requests came to process 0\n", patterns[pattern], (unsigned long)expected);
    check_barrier();
}

static gasnett_atomic64_t *zeros(void) {
    gasnett_atomic64_t *all = (gasnett_atomic64_t *)malloc(nodes * sizeof *all);
    gasnet_node_t i;
    for (i = 0; i < nodes; i++) gasnett_atomic64_set(&all[i], 0, 0);
    return all;
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {
        {H_SHORT, short_h}, {H_DATA, data_h}, {H_SHORT_BACK, short_back_h}, {H_DATA_BACK, data_back_h}};
    int i, chosen = PATTERNS;
    size_t j, pieces;

    check_init("testflood", &argc, &argv);
    for (i = 1; i < argc && argv[i][0] == '-'; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "-z")) {
            all_largest = 1;
            continue;
        }
        if (!strcmp(argv[i], "-r")) requests = atoi(value);
        else if (!strcmp(argv[i], "-t")) threads = atoi(value);
        else if (!strcmp(argv[i], "-w")) slow_us = atoi(value);
        else if (!strcmp(argv[i], "-s")) stop_ms = atoi(value);
        else if (!strcmp(argv[i], "-k")) kinds = value;
        else if (!strcmp(argv[i], "-l")) largest = (size_t)gasnett_parse_int(value, 1);
        else if (!strcmp(argv[i], "-x")) seed = (uint64_t)atoi(value);
        else check_usage(USAGE);
        i++;
    }
    if (i < argc && strcmp(argv[i], "all") != 0) {
        for (chosen = 0; chosen < PATTERNS && strcmp(argv[i], patterns[chosen]) != 0; chosen++) continue;
        if (chosen == PATTERNS) check_usage(USAGE);
    }
    if (requests < 1 || threads < 1 || (!CHECK_PAR && threads > 1) || largest < 8 || i + 1 < argc || !*kinds ||
        strspn(kinds, "SMLA") != strlen(kinds))
        check_usage(USAGE);
    me = gasnet_mynode();
    nodes = gasnet_nodes();
    largest = (largest + 7) / 8 * 8;
    pieces = (size_t)nodes * (size_t)(SLOTS * threads);
    tables = AREAS * pieces * largest;
    came = zeros();
    came_sum = zeros();
    went = zeros();
    went_sum = zeros();
    busy = (gasnett_atomic_t *)malloc(pieces * sizeof *busy);
    for (j = 0; j < pieces; j++) gasnett_atomic_set(&busy[j], 0, 0);
    check_attach(table, 4, tables + nodes * sizeof(struct sent));
    memset(check_at(me, tables), 0, nodes * sizeof(struct sent));
    for (i = 0; i < PATTERNS; i++)
        if (chosen == PATTERNS || chosen == i) {
            pattern = (enum pattern)i;
            run();
        }
    check_done();
}
