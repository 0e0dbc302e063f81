/* testam: round trips, ping-pong and floods of active messages of every kind and growing size,
 * checked and timed in a table. */
/* faults: flip_am flip_arg drop_am */
/* args: 10 64K */
/* nodes: any */
/* threads: both */
#include "check.h"

#define USAGE "[-in|-out] [-p pollers] [-c] [iterations 100] [largest size 256K] [sections SMLA]\n" \
    "  -in -out  source inside or outside the segment (in)\n" \
    "  -p        threads that poll meanwhile (PAR)\n" \
    "  -c        pairs across the two halves of the job instead of neighbours\n" \
    "  sections: S Short, M Medium, L Long, A LongAsync\n"

enum kind { SHORT, MEDIUM, LONG, LONG_ASYNC, KINDS };
static const char *const kinds[] = {"Short", "Medium", "Long", "LongAsync"};

/* The target's answer to a request: none, an empty reply, or a reply of the same kind and
 * size. */
enum answer { NONE, EMPTY, SAME };

#define H_SHORT 201
#define H_MEDIUM 202
#define H_LONG 203
#define H_SHORT_BACK 204
#define H_MEDIUM_BACK 205
#define H_LONG_BACK 206

static gasnet_node_t peer;
static size_t max = 256 * 1024;
static char *source;
static int initiator, iters;
static gasnett_atomic_t requests = gasnett_atomic_init(0), replies = gasnett_atomic_init(0);

/* Argument 0: the pattern, or 0 for an unchecked payload. Argument 1: enum answer. */
static void payload(const void *buf, size_t n, gasnet_handlerarg_t pattern, const char *what) {
    if (pattern) check_same(buf, n, (uint64_t)(uint32_t)pattern, what);
}

static void arguments(gasnet_handlerarg_t pattern, gasnet_handlerarg_t answer, gasnet_handlerarg_t check) {
    CHECK(check == ~(pattern ^ answer), "arguments 0x%x 0x%x 0x%x", (unsigned)pattern, (unsigned)answer,
          (unsigned)check);
}

static void short_h(gasnet_token_t token, gasnet_handlerarg_t pattern, gasnet_handlerarg_t answer,
                    gasnet_handlerarg_t check) {
    arguments(pattern, answer, check);
    gasnett_atomic_increment(&requests, GASNETT_ATOMIC_REL);
    if (answer != NONE) CHECK_OK(gasnet_AMReplyShort3(token, H_SHORT_BACK, pattern, answer, check));
}

static void medium_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t pattern,
                     gasnet_handlerarg_t answer, gasnet_handlerarg_t check) {
    arguments(pattern, answer, check);
    payload(buf, n, pattern, "a Medium");
    gasnett_atomic_increment(&requests, GASNETT_ATOMIC_REL);
    if (answer == SAME) CHECK_OK(gasnet_AMReplyMedium3(token, H_MEDIUM_BACK, buf, n, pattern, answer, check));
    if (answer == EMPTY) CHECK_OK(gasnet_AMReplyShort3(token, H_SHORT_BACK, pattern, answer, check));
}

static void long_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t pattern, gasnet_handlerarg_t answer,
                   gasnet_handlerarg_t check) {
    arguments(pattern, answer, check);
    payload(buf, n, pattern, "a Long");
    gasnett_atomic_increment(&requests, GASNETT_ATOMIC_REL);
    if (answer == SAME)
        CHECK_OK(gasnet_AMReplyLong3(token, H_LONG_BACK, buf, n, check_at(peer, max), pattern, answer, check));
    if (answer == EMPTY) CHECK_OK(gasnet_AMReplyShort3(token, H_SHORT_BACK, pattern, answer, check));
}

static void short_back_h(gasnet_token_t token, gasnet_handlerarg_t pattern, gasnet_handlerarg_t answer,
                         gasnet_handlerarg_t check) {
    (void)token;
    arguments(pattern, answer, check);
    gasnett_atomic_increment(&replies, GASNETT_ATOMIC_REL);
}

static void data_back_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t pattern,
                        gasnet_handlerarg_t answer, gasnet_handlerarg_t check) {
    (void)token;
    arguments(pattern, answer, check);
    payload(buf, n, pattern, "a reply");
    gasnett_atomic_increment(&replies, GASNETT_ATOMIC_REL);
}

static void send(enum kind kind, size_t n, gasnet_handlerarg_t pattern, gasnet_handlerarg_t answer) {
    gasnet_handlerarg_t check = ~(pattern ^ answer);
    int rc = GASNET_OK;
    switch (kind) {
        case SHORT: rc = gasnet_AMRequestShort3(peer, H_SHORT, pattern, answer, check); break;
        case MEDIUM: rc = gasnet_AMRequestMedium3(peer, H_MEDIUM, source, n, pattern, answer, check); break;
        case LONG:
            rc = gasnet_AMRequestLong3(peer, H_LONG, source, n, check_at(peer, 0), pattern, answer, check);
            break;
        default:
            rc = gasnet_AMRequestLongAsync3(peer, H_LONG, source, n, check_at(peer, 0), pattern, answer, check);
            break;
    }
    CHECK(rc == GASNET_OK, "a %s of %lu bytes returned %s", kinds[kind], (unsigned long)n, gasnet_ErrorName(rc));
}

static unsigned got(gasnett_atomic_t *counter) { return (unsigned)gasnett_atomic_read(counter, GASNETT_ATOMIC_ACQ); }

/* Requests and replies that this rank must have received by now. */
static unsigned due_requests, due_replies;

/* `n` requests; each waits for its answer before the next. */
static void round_trips(enum kind kind, size_t size, int n, gasnet_handlerarg_t pattern, enum answer answer) {
    int i;
    if (peer == gasnet_mynode() || !initiator) due_requests += (unsigned)n;
    if (!initiator) return;
    for (i = 0; i < n; i++) {
        send(kind, size, pattern, answer);
        due_replies++;
        GASNET_BLOCKUNTIL(got(&replies) == due_replies);
    }
}

/* `n` requests there and `n` back, in turn, without replies (LongAsync needs a reply, so it is
 * not used here). */
static void ping_pong(enum kind kind, size_t size, int n) {
    int i;
    for (i = 0; i < n; i++) {
        if (initiator) send(kind, size, 0, NONE);
        due_requests++;
        GASNET_BLOCKUNTIL(got(&requests) >= due_requests);
        if (!initiator) send(kind, size, 0, NONE);
    }
}

/* `n` requests at once, then their answers. */
static void flood(enum kind kind, size_t size, int n) {
    int i;
    if (peer == gasnet_mynode() || !initiator) due_requests += (unsigned)n;
    if (!initiator) return;
    for (i = 0; i < n; i++) send(kind, size, 0, EMPTY);
    due_replies += (unsigned)n;
    GASNET_BLOCKUNTIL(got(&replies) == due_replies);
}

static double began;

static void start(void) {
    check_barrier();
    began = check_now();
}

static double finish(void) {
    double us = (check_now() - began) / iters / 1000;
    check_barrier();
    CHECK(got(&requests) == due_requests, "%u requests came instead of %u", got(&requests), due_requests);
    CHECK(got(&replies) == due_replies, "%u replies came instead of %u", got(&replies), due_replies);
    return us;
}

static void measure(enum kind kind, size_t size) {
    gasnet_handlerarg_t pattern = (gasnet_handlerarg_t)(check_mix(size) | 1);
    double us[4];
    check_alive(kinds[kind]);
    check_fill(source, size, (uint64_t)(uint32_t)pattern);
    start();
    round_trips(kind, size, 3, pattern, SAME);
    round_trips(kind, size, 3, pattern, EMPTY);
    finish();
    start();
    round_trips(kind, size, iters, 0, SAME);
    us[0] = finish();
    start();
    round_trips(kind, size, iters, 0, EMPTY);
    us[1] = finish();
    start();
    if (kind != LONG_ASYNC) ping_pong(kind, size, iters);
    us[2] = finish();
    start();
    flood(kind, size, iters);
    us[3] = finish();
    if (gasnet_mynode() == 0) {
        printf("%-10s %9lu %11.3f %11.3f ", kinds[kind], (unsigned long)size, us[0], us[1]);
        if (kind == LONG_ASYNC) printf("%11s", "-");
        else printf("%11.3f", us[2] / 2);
        printf(" %11.3f %11.1f\n", us[3], us[3] > 0 ? (double)size / us[3] / 1.048576 : 0);
    }
}

static volatile int stop;

#if CHECK_PAR
static void poller(int id) {
    (void)id;
    GASNET_BLOCKUNTIL(stop);
}
#endif

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {{H_SHORT, short_h},           {H_MEDIUM, medium_h},
                                     {H_LONG, long_h},             {H_SHORT_BACK, short_back_h},
                                     {H_MEDIUM_BACK, data_back_h}, {H_LONG_BACK, data_back_h}};
    const char *sections = "SMLA";
    int in = 1, cross = 0, pollers = 0, i, kind;
    gasnet_node_t me, n;

    check_init("testam", &argc, &argv);
    for (i = 1; i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "-in")) in = 1;
        else if (!strcmp(argv[i], "-out")) in = 0;
        else if (!strcmp(argv[i], "-p") && i + 1 < argc) pollers = atoi(argv[++i]);
        else if (!strcmp(argv[i], "-c")) cross = 1;
        else check_usage(USAGE);
    }
    iters = (int)check_arg(argc, argv, i, 100);
    max = check_arg(argc, argv, i + 1, max);
    if (i + 2 < argc) sections = argv[i + 2];
    if (iters < 1 || max < 1 || argc > i + 3) check_usage(USAGE);
    check_attach(table, 6, 3 * max);
    me = gasnet_mynode();
    n = gasnet_nodes();
    peer = check_peer();
    initiator = me % 2 == 0;
    if (cross && n % 2 == 0) {
        peer = me < n / 2 ? me + n / 2 : me - n / 2;
        initiator = me < n / 2;
    }
    source = in ? check_at(me, 2 * max) : (char *)malloc(max);
    if (me == 0)
        printf("testam: us, %d ranks, rank 0 with %d, %d iterations, source %s the segment\n"
               "%-10s %9s %11s %11s %11s %11s %11s\n",
               (int)n, (int)peer, iters, in ? "in" : "outside", "kind", "bytes", "round trip", "short reply", "one way",
               "flood", "flood MB/s");
    {
#if CHECK_PAR
        struct check_thread *threads = check_start(pollers, 0, poller);
#else
        (void)pollers;
        (void)stop;
#endif
        for (kind = 0; kind < KINDS; kind++) {
            size_t size, most = kind == SHORT ? 0 : kind == MEDIUM ? gasnet_AMMaxMedium() : gasnet_AMMaxLongRequest();
            int last = 0;
            if (!strchr(sections, "SMLA"[kind])) continue;
            if (kind > MEDIUM && gasnet_AMMaxLongReply() < most) most = gasnet_AMMaxLongReply();
            if (most > max) most = max;
            for (size = 0; !last; size = size ? size * 4 : 1) {
                last = size >= most;
                measure((enum kind)kind, last ? most : size);
            }
        }
#if CHECK_PAR
        stop = 1;
        check_join(threads, pollers);
#endif
    }
    check_done();
}
