/* testcore4: active messages with 0 to 16 arguments of every kind, with random arguments and
 * payloads, in both directions. */
/* faults: flip_am flip_arg drop_am */
/* args: 3 32K */
/* nodes: any */
/* threads: both */
#include "arity.h"
#include "check.h"

/* testcore5.c includes this file, with the calls that have no number in their names. */
#ifndef TEST_NAME
#define TEST_NAME "testcore4"
#define REQUEST_SHORT(n, node, h) ARITY_CALL(gasnet_AMRequestShort##n, node, h ARITY_VALUES_##n(v))
#define REQUEST_MEDIUM(n, node, h, src, len) \
    ARITY_CALL(gasnet_AMRequestMedium##n, node, h, src, len ARITY_VALUES_##n(v))
#define REQUEST_LONG(n, node, h, src, len, to) \
    ARITY_CALL(gasnet_AMRequestLong##n, node, h, src, len, to ARITY_VALUES_##n(v))
#define REQUEST_ASYNC(n, node, h, src, len, to) \
    ARITY_CALL(gasnet_AMRequestLongAsync##n, node, h, src, len, to ARITY_VALUES_##n(v))
#define REPLY_SHORT(n, token, h) ARITY_CALL(gasnet_AMReplyShort##n, token, h ARITY_VALUES_##n(v))
#define REPLY_MEDIUM(n, token, h, src, len) \
    ARITY_CALL(gasnet_AMReplyMedium##n, token, h, src, len ARITY_VALUES_##n(v))
#define REPLY_LONG(n, token, h, src, len, to) \
    ARITY_CALL(gasnet_AMReplyLong##n, token, h, src, len, to ARITY_VALUES_##n(v))
#endif

#define USAGE "[iterations 10] [largest size 256K] [seed]"

enum kind { SHORT, MEDIUM, LONG, LONG_ASYNC, KINDS };
static const char *const kinds[] = {"Short", "Medium", "Long", "LongAsync"};

/* Handlers for n arguments: requests H_REQUEST + 20 * kind + n, replies H_REPLY + 20 * kind +
 * n; LongAsync counts as LONG. */
#define H_REQUEST 130
#define H_REPLY 190
#define STEP 20

static size_t max = 256 * 1024;
static uint64_t seed = 1;
static gasnet_node_t peer;
/* One request is in flight from each side, so both sides know its contents. */
static volatile int sent_number, answered_number;
static int received_number;

/* Argument `i` of message `number` from `node`. */
static gasnet_handlerarg_t argument(gasnet_node_t node, int number, int i) {
    return (gasnet_handlerarg_t)check_mix(seed + node * 77 + (uint64_t)number * 64 + (uint64_t)i);
}

/* The payload bytes of message `number` from `node`, at most `most`. */
static size_t length(gasnet_node_t node, int number, size_t most) {
    uint64_t r = check_mix(seed ^ check_mix(node + (uint64_t)number * 8));
    if (most > max) most = max;
    return (size_t)(r % 5 == 0 ? 0 : r % 5 == 1 ? most : r % 2 ? (r >> 8) % (most + 1) : (r >> 8) % 100 % (most + 1));
}

static uint64_t payload(gasnet_node_t node, int number) { return check_mix(seed + node * 31 + (uint64_t)number); }

static void arrived(const char *what, gasnet_node_t from, int number, const gasnet_handlerarg_t *got, int arity,
                    const void *buf, size_t n, size_t want) {
    char text[100];
    int i;
    snprintf(text, sizeof text, "%s with %d arguments, message %d", what, arity, number);
    for (i = 0; i < arity; i++)
        CHECK(got[i] == argument(from, number, i), "%s: argument %d is 0x%x instead of 0x%x", text, i, (unsigned)got[i],
              (unsigned)argument(from, number, i));
    CHECK(n == want, "%s: %lu bytes instead of %lu", text, (unsigned long)n, (unsigned long)want);
    if (n == want) check_same(buf, n, payload(from, number), text);
}

static void reply(enum kind kind, int arity, gasnet_token_t token, int number);

static void on_request(enum kind kind, gasnet_token_t token, void *buf, size_t n, const gasnet_handlerarg_t *got,
                       int arity) {
    gasnet_node_t from = (gasnet_node_t)-1;
    size_t most = kind == SHORT ? 0 : kind == MEDIUM ? gasnet_AMMaxMedium() : gasnet_AMMaxLongRequest();
    int number = ++received_number;
    CHECK_OK(gasnet_AMGetMsgSource(token, &from));
    CHECK(from == peer, "a request from rank %d instead of %d", (int)from, (int)peer);
    if (kind == LONG) CHECK(buf == check_at(gasnet_mynode(), 0), "a Long came to %p", buf);
    arrived(kinds[kind], peer, number, got, arity, buf, n, length(peer, number, most));
    reply(kind, arity, token, number);
}

static void on_reply(enum kind kind, gasnet_token_t token, void *buf, size_t n, const gasnet_handlerarg_t *got,
                     int arity) {
    size_t most = kind == SHORT ? 0 : kind == MEDIUM ? gasnet_AMMaxMedium() : gasnet_AMMaxLongReply();
    int number = sent_number;
    gasnet_node_t from = (gasnet_node_t)-1;
    CHECK_OK(gasnet_AMGetMsgSource(token, &from));
    CHECK(from == peer, "a reply from rank %d instead of %d", (int)from, (int)peer);
    if (kind == LONG) CHECK(buf == check_at(gasnet_mynode(), max), "a Long reply came to %p", buf);
    arrived("reply", peer, -number, got, arity, buf, n, length(peer, -number, most));
    gasnett_local_wmb();
    answered_number = number;
}

#define HANDLERS(n) \
    static void short_req_##n(gasnet_token_t token ARITY_PARAMS_##n) { \
        gasnet_handlerarg_t got[] = {0 ARITY_NAMES_##n}; \
        on_request(SHORT, token, NULL, 0, got + 1, n); \
    } \
    static void medium_req_##n(gasnet_token_t token, void *buf, size_t len ARITY_PARAMS_##n) { \
        gasnet_handlerarg_t got[] = {0 ARITY_NAMES_##n}; \
        on_request(MEDIUM, token, buf, len, got + 1, n); \
    } \
    static void long_req_##n(gasnet_token_t token, void *buf, size_t len ARITY_PARAMS_##n) { \
        gasnet_handlerarg_t got[] = {0 ARITY_NAMES_##n}; \
        on_request(LONG, token, buf, len, got + 1, n); \
    } \
    static void short_rep_##n(gasnet_token_t token ARITY_PARAMS_##n) { \
        gasnet_handlerarg_t got[] = {0 ARITY_NAMES_##n}; \
        on_reply(SHORT, token, NULL, 0, got + 1, n); \
    } \
    static void medium_rep_##n(gasnet_token_t token, void *buf, size_t len ARITY_PARAMS_##n) { \
        gasnet_handlerarg_t got[] = {0 ARITY_NAMES_##n}; \
        on_reply(MEDIUM, token, buf, len, got + 1, n); \
    } \
    static void long_rep_##n(gasnet_token_t token, void *buf, size_t len ARITY_PARAMS_##n) { \
        gasnet_handlerarg_t got[] = {0 ARITY_NAMES_##n}; \
        on_reply(LONG, token, buf, len, got + 1, n); \
    }
ARITIES(HANDLERS)

#define ENTRIES(n) \
    {H_REQUEST + STEP * SHORT + n, short_req_##n}, {H_REQUEST + STEP * MEDIUM + n, medium_req_##n}, \
    {H_REQUEST + STEP * LONG + n, long_req_##n}, {H_REPLY + STEP * SHORT + n, short_rep_##n}, \
    {H_REPLY + STEP * MEDIUM + n, medium_rep_##n}, {H_REPLY + STEP * LONG + n, long_rep_##n},

/* Sends message `number` with `n` arguments. */
#define SEND(n) \
    case n: \
        switch (kind) { \
            case SHORT: rc = REQUEST_SHORT(n, peer, h); break; \
            case MEDIUM: rc = REQUEST_MEDIUM(n, peer, h, src, len); break; \
            case LONG: rc = REQUEST_LONG(n, peer, h, src, len, check_at(peer, 0)); break; \
            default: rc = REQUEST_ASYNC(n, peer, h, src, len, check_at(peer, 0)); break; \
        } \
        break;

#define ANSWER(n) \
    case n: \
        switch (kind) { \
            case SHORT: rc = REPLY_SHORT(n, token, h); break; \
            case MEDIUM: rc = REPLY_MEDIUM(n, token, h, src, len); break; \
            default: rc = REPLY_LONG(n, token, h, src, len, check_at(peer, max)); break; \
        } \
        break;

static void reply(enum kind kind, int arity, gasnet_token_t token, int number) {
    static char *src;
    gasnet_handlerarg_t v[ARITY_MAX];
    gasnet_handler_t h = (gasnet_handler_t)(H_REPLY + STEP * (int)kind + arity);
    size_t most = kind == SHORT ? 0 : kind == MEDIUM ? gasnet_AMMaxMedium() : gasnet_AMMaxLongReply();
    size_t len = length(gasnet_mynode(), -number, most);
    int i, rc = GASNET_OK;
    if (!src) src = (char *)malloc(max);
    for (i = 0; i < arity; i++) v[i] = argument(gasnet_mynode(), -number, i);
    check_fill(src, len, payload(gasnet_mynode(), -number));
    switch (arity) { ARITIES(ANSWER) }
    CHECK(rc == GASNET_OK, "a reply with %d arguments returned %s", arity, gasnet_ErrorName(rc));
}

static void request(enum kind kind, int arity, int number, char *src) {
    gasnet_handlerarg_t v[ARITY_MAX];
    int filed = kind == LONG_ASYNC ? LONG : kind;
    gasnet_handler_t h = (gasnet_handler_t)(H_REQUEST + STEP * filed + arity);
    size_t most = kind == SHORT ? 0 : kind == MEDIUM ? gasnet_AMMaxMedium() : gasnet_AMMaxLongRequest();
    size_t len = length(gasnet_mynode(), number, most);
    int i, rc = GASNET_OK;
    for (i = 0; i < arity; i++) v[i] = argument(gasnet_mynode(), number, i);
    check_fill(src, len, payload(gasnet_mynode(), number));
    sent_number = number;
    gasnett_local_wmb();
    switch (arity) { ARITIES(SEND) }
    CHECK(rc == GASNET_OK, "a %s with %d arguments returned %s", kinds[kind], arity, gasnet_ErrorName(rc));
    GASNET_BLOCKUNTIL(answered_number == number);
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {ARITIES(ENTRIES)};
    int i, kind, arity, iters, number = 0;

    check_init(TEST_NAME, &argc, &argv);
    iters = (int)check_arg(argc, argv, 1, 10);
    max = check_arg(argc, argv, 2, max);
    seed = check_mix(check_arg(argc, argv, 3, seed));
    if (iters < 1 || max < 1 || argc > 4) check_usage(USAGE);
    check_attach(table, (int)(sizeof table / sizeof *table), 3 * max);
    peer = check_peer();
    CHECK(gasnet_AMMaxArgs() >= ARITY_MAX, "gasnet_AMMaxArgs is %lu", (unsigned long)gasnet_AMMaxArgs());

    for (i = 0; i < iters; i++) {
        check_alive("all arities");
        for (kind = 0; kind < KINDS; kind++)
            for (arity = 0; arity <= ARITY_MAX; arity++)
                request((enum kind)kind, arity, ++number, check_at(gasnet_mynode(), 2 * max));
    }
    check_barrier();
    CHECK(received_number == number, "%d requests came instead of %d", received_number, number);
    check_done();
}
