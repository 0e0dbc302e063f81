/* testgasnet: a tour of the whole interface with every call at least once. It covers queries
 * before and after attach, registration, puts, gets, values, memset, regions, all forms of
 * sync, all 119 active message calls, and errors. */
/* faults: flip_put flip_get flip_am flip_arg skip_sync:portals skip_memset drop_am drop_op:portals */
/* args: */
/* nodes: any */
/* threads: both */
#include "arity.h"
#include "check.h"

#define SEGMENT (256 * 1024)
#define LARGE 70000

static gasnet_node_t peer;

/* ---- queries ---- */

static void before_attach(void) {
    uintptr_t local = gasnet_getMaxLocalSegmentSize(), global = gasnet_getMaxGlobalSegmentSize();
    gasnet_nodeinfo_t *info;
    gasnet_node_t i;

    CHECK(gasnet_nodes() > 0 && gasnet_mynode() < gasnet_nodes(), "rank %d of %d", (int)gasnet_mynode(),
          (int)gasnet_nodes());
#ifdef GASNET_SEGMENT_EVERYTHING
    CHECK(local == UINTPTR_MAX && global == local,
#else
    CHECK(local % GASNET_PAGESIZE == 0 && global % GASNET_PAGESIZE == 0 && local >= global && global > 0,
#endif
          "largest segments are 0x%lx here and 0x%lx everywhere", (unsigned long)local, (unsigned long)global);
    CHECK(gasnet_init(NULL, NULL) == GASNET_ERR_NOT_INIT, "a second gasnet_init is accepted");
    info = (gasnet_nodeinfo_t *)calloc(gasnet_nodes(), sizeof *info);
    CHECK_OK(gasnet_getNodeInfo(info, (int)gasnet_nodes()));
    for (i = 0; i < gasnet_nodes(); i++)
        CHECK(info[i].host < gasnet_nodes() && info[i].supernode < gasnet_nodes(), "rank %d: host %u, supernode %u",
              (int)i, (unsigned)info[i].host, (unsigned)info[i].supernode);
    free(info);
}

static void errors(void) {
    static const struct {
        int value;
        const char *name;
    } known[] = {{GASNET_OK, "GASNET_OK"},
                 {GASNET_ERR_NOT_INIT, "GASNET_ERR_NOT_INIT"},
                 {GASNET_ERR_RESOURCE, "GASNET_ERR_RESOURCE"},
                 {GASNET_ERR_BAD_ARG, "GASNET_ERR_BAD_ARG"},
                 {GASNET_ERR_NOT_READY, "GASNET_ERR_NOT_READY"},
                 {GASNET_ERR_BARRIER_MISMATCH, "GASNET_ERR_BARRIER_MISMATCH"}};
    size_t i;
    for (i = 0; i < sizeof known / sizeof *known; i++) {
        CHECK(!strcmp(gasnet_ErrorName(known[i].value), known[i].name), "%s is called %s", known[i].name,
              gasnet_ErrorName(known[i].value));
        CHECK(strlen(gasnet_ErrorDesc(known[i].value)) > 2, "%s has no description", known[i].name);
    }
    CHECK(gasnet_ErrorName(-12345) && gasnet_ErrorDesc(-12345), "an unknown error has no text");
}

static void after_attach(void) {
    gasnet_seginfo_t *twice = (gasnet_seginfo_t *)calloc(gasnet_nodes() + 1, sizeof *twice);
    gasnet_nodeinfo_t *info = (gasnet_nodeinfo_t *)calloc(gasnet_nodes(), sizeof *info);
    gasnet_node_t i, me = gasnet_mynode();

    CHECK(gasnet_attach(NULL, 0, 0, 0) == GASNET_ERR_NOT_INIT, "a second gasnet_attach is accepted");
    for (i = 0; i < gasnet_nodes(); i++)
        CHECK(check_seg[i].size == check_round(SEGMENT) && (uintptr_t)check_seg[i].addr % GASNET_PAGESIZE == 0,
              "segment of rank %d: %p, %lu bytes", (int)i, check_seg[i].addr, (unsigned long)check_seg[i].size);
    check_constant(check_at(me, 0), SEGMENT, 0, "a fresh segment");
    twice[1].addr = &twice;
    CHECK_OK(gasnet_getSegmentInfo(twice, 1)); /* fills no more than requested */
#ifdef GASNET_SEGMENT_EVERYTHING
    CHECK(!twice[0].addr && twice[0].size == UINTPTR_MAX, "%p, %lu bytes are not everything", twice[0].addr, (unsigned long)twice[0].size);
    twice[0].addr = check_seg[0].addr;
#endif
    CHECK(twice[0].addr == check_seg[0].addr && twice[1].addr == &twice, "gasnet_getSegmentInfo for one node");

    /* A segment that is mapped here is the same memory at its address plus the offset. */
    CHECK_OK(gasnet_getNodeInfo(info, (int)gasnet_nodes()));
    check_barrier();
    *(volatile uint32_t *)check_at(me, 64) = 1000 + me;
    check_barrier();
    for (i = 0; i < gasnet_nodes(); i++) {
        if (info[i].supernode != info[me].supernode) continue;
        CHECK(*(volatile uint32_t *)(check_at(i, 64) + info[i].offset) == 1000 + i,
              "rank %d: the mapped segment differs", (int)i);
    }
    CHECK_OK(gasnet_set_waitmode(GASNET_WAIT_SPIN));
    CHECK_OK(gasnet_set_waitmode(GASNET_WAIT_BLOCK));
    check_barrier();
    CHECK_OK(gasnet_set_waitmode(GASNET_WAIT_SPINBLOCK));
    check_barrier();
    free(twice);
    free(info);
}

/* ---- puts and gets ---- */

static unsigned char on_static[LARGE], to_static[LARGE];

/* One size from one kind of memory, in all forms; the partner does the same to the first half
 * of this segment. */
static void rma(unsigned char *from, unsigned char *to, size_t n, const char *memory) {
    char *there = check_at(peer, 0), what[100];
    uint64_t seed = check_mix(n + gasnet_mynode() * UINT64_C(1000003));
    gasnet_handle_t h;
    int form;

    snprintf(what, sizeof what, "%lu bytes, %s memory", (unsigned long)n, memory);
    for (form = 0; form < 8; form++) {
        check_fill(from, n, ++seed);
        memset(to, 0, n);
        switch (form) {
            case 0: gasnet_put(peer, there, from, n); break;
            case 1: gasnet_put_bulk(peer, there, from, n); break;
            case 2: /* the source may be reused at once */
                h = gasnet_put_nb(peer, there, from, n);
                memset(from, 0xee, n);
                gasnet_wait_syncnb(h);
                break;
            case 3:
                gasnet_put_nbi(peer, there, from, n);
                memset(from, 0xee, n);
                gasnet_wait_syncnbi_puts();
                break;
            case 4: gasnet_wait_syncnb(gasnet_put_nb_bulk(peer, there, from, n)); break;
            case 5:
                gasnet_put_nbi_bulk(peer, there, from, n);
                gasnet_wait_syncnbi_all();
                break;
            case 6:
                h = gasnet_put_nb_bulk(peer, there, from, n);
                GASNET_BLOCKUNTIL(gasnet_try_syncnb(h) == GASNET_OK);
                break;
            default: /* the functions behind the macros */
                (gasnet_put)(peer, there, from, n);
                break;
        }
        switch (form) {
            case 0: gasnet_get(to, peer, there, n); break;
            case 1: gasnet_get_bulk(to, peer, there, n); break;
            case 2: gasnet_wait_syncnb(gasnet_get_nb(to, peer, there, n)); break;
            case 3: gasnet_wait_syncnb(gasnet_get_nb_bulk(to, peer, there, n)); break;
            case 4:
                gasnet_get_nbi(to, peer, there, n);
                gasnet_wait_syncnbi_gets();
                break;
            case 5:
                gasnet_get_nbi_bulk(to, peer, there, n);
                GASNET_BLOCKUNTIL(gasnet_try_syncnbi_gets() == GASNET_OK);
                break;
            case 6:
                h = gasnet_get_nb_bulk(to, peer, there, n);
                while (gasnet_try_syncnb_nopoll(h) != GASNET_OK) gasnet_AMPoll();
                break;
            default: (gasnet_get)(to, peer, there, n); break;
        }
        check_same(to, n, seed, what);
    }
}

static void puts_and_gets(void) {
    static const size_t sizes[] = {0,  1,   2,    3,    4,    5,    7,    8,    9,    16,
                                   31, 64, 100, 1024, 2040, 2041, 2048, 2049, 8192, LARGE};
    unsigned char on_stack[8192], to_stack[8192];
    unsigned char *heap = (unsigned char *)malloc(2 * LARGE), *mine = (unsigned char *)check_at(gasnet_mynode(), 0);
    size_t i;
    check_alive("puts and gets");
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i];
        rma(heap, heap + LARGE, n, "heap");
        rma(on_static, to_static, n, "static");
        if (n <= sizeof on_stack) rma(on_stack, to_stack, n, "stack");
        if (n <= SEGMENT / 4) rma(mine + SEGMENT / 2, mine + SEGMENT / 4 * 3, n, "segment");
    }
    free(heap);
    check_barrier();
}

static void many_handles(void) {
    enum { N = 40 };
    gasnet_handle_t h[N];
    unsigned char from[N * 64], to[N * 64];
    int i, left, rc;

    check_alive("arrays of handles");
    check_fill(from, sizeof from, gasnet_mynode());
    for (i = 0; i < N; i++)
        h[i] = i % 5 == 0 ? GASNET_INVALID_HANDLE
                          : gasnet_put_nb_bulk(peer, check_at(peer, 64 * (size_t)i), from + 64 * i, 64);
    gasnet_wait_syncnb_all(h, N);
    for (i = 0; i < N; i++) CHECK(h[i] == GASNET_INVALID_HANDLE, "handle %d is still there", i);
    gasnet_put_bulk(peer, check_at(peer, 0), from, sizeof from);

    memset(to, 0, sizeof to);
    for (i = 0; i < N; i++) h[i] = gasnet_get_nb_bulk(to + 64 * i, peer, check_at(peer, 64 * (size_t)i), 64);
    for (left = N; left;) {
        gasnet_wait_syncnb_some(h, N);
        for (i = left = 0; i < N; i++) left += h[i] != GASNET_INVALID_HANDLE;
    }
    check_same(to, sizeof to, gasnet_mynode(), "gets awaited by some");

    memset(to, 0, sizeof to);
    for (i = 0; i < N; i++) h[i] = gasnet_get_nb_bulk(to + 64 * i, peer, check_at(peer, 64 * (size_t)i), 64);
    GASNET_BLOCKUNTIL((rc = gasnet_try_syncnb_all(h, N)) == GASNET_OK);
    check_same(to, sizeof to, gasnet_mynode(), "gets awaited by try_syncnb_all");
    CHECK(rc == GASNET_OK, "gasnet_try_syncnb_all: %s", gasnet_ErrorName(rc));

    memset(to, 0, sizeof to);
    for (i = 0; i < N; i++) h[i] = gasnet_get_nb_bulk(to + 64 * i, peer, check_at(peer, 64 * (size_t)i), 64);
    for (left = N; left;) {
        rc = gasnet_try_syncnb_some(h, N);
        if (rc != GASNET_OK) CHECK(rc == GASNET_ERR_NOT_READY, "gasnet_try_syncnb_some: %s", gasnet_ErrorName(rc));
        rc = gasnet_try_syncnb_some_nopoll(h, N);
        if (rc != GASNET_OK) CHECK(rc == GASNET_ERR_NOT_READY, "..._some_nopoll: %s", gasnet_ErrorName(rc));
        for (i = left = 0; i < N; i++) left += h[i] != GASNET_INVALID_HANDLE;
    }
    check_same(to, sizeof to, gasnet_mynode(), "gets awaited by try_syncnb_some");

    /* Nothing to wait for. */
    for (i = 0; i < N; i++) h[i] = GASNET_INVALID_HANDLE;
    gasnet_wait_syncnb(GASNET_INVALID_HANDLE);
    gasnet_wait_syncnb_all(h, N);
    gasnet_wait_syncnb_some(h, N);
    gasnet_wait_syncnb_all(NULL, 0);
    gasnet_wait_syncnb_some(NULL, 0);
    CHECK_OK(gasnet_try_syncnb(GASNET_INVALID_HANDLE));
    CHECK_OK(gasnet_try_syncnb_nopoll(GASNET_INVALID_HANDLE));
    CHECK_OK(gasnet_try_syncnb_all(h, N));
    CHECK_OK(gasnet_try_syncnb_some(h, N));
    CHECK_OK(gasnet_try_syncnb_all_nopoll(h, N));
    CHECK_OK(gasnet_try_syncnb_some_nopoll(h, N));
    gasnet_wait_syncnbi_puts();
    gasnet_wait_syncnbi_gets();
    gasnet_wait_syncnbi_all();
    CHECK_OK(gasnet_try_syncnbi_puts());
    CHECK_OK(gasnet_try_syncnbi_gets());
    CHECK_OK(gasnet_try_syncnbi_all());
    check_barrier();
}

static void regions(void) {
    unsigned char from[1024], to[1024];
    gasnet_handle_t h, other;
    size_t i;
    int round;

    check_alive("access regions");
    for (round = 0; round < 3; round++) {
        check_fill(from, sizeof from, gasnet_mynode() + (uint64_t)round);
        gasnet_begin_nbi_accessregion();
        for (i = 0; i < sizeof from; i += 16) gasnet_put_nbi(peer, check_at(peer, i), from + i, 16);
        gasnet_memset_nbi(peer, check_at(peer, 2048), 0x42, 100);
        gasnet_put_nbi_val(peer, check_at(peer, 4096), 0x1234, 2);
        h = gasnet_end_nbi_accessregion();
        gasnet_wait_syncnb(h);
        memset(to, 0, sizeof to);
        gasnet_begin_nbi_accessregion();
        other = gasnet_get_nb_bulk(to, peer, check_at(peer, 0), 16); /* not of the region */
        for (i = 16; i < sizeof to; i += 16) gasnet_get_nbi_bulk(to + i, peer, check_at(peer, i), 16);
        h = gasnet_end_nbi_accessregion();
        gasnet_wait_syncnb(other);
        gasnet_wait_syncnb(h);
        check_same(to, sizeof to, gasnet_mynode() + (uint64_t)round, "puts and gets of a region");
        gasnet_get(to, peer, check_at(peer, 2048), 101);
        check_constant(to, 100, 0x42, "a memset of a region");
        CHECK(gasnet_get_val(peer, check_at(peer, 4096), 2) == 0x1234, "a value of a region");
        gasnet_begin_nbi_accessregion(); /* an empty region */
        gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
    }
    check_barrier();
}

static void values_and_memset(void) {
    size_t n;
    unsigned char around[48];
    check_alive("values and memset");
    for (n = 1; n <= sizeof(gasnet_register_value_t); n++) {
        gasnet_register_value_t v = (gasnet_register_value_t)check_mix(n + gasnet_mynode());
        gasnet_register_value_t low = n == sizeof v ? v : v & (((gasnet_register_value_t)1 << 8 * n) - 1), got;
        char *there = check_at(peer, 24);
        gasnet_memset(peer, check_at(peer, 16), 0x5a, 24);
        gasnet_put_val(peer, there, v, n);
        got = gasnet_get_val(peer, there, n);
        CHECK(got == low, "value of %lu bytes: 0x%lx instead of 0x%lx", (unsigned long)n, (unsigned long)got,
              (unsigned long)low);
        gasnet_get(around, peer, check_at(peer, 16), 24);
        check_constant(around, 8, 0x5a, "memory before a value");
        check_constant(around + 8 + n, 16 - n, 0x5a, "memory after a value");
        gasnet_wait_syncnb(gasnet_put_nb_val(peer, there, ~v, n));
        got = gasnet_wait_syncnb_valget(gasnet_get_nb_val(peer, there, n));
        CHECK((got ^ low) == (n == sizeof v ? ~(gasnet_register_value_t)0 : ((gasnet_register_value_t)1 << 8 * n) - 1),
              "value of %lu bytes, non-blocking: 0x%lx", (unsigned long)n, (unsigned long)got);
        gasnet_put_nbi_val(peer, there, v, n);
        gasnet_wait_syncnbi_puts();
        CHECK(gasnet_get_val(peer, there, n) == low, "value of %lu bytes, implicit", (unsigned long)n);
    }
    for (n = 0; n <= 32; n += 8) {
        gasnet_memset(peer, check_at(peer, 0), 0, 48);
        gasnet_wait_syncnb(gasnet_memset_nb(peer, check_at(peer, 8), 0x1a7, n));
        gasnet_get(around, peer, check_at(peer, 0), 48);
        check_constant(around, 8, 0, "memory before a memset");
        check_constant(around + 8, n, 0xa7, "a memset");
        check_constant(around + 8 + n, 40 - n, 0, "memory after a memset");
    }
    check_barrier();
}

/* ---- active messages: the 119 calls as functions, handlers at indices chosen by attach ---- */

enum { SHORT, MEDIUM, LONG, KINDS };
#define BYTES 24
static gasnet_handlerentry_t *handlers;
static volatile int replied, bad_source;

/* Arguments of request and reply: one value for each position. */
static gasnet_handlerarg_t argument(int i) { return (gasnet_handlerarg_t)(0x9ABCDEF0u - (unsigned)i * 0x01010101u); }

static void check_message(gasnet_token_t token, const gasnet_handlerarg_t *got, int arity, const void *buf, size_t n) {
    gasnet_node_t from = (gasnet_node_t)-1;
    int i;
    for (i = 0; i < arity; i++)
        CHECK(got[i] == argument(i), "argument %d of %d is 0x%x", i, arity, (unsigned)got[i]);
    if (buf && n == BYTES) check_same(buf, n, 99, "a payload");
    else CHECK(!buf && n == 0, "a payload of %lu bytes", (unsigned long)n);
    if (gasnet_AMGetMsgSource(token, &from) != GASNET_OK || from != peer) bad_source = 1;
    CHECK(gasnet_AMGetMsgSource(token, NULL) == GASNET_ERR_BAD_ARG, "gasnet_AMGetMsgSource accepts NULL");
}

static void answer(int kind, int arity, gasnet_token_t token);

#define MESSAGE_HANDLERS(n) \
    static void short_req_##n(gasnet_token_t token ARITY_PARAMS_##n) { \
        gasnet_handlerarg_t got[] = {0 ARITY_NAMES_##n}; \
        check_message(token, got + 1, n, NULL, 0); \
        answer(SHORT, n, token); \
    } \
    static void medium_req_##n(gasnet_token_t token, void *buf, size_t len ARITY_PARAMS_##n) { \
        gasnet_handlerarg_t got[] = {0 ARITY_NAMES_##n}; \
        check_message(token, got + 1, n, buf, len); \
        answer(MEDIUM, n, token); \
    } \
    static void long_req_##n(gasnet_token_t token, void *buf, size_t len ARITY_PARAMS_##n) { \
        gasnet_handlerarg_t got[] = {0 ARITY_NAMES_##n}; \
        check_message(token, got + 1, n, buf, len); \
        answer(LONG, n, token); \
    } \
    static void short_rep_##n(gasnet_token_t token ARITY_PARAMS_##n) { \
        gasnet_handlerarg_t got[] = {0 ARITY_NAMES_##n}; \
        check_message(token, got + 1, n, NULL, 0); \
        replied++; \
    } \
    static void data_rep_##n(gasnet_token_t token, void *buf, size_t len ARITY_PARAMS_##n) { \
        gasnet_handlerarg_t got[] = {0 ARITY_NAMES_##n}; \
        check_message(token, got + 1, n, buf, len); \
        replied++; \
    }
ARITIES(MESSAGE_HANDLERS)

/* Five handlers for each number of arguments, in this order in the table; index 0 leaves the
 * choice to attach. */
enum { SHORT_REQ, MEDIUM_REQ, LONG_REQ, SHORT_REP, DATA_REP, ROWS };
#define MESSAGE_ENTRIES(n) \
    {0, short_req_##n}, {0, medium_req_##n}, {0, long_req_##n}, {0, short_rep_##n}, {0, data_rep_##n},
static gasnet_handler_t index_of(int arity, int row) { return handlers[1 + arity * ROWS + row].index; }

/* The destinations of the partner's requests and replies. */
static char *request_place(gasnet_node_t node) { return check_at(node, 1024); }
static char *reply_place(gasnet_node_t node) { return check_at(node, 2048); }
static char payload[BYTES];

#define MESSAGE_ANSWER(n) \
    case n: \
        rc = kind == SHORT    ? (gasnet_AMReplyShort##n)(token, index_of(n, SHORT_REP) ARITY_VALUES_##n(v)) \
             : kind == MEDIUM ? (gasnet_AMReplyMedium##n)(token, index_of(n, DATA_REP), payload, \
                                                          BYTES ARITY_VALUES_##n(v)) \
                              : (gasnet_AMReplyLong##n)(token, index_of(n, DATA_REP), payload, BYTES, \
                                                        reply_place(peer) ARITY_VALUES_##n(v)); \
        break;

static void arguments(gasnet_handlerarg_t *v) {
    int i;
    for (i = 0; i < ARITY_MAX; i++) v[i] = argument(i);
}

static void answer(int kind, int arity, gasnet_token_t token) {
    gasnet_handlerarg_t v[ARITY_MAX];
    int rc = GASNET_OK;
    arguments(v);
    switch (arity) { ARITIES(MESSAGE_ANSWER) }
    CHECK(rc == GASNET_OK, "reply with %d arguments: %s", arity, gasnet_ErrorName(rc));
}

#define MESSAGE_SEND(n) \
    CHECK_OK((gasnet_AMRequestShort##n)(peer, index_of(n, SHORT_REQ) ARITY_VALUES_##n(v))); \
    GASNET_BLOCKUNTIL(replied == before + 1); \
    CHECK_OK((gasnet_AMRequestMedium##n)(peer, index_of(n, MEDIUM_REQ), payload, BYTES ARITY_VALUES_##n(v))); \
    GASNET_BLOCKUNTIL(replied == before + 2); \
    CHECK_OK((gasnet_AMRequestLong##n)(peer, index_of(n, LONG_REQ), payload, BYTES, \
                                       request_place(peer) ARITY_VALUES_##n(v))); \
    GASNET_BLOCKUNTIL(replied == before + 3); \
    CHECK_OK((gasnet_AMRequestLongAsync##n)(peer, index_of(n, LONG_REQ), payload, BYTES, \
                                            request_place(peer) ARITY_VALUES_##n(v))); \
    GASNET_BLOCKUNTIL(replied == before + 4); \
    before += 4;

static void messages(void) {
    gasnet_handlerarg_t v[ARITY_MAX];
    int before = replied;
    check_alive("active messages");
    CHECK(gasnet_AMMaxArgs() >= 16 && gasnet_AMMaxMedium() >= 512 && gasnet_AMMaxLongRequest() >= 512 &&
              gasnet_AMMaxLongReply() >= 512,
          "limits: %lu arguments, Medium %lu, Long %lu and %lu bytes", (unsigned long)gasnet_AMMaxArgs(),
          (unsigned long)gasnet_AMMaxMedium(), (unsigned long)gasnet_AMMaxLongRequest(),
          (unsigned long)gasnet_AMMaxLongReply());
    check_fill(payload, BYTES, 99);
    check_barrier(); /* handlers answer with the payload */
    arguments(v);
    ARITIES(MESSAGE_SEND)
    CHECK(!bad_source, "gasnet_AMGetMsgSource returned another source");
    CHECK_OK(gasnet_AMPoll());
    check_barrier();
}

/* Registration: the first entry has a fixed index, the others get the lowest free ones in
 * their order. */
static void explicit_h(gasnet_token_t token) { (void)token; }
#define EXPLICIT 130

static void registered(int n) {
    int i, free_index = 128;
    CHECK(handlers[0].index == EXPLICIT, "an explicit index was changed to %d", handlers[0].index);
    for (i = 1; i < n; i++, free_index++) {
        if (free_index == EXPLICIT) free_index++;
        CHECK(handlers[i].index == free_index, "entry %d got index %d instead of %d", i, handlers[i].index, free_index);
    }
}

static void threads(void) {
    GASNET_BEGIN_FUNCTION();
    gasnet_threadinfo_t info = GASNET_GET_THREADINFO();
    {
        GASNET_POST_THREADINFO(info);
        CHECK(GASNET_GET_THREADINFO() == info, "the thread information changes");
    }
}

static void atomics(void) {
    static gasnett_atomic32_t narrow = gasnett_atomic32_init(5);
    static gasnett_atomic64_t wide = gasnett_atomic64_init(UINT64_C(0x100000000));
    check_alive("atomics");
    CHECK(gasnett_atomic32_add(&narrow, 3, 0) == 8 && gasnett_atomic32_read(&narrow, 0) == 8, "add");
    CHECK(gasnett_atomic32_subtract(&narrow, 6, 0) == 2, "subtract");
    CHECK(!gasnett_atomic32_decrement_and_test(&narrow, 0) && gasnett_atomic32_decrement_and_test(&narrow, 0),
          "decrement_and_test");
    CHECK(gasnett_atomic64_compare_and_swap(&wide, UINT64_C(0x100000000), 7, 0) &&
              !gasnett_atomic64_compare_and_swap(&wide, 8, 9, 0) && gasnett_atomic64_swap(&wide, 10, 0) == 7 &&
              gasnett_atomic64_read(&wide, 0) == 10,
          "compare_and_swap and swap");
}

static void clocks(void) {
    gasnett_tick_t a = gasnett_ticks_now(), b;
    uint64_t us;
    usleep(20000);
    b = gasnett_ticks_now();
    us = gasnett_ticks_to_us(b - a);
    CHECK(us >= 19000 && us < 60000000, "20 ms took %lu us", (unsigned long)us);
    CHECK(gasnett_tick_granularityus() > 0 && gasnett_tick_overheadus() > 0, "ticks of %f us, %f us to read",
          gasnett_tick_granularityus(), gasnett_tick_overheadus());
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {{EXPLICIT, explicit_h}, ARITIES(MESSAGE_ENTRIES)};
    int n = (int)(sizeof table / sizeof *table);

    check_init("testgasnet", &argc, &argv);
    errors();
    before_attach();
    handlers = table;
    check_attach(table, n, SEGMENT);
    registered(n);
    after_attach();
    peer = check_peer();
    puts_and_gets();
    many_handles();
    regions();
    values_and_memset();
    messages();
    threads();
    atomics();
    clocks();
    if (gasnet_mynode() == 0) printf("testgasnet: %s\n", GASNET_CONFIG_STRING);
    check_done();
}
