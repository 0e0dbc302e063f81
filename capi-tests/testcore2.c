/* testcore2: Mediums, Longs and LongAsyncs of all sizes, many in flight, echoed by the target
 * and checked on both sides. */
/* faults: flip_am flip_arg drop_am */
/* args: 4 64K 8 */
/* nodes: any */
/* threads: both */
#include "check.h"

#define USAGE "[-p] [-u] [-s] [-n] [-in|-out] [-m] [-l] [-a] [iterations 10] [largest size 256K] [depth 16]\n" \
    "  -p        another thread polls (PAR)\n" \
    "  -u        unaligned addresses\n" \
    "  -s        one message in flight\n" \
    "  -n        replies carry no data\n" \
    "  -in -out  source inside or outside the segment (in)\n" \
    "  -m -l -a  only Mediums, Longs, LongAsyncs\n"

enum kind { MEDIUM, LONG, LONG_ASYNC, KINDS };
static const char *const kinds[] = {"Medium", "Long", "LongAsync"};

#define H_MEDIUM 201
#define H_LONG 202
#define H_MEDIUM_BACK 203
#define H_LONG_BACK 204
#define H_EMPTY_BACK 205

/* Every slot has `stride` bytes; a segment has `depth` slots each for sources, requests and
 * echoes. */
static size_t depth = 16, stride, max = 256 * 1024;
static int echo = 1, odd;
static gasnet_node_t peer;
static gasnett_atomic_t answers = gasnett_atomic_init(0);

static char *request_slot(gasnet_node_t node, size_t i) { return check_at(node, i * stride) + odd; }
static char *echo_slot(gasnet_node_t node, size_t i) { return check_at(node, (depth + i) * stride) + odd; }

/* The pattern of a message: its sender, round and slot. */
static uint64_t pattern(gasnet_node_t sender, int round, int slot, size_t n) {
    return check_mix(sender * UINT64_C(1000003) + (uint64_t)round * 4096 + (uint64_t)slot) + n;
}

static void verify(gasnet_node_t sender, int round, int slot, const void *buf, size_t n, const char *what) {
    char text[100];
    snprintf(text, sizeof text, "%s, round %d, slot %d", what, round, slot);
    check_same(buf, n, pattern(sender, round, slot, n), text);
}

static gasnet_node_t source(gasnet_token_t token) {
    gasnet_node_t from = (gasnet_node_t)-1;
    CHECK_OK(gasnet_AMGetMsgSource(token, &from));
    CHECK(from == peer, "a message from rank %d instead of %d", (int)from, (int)peer);
    return from;
}

static int sound(gasnet_handlerarg_t round, gasnet_handlerarg_t slot, gasnet_handlerarg_t check) {
    CHECK(check == ~(round * 31 + slot) && slot >= 0 && (size_t)slot < depth, "arguments %d, %d, %d", round, slot,
          check);
    return slot >= 0 && (size_t)slot < depth;
}

static void medium_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t round, gasnet_handlerarg_t slot,
                     gasnet_handlerarg_t check) {
    if (sound(round, slot, check)) verify(source(token), round, slot, buf, n, "Medium request");
    CHECK_OK(echo ? gasnet_AMReplyMedium3(token, H_MEDIUM_BACK, buf, n, round, slot, check)
                  : gasnet_AMReplyShort3(token, H_EMPTY_BACK, round, slot, check));
}

static void long_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t round, gasnet_handlerarg_t slot,
                   gasnet_handlerarg_t check) {
    if (!sound(round, slot, check)) return;
    CHECK(buf == request_slot(gasnet_mynode(), (size_t)slot), "a Long came to %p instead of %p", buf,
          (void *)request_slot(gasnet_mynode(), (size_t)slot));
    verify(source(token), round, slot, buf, n, "Long request");
    CHECK_OK(echo ? gasnet_AMReplyLong3(token, H_LONG_BACK, buf, n, echo_slot(peer, (size_t)slot), round, slot, check)
                  : gasnet_AMReplyShort3(token, H_EMPTY_BACK, round, slot, check));
}

static void medium_back_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t round,
                          gasnet_handlerarg_t slot, gasnet_handlerarg_t check) {
    source(token);
    if (sound(round, slot, check)) verify(gasnet_mynode(), round, slot, buf, n, "Medium reply");
    gasnett_atomic_increment(&answers, GASNETT_ATOMIC_REL);
}

static void long_back_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t round, gasnet_handlerarg_t slot,
                        gasnet_handlerarg_t check) {
    source(token);
    if (sound(round, slot, check)) {
        CHECK(buf == echo_slot(gasnet_mynode(), (size_t)slot), "a Long reply came to %p", buf);
        verify(gasnet_mynode(), round, slot, buf, n, "Long reply");
    }
    gasnett_atomic_increment(&answers, GASNETT_ATOMIC_REL);
}

static void empty_back_h(gasnet_token_t token, gasnet_handlerarg_t round, gasnet_handlerarg_t slot,
                         gasnet_handlerarg_t check) {
    source(token);
    sound(round, slot, check);
    gasnett_atomic_increment(&answers, GASNETT_ATOMIC_REL);
}

/* One round: a message from every slot, then all answers. */
static void round_of(enum kind kind, int round, size_t n, char *from) {
    size_t i;
    gasnett_atomic_set(&answers, 0, 0);
    for (i = 0; i < depth; i++) {
        int r = round, s = (int)i, check = ~(r * 31 + s), rc = 0;
        char *src = from + i * stride + odd;
        check_fill(src, n, pattern(gasnet_mynode(), r, s, n));
        switch (kind) {
            case MEDIUM: rc = gasnet_AMRequestMedium3(peer, H_MEDIUM, src, n, r, s, check); break;
            case LONG: rc = gasnet_AMRequestLong3(peer, H_LONG, src, n, request_slot(peer, i), r, s, check); break;
            default: rc = gasnet_AMRequestLongAsync3(peer, H_LONG, src, n, request_slot(peer, i), r, s, check); break;
        }
        CHECK_OK(rc);
        if (kind != LONG_ASYNC) memset(src, 0xee, n); /* the source may be reused at once */
    }
    GASNET_BLOCKUNTIL(gasnett_atomic_read(&answers, GASNETT_ATOMIC_ACQ) == depth);
}

static volatile int stop;

#if CHECK_PAR
static void poller(int id) {
    (void)id;
    GASNET_BLOCKUNTIL(stop);
}
#endif

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {{H_MEDIUM, medium_h},           {H_LONG, long_h},
                                     {H_MEDIUM_BACK, medium_back_h}, {H_LONG_BACK, long_back_h},
                                     {H_EMPTY_BACK, empty_back_h}};
    int only = -1, in = 1, pollers = CHECK_PAR, i, iters, kind, round = 0;
    size_t n;
    char *from;

    check_init("testcore2", &argc, &argv);
    for (i = 1; i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "-p")) pollers = 1;
        else if (!strcmp(argv[i], "-u")) odd = 3;
        else if (!strcmp(argv[i], "-s")) depth = 1;
        else if (!strcmp(argv[i], "-n")) echo = 0;
        else if (!strcmp(argv[i], "-in")) in = 1;
        else if (!strcmp(argv[i], "-out")) in = 0;
        else if (!strcmp(argv[i], "-m")) only = MEDIUM;
        else if (!strcmp(argv[i], "-l")) only = LONG;
        else if (!strcmp(argv[i], "-a")) only = LONG_ASYNC;
        else check_usage(USAGE);
    }
    iters = (int)check_arg(argc, argv, i, 10);
    max = check_arg(argc, argv, i + 1, max);
    depth = depth == 1 ? 1 : check_arg(argc, argv, i + 2, depth);
    if (iters < 1 || max < 1 || depth < 1 || argc > i + 3) check_usage(USAGE);
    stride = (max + 7) / 8 * 8 + 8;
    check_attach(table, 5, 3 * depth * stride);
    peer = check_peer();
    from = in ? check_at(gasnet_mynode(), 2 * depth * stride) : (char *)malloc(depth * stride);
    {
#if CHECK_PAR
        struct check_thread *threads = check_start(pollers, 0, poller);
#else
        (void)pollers;
        (void)stop;
#endif
        for (kind = 0; kind < KINDS; kind++) {
            size_t most = kind == MEDIUM ? gasnet_AMMaxMedium() : gasnet_AMMaxLongRequest();
            int last = 0;
            if (only >= 0 && kind != only) continue;
            if (kind != MEDIUM && echo && gasnet_AMMaxLongReply() < most) most = gasnet_AMMaxLongReply();
            if (most > max) most = max;
            for (n = 0; !last; n = n * 3 + 1) {
                last = n >= most;
                if (last) n = most;
                check_alive(kinds[kind]);
                for (i = 0; i < iters; i++) round_of((enum kind)kind, round++, n, from);
            }
            check_barrier();
        }
#if CHECK_PAR
        stop = 1;
        check_join(threads, pollers);
#endif
    }
    check_done();
}
