/* testmedium: Mediums of all sizes up to the largest: each as a request and as a reply, then
 * floods of random ones between all ranks, the rank itself included, in both directions. Every
 * byte is checked, also after the handler has replied. */
/* faults: flip_am flip_arg drop_am */
/* args: 60 */
/* nodes: any */
/* threads: both */
#include "check.h"

#define USAGE "[messages of a flood 200] [threads in PAR 3]\n"
#define MOST 65536

enum { H_MEDIUM = 201, H_MANY, H_DONE, H_DATA, H_DATA_MANY };
/* The answer of a request: none, a Short, a Medium. */
enum { NONE, EMPTY, DATA, ANSWERS };

static size_t largest;
static int messages, threads;
static gasnett_atomic_t requests = gasnett_atomic_init(0), replies = gasnett_atomic_init(0);

static unsigned got(gasnett_atomic_t *counter) { return (unsigned)gasnett_atomic_read(counter, GASNETT_ATOMIC_ACQ); }

static void check_payload(const void *buf, size_t n, gasnet_handlerarg_t seed, gasnet_handlerarg_t bytes, const char *what) {
    CHECK(n == (size_t)bytes, "%lu bytes of %s instead of %d", (unsigned long)n, what, (int)bytes);
    CHECK((uintptr_t)buf % 8 == 0, "%s is at %p", what, buf);
    check_same(buf, n, (uint64_t)(uint32_t)seed, what);
}

/* The reply to a request with an odd seed has 16 arguments. */
static void answer(gasnet_token_t token, const void *buf, size_t n, gasnet_handlerarg_t seed, gasnet_handlerarg_t answer_bytes) {
    static __thread char out[MOST];
    gasnet_handlerarg_t back = seed + 1;
    gasnett_atomic_increment(&requests, GASNETT_ATOMIC_REL);
    if (answer_bytes == -1) return;
    if (answer_bytes == -2) {
        CHECK_OK(gasnet_AMReplyShort1(token, H_DONE, seed));
        return;
    }
    check_fill(out, (size_t)answer_bytes, (uint64_t)(uint32_t)back);
    if (seed & 1)
        CHECK_OK(gasnet_AMReplyMedium16(token, H_DATA_MANY, out, (size_t)answer_bytes, back, answer_bytes, 2, 3, 4, 5, 6, 7, 8,
                                        9, 10, 11, 12, 13, 14, ~back));
    else
        CHECK_OK(gasnet_AMReplyMedium3(token, H_DATA, out, (size_t)answer_bytes, back, answer_bytes, ~back));
    /* It may be reused now, and the payload of the request is still there. */
    memset(out, 0x55, (size_t)answer_bytes);
    check_same(buf, n, (uint64_t)(uint32_t)seed, "a request after the reply");
}

static void medium_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t seed, gasnet_handlerarg_t bytes,
                     gasnet_handlerarg_t answer_bytes, gasnet_handlerarg_t check) {
    CHECK(check == ~seed, "arguments 0x%x 0x%x", (unsigned)seed, (unsigned)check);
    check_payload(buf, n, seed, bytes, "a request");
    answer(token, buf, n, seed, answer_bytes);
}

#define ARGS12 \
    gasnet_handlerarg_t c, gasnet_handlerarg_t d, gasnet_handlerarg_t e, gasnet_handlerarg_t f, gasnet_handlerarg_t g, \
        gasnet_handlerarg_t h, gasnet_handlerarg_t i, gasnet_handlerarg_t j, gasnet_handlerarg_t k, \
        gasnet_handlerarg_t l, gasnet_handlerarg_t m, gasnet_handlerarg_t o

static void check_twelve(ARGS12) {
    CHECK(c == 3 && d == 4 && e == 5 && f == 6 && g == 7 && h == 8 && i == 9 && j == 10 && k == 11 && l == 12 && m == 13 &&
              o == 14,
          "wrong arguments");
}
#define NAMES12 c, d, e, f, g, h, i, j, k, l, m, o

static void many_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t seed, gasnet_handlerarg_t bytes,
                   gasnet_handlerarg_t answer_bytes, ARGS12, gasnet_handlerarg_t check) {
    check_twelve(NAMES12);
    medium_h(token, buf, n, seed, bytes, answer_bytes, check);
}

static void done_h(gasnet_token_t token, gasnet_handlerarg_t seed) {
    (void)token, (void)seed;
    gasnett_atomic_increment(&replies, GASNETT_ATOMIC_REL);
}

static void data_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t seed, gasnet_handlerarg_t bytes,
                   gasnet_handlerarg_t check) {
    (void)token;
    CHECK(check == ~seed, "arguments 0x%x 0x%x", (unsigned)seed, (unsigned)check);
    check_payload(buf, n, seed, bytes, "a reply");
    gasnett_atomic_increment(&replies, GASNETT_ATOMIC_REL);
}

static void data_many_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t seed, gasnet_handlerarg_t bytes,
                        gasnet_handlerarg_t two, ARGS12, gasnet_handlerarg_t check) {
    check_twelve(NAMES12);
    CHECK(two == 2, "wrong arguments");
    data_h(token, buf, n, seed, bytes, check);
}

/* A request of n bytes; `answer_bytes` of a Medium reply, or -1 for none, -2 for a Short. The
 * source is overwritten when the call has returned. */
static void send(gasnet_node_t to, char *source, size_t n, int seed, int answer_bytes) {
    gasnet_handlerarg_t s = seed, bytes = (gasnet_handlerarg_t)n, a = answer_bytes;
    check_fill(source, n, (uint64_t)(uint32_t)seed);
    if (seed & 2)
        CHECK_OK(gasnet_AMRequestMedium16(to, H_MANY, source, n, s, bytes, a, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, ~s));
    else
        CHECK_OK(gasnet_AMRequestMedium4(to, H_MEDIUM, source, n, s, bytes, a, ~s));
    memset(source, 0x55, n);
}

/* One at a time, to every rank. */
static void each_size(void) {
    const size_t sizes[] = {0, 1, 1919, 1920, 1921, 1983, 1984, 1985, 2047, 2048, 2049, 3839, 3840, 3841, 5760, 16384, 32768, 65535};
    char *source = (char *)malloc(MOST);
    unsigned due = 0;
    size_t i, k;
    for (i = 0; i < sizeof sizes / sizeof *sizes + 2; i++) {
        size_t n = i < sizeof sizes / sizeof *sizes ? sizes[i] : largest - (i & 1);
        if (n > largest) continue;
        for (k = 0; k < 4; k++) {
            gasnet_node_t to = (gasnet_node_t)((gasnet_mynode() + k) % gasnet_nodes());
            send(to, source, n, (int)(i * 4 + k), k % 2 ? (int)n : -2);
            due++;
            GASNET_BLOCKUNTIL(got(&replies) == due);
        }
        check_alive("sizes");
    }
    free(source);
    check_barrier();
    CHECK(got(&requests) == due, "%u requests came instead of %u", got(&requests), due);
    check_barrier();
}

static gasnett_atomic_t due_replies = gasnett_atomic_init(0), threads_left = gasnett_atomic_init(0);

/* Random messages to all ranks, half of them large, as many as resources allow. */
static void flood(int id) {
    char *source = (char *)malloc(MOST);
    uint64_t dice = check_mix((uint64_t)gasnet_mynode() * 1000 + (uint64_t)id + 7);
    int i;
    for (i = 0; i < messages; i++) {
        gasnet_node_t to = (gasnet_node_t)((gasnet_mynode() + (unsigned)i) % gasnet_nodes());
        size_t n = check_random(&dice, 2) ? check_random(&dice, largest + 1) : check_random(&dice, 2500);
        int back = (int)(check_random(&dice, 2) ? check_random(&dice, largest + 1) : check_random(&dice, 2500));
        size_t form = check_random(&dice, ANSWERS);
        if (n > largest) n = largest;
        if (back > (int)largest) back = (int)largest;
        if (form != NONE) gasnett_atomic_increment(&due_replies, 0);
        send(to, source, n, (int)(check_random(&dice, 1 << 20)), form == NONE ? -1 : form == EMPTY ? -2 : back);
        if (id == 0) check_alive("a flood");
    }
    free(source);
    gasnett_atomic_decrement(&threads_left, GASNETT_ATOMIC_REL);
    GASNET_BLOCKUNTIL(got(&threads_left) == 0 && got(&replies) == got(&due_replies));
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {{H_MEDIUM, (void (*)())medium_h},
                                     {H_MANY, (void (*)())many_h},
                                     {H_DONE, (void (*)())done_h},
                                     {H_DATA, (void (*)())data_h},
                                     {H_DATA_MANY, (void (*)())data_many_h}};
    const char *limit;
    unsigned before, due;

    check_init("testmedium", &argc, &argv);
    messages = (int)check_arg(argc, argv, 1, 200);
    threads = CHECK_PAR ? (int)check_arg(argc, argv, 2, 3) : 1;
    if (messages < 1 || threads < 1 || argc > 3) check_usage(USAGE);
    check_attach(table, 5, 65536);
    largest = gasnet_AMMaxMedium();
    limit = gasnett_getenv("GASNET_AM_MAX_MEDIUM");
    CHECK(limit ? largest == (size_t)gasnett_parse_int(limit, 1) : largest >= 65408, "gasnet_AMMaxMedium() is %lu",
          (unsigned long)largest);
    if (largest > MOST) check_usage("too small for this library\n");

    check_barrier();
    each_size();
    before = got(&requests);
    gasnett_atomic_set(&due_replies, got(&replies), 0);
    gasnett_atomic_set(&threads_left, (gasnett_atomic_val_t)threads, 0);
    check_barrier();
#if CHECK_PAR
    check_join(check_start(threads, 0, flood), threads);
#else
    flood(0);
#endif
    check_alive("the end of a flood");
    check_barrier();
    /* Each rank sends to all in turn. If that divides a flood, as many requests arrive here.
     * Those without a reply may arrive late. */
    due = before + (unsigned)(messages * threads);
    if (messages % (int)gasnet_nodes() == 0) {
        GASNET_BLOCKUNTIL(got(&requests) == due);
    }
    check_barrier();
    CHECK(got(&replies) == got(&due_replies), "%u replies came instead of %u", got(&replies), got(&due_replies));
    check_done();
}
