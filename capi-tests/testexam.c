/* testexam: active messages of GASNet-EX: all families with 0 to 16 arguments, replies, what
 * tokens report, limits, events of the local side, and negotiated payload in all its calls. */
/* faults: flip_am flip_arg drop_am */
/* args: 10 */
/* nodes: any */
/* threads: both */
#include "checkex.h"

#define MOST 65536
/* Where replies and requests put their Longs, by category. */
#define AREA(i) ((size_t)(i) * MOST)

enum { H_SHORT = 130, H_MEDIUM = 150, H_LONG = 170, H_ANSWER_SHORT = 190, H_ANSWER_MEDIUM, H_ANSWER_LONG };

/* Of this rank: messages of each kind that arrived. */
static gasnett_atomic_t arrived = gasnett_atomic_init(0), answered = gasnett_atomic_init(0);
static size_t medium, longest;

static void check_args(const gex_AM_Arg_t *args, int n, int seed) {
    int i;
    for (i = 0; i < n; i++) CHECK(args[i] == (gex_AM_Arg_t)(seed * 1000 + i), "argument %d of %d is %d", i, n, (int)args[i]);
}

static void check_token(gex_Token_t token, int is_req, int is_long, int handler) {
    gex_Token_Info_t info;
    gex_TI_t known = gex_Token_Info(token, &info, GEX_TI_ALL);
    gasnet_node_t source = 0;
    CHECK_OK(gasnet_AMGetMsgSource(token, &source));
    CHECK(info.gex_srcrank == source, "two ranks sent a message");
    if (known & GEX_TI_IS_REQ) CHECK(!info.gex_is_req == !is_req, "request or reply");
    if (known & GEX_TI_IS_LONG) CHECK(!info.gex_is_long == !is_long, "Long or not");
    if (known & GEX_TI_ENTRY) CHECK(info.gex_entry->gex_index == handler, "handler %d", info.gex_entry->gex_index);
}

static void answer_short_h(gex_Token_t token) {
    check_token(token, 0, 0, H_ANSWER_SHORT);
    gasnett_atomic_increment(&answered, 0);
}

static void answer_medium_h(gex_Token_t token, void *buf, size_t n, gex_AM_Arg_t seed) {
    check_token(token, 0, 0, H_ANSWER_MEDIUM);
    check_same(buf, n, (uint64_t)seed, "a Medium reply");
    gasnett_atomic_increment(&answered, 0);
}

static void answer_long_h(gex_Token_t token, void *buf, size_t n, gex_AM_Arg_t seed, gex_AM_Arg_t two) {
    check_token(token, 0, 1, H_ANSWER_LONG);
    CHECK(two == 2, "the second argument is %d", (int)two);
    check_same(buf, n, (uint64_t)seed, "a Long reply");
    gasnett_atomic_increment(&answered, 0);
}

/* Replies in the form that the seed says. */
static void answer(gex_Token_t token, gex_Rank_t from, int seed) {
    static __thread unsigned char out[MOST];
    size_t n = (size_t)seed * 37 % (medium < MOST ? medium : MOST);
    const size_t longest_reply = gex_Token_MaxReplyLong(token, GEX_EVENT_NOW, 0, 2);
    gex_Event_t leaf = GEX_EVENT_INVALID;
    gex_AM_SrcDesc_t sd;
    if (n > longest_reply) n = longest_reply;
    check_fill(out, n, (uint64_t)seed);
    switch (seed % 7) {
        case 0: gex_AM_ReplyShort0(token, H_ANSWER_SHORT, 0); break;
        case 1: gex_AM_ReplyMedium1(token, H_ANSWER_MEDIUM, out, n, GEX_EVENT_NOW, 0, seed); break;
        case 2: gex_AM_ReplyMedium(token, H_ANSWER_MEDIUM, out, n, &leaf, 0, seed); break;
        case 3:
            gex_AM_ReplyLong2(token, H_ANSWER_LONG, out, n, check_at(from, AREA(ex_me * 2)), GEX_EVENT_NOW, 0, seed, 2);
            break;
        case 4:
            sd = gex_AM_PrepareReplyMedium(token, NULL, n, MOST, NULL, 0, 1);
            CHECK(gex_AM_SrcDescSize(sd) >= n, "%d bytes were negotiated", (int)gex_AM_SrcDescSize(sd));
            memcpy(gex_AM_SrcDescAddr(sd), out, n);
            gex_AM_CommitReplyMedium1(sd, H_ANSWER_MEDIUM, n, seed);
            break;
        case 5:
            sd = gex_AM_PrepareReplyLong(token, out, n, n, NULL, GEX_EVENT_NOW, 0, 2);
            CHECK(gex_AM_SrcDescAddr(sd) == out, "another buffer than the client's");
            CHECK(gex_AM_CommitReplyLong_v2(sd, H_ANSWER_LONG, n, check_at(from, AREA(ex_me * 2)), 0, seed, 2) == 0, "refused");
            break;
        default:
            sd = gex_AM_PrepareReplyMedium(token, NULL, 0, n, NULL, 0, 0);
            CHECK(gex_AM_CancelReplyMedium(sd, 0) == 0, "CancelReplyMedium");
            gex_AM_ReplyShort(token, H_ANSWER_SHORT, 0);
    }
}

static gex_Rank_t sender(gex_Token_t token) {
    gex_Token_Info_t info;
    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    return info.gex_srcrank;
}

/* The handlers of n arguments. The first argument is the seed times 1000. */
#define P0
#define P1 , gex_AM_Arg_t a0
#define P2 P1, gex_AM_Arg_t a1
#define P3 P2, gex_AM_Arg_t a2
#define P4 P3, gex_AM_Arg_t a3
#define P5 P4, gex_AM_Arg_t a4
#define P6 P5, gex_AM_Arg_t a5
#define P7 P6, gex_AM_Arg_t a6
#define P8 P7, gex_AM_Arg_t a7
#define P9 P8, gex_AM_Arg_t a8
#define P10 P9, gex_AM_Arg_t a9
#define P11 P10, gex_AM_Arg_t a10
#define P12 P11, gex_AM_Arg_t a11
#define P13 P12, gex_AM_Arg_t a12
#define P14 P13, gex_AM_Arg_t a13
#define P15 P14, gex_AM_Arg_t a14
#define P16 P15, gex_AM_Arg_t a15
#define V1 a0
#define V2 V1, a1
#define V3 V2, a2
#define V4 V3, a3
#define V5 V4, a4
#define V6 V5, a5
#define V7 V6, a6
#define V8 V7, a7
#define V9 V8, a8
#define V10 V9, a9
#define V11 V10, a10
#define V12 V11, a11
#define V13 V12, a12
#define V14 V13, a13
#define V15 V14, a14
#define V16 V15, a15
/* Values of the arguments in calls. */
#define C1 , s
#define C2 C1, s + 1
#define C3 C2, s + 2
#define C4 C3, s + 3
#define C5 C4, s + 4
#define C6 C5, s + 5
#define C7 C6, s + 6
#define C8 C7, s + 7
#define C9 C8, s + 8
#define C10 C9, s + 9
#define C11 C10, s + 10
#define C12 C11, s + 11
#define C13 C12, s + 12
#define C14 C13, s + 13
#define C15 C14, s + 14
#define C16 C15, s + 15

/* A message of n arguments to `to`, in each form; the negotiated ones too. */
#define FAMILY(n) \
    static void short_h##n(gex_Token_t token P##n) { \
        const gex_AM_Arg_t args[] = {V##n}; \
        int seed = args[0] / 1000; \
        check_args(args, n, seed); \
        check_token(token, 1, 0, H_SHORT + n); \
        gasnett_atomic_increment(&arrived, 0); \
        answer(token, sender(token), seed); \
    } \
    static void medium_h##n(gex_Token_t token, void *buf, size_t nbytes P##n) { \
        const gex_AM_Arg_t args[] = {V##n}; \
        int seed = args[0] / 1000; \
        check_args(args, n, seed); \
        check_token(token, 1, 0, H_MEDIUM + n); \
        check_same(buf, nbytes, (uint64_t)seed, "a Medium"); \
        gasnett_atomic_increment(&arrived, 0); \
        answer(token, sender(token), seed); \
    } \
    static void long_h##n(gex_Token_t token, void *buf, size_t nbytes P##n) { \
        const gex_AM_Arg_t args[] = {V##n}; \
        int seed = args[0] / 1000; \
        check_args(args, n, seed); \
        check_token(token, 1, 1, H_LONG + n); \
        CHECK(buf == check_at(ex_me, AREA(sender(token) * 2 + 1)), "a Long at another place"); \
        check_same(buf, nbytes, (uint64_t)seed, "a Long"); \
        gasnett_atomic_increment(&arrived, 0); \
        answer(token, sender(token), seed); \
    } \
    static void send##n(gex_Rank_t to, int seed, int form, void *out, size_t bytes) { \
        const gex_AM_Arg_t s = seed * 1000; \
        void *there = check_at(to, AREA(ex_me * 2 + 1)); \
        gex_Event_t leaf = GEX_EVENT_INVALID; \
        gex_AM_SrcDesc_t sd; \
        int rc = 0; \
        switch (form) { \
            case 0: rc = gex_AM_RequestShort##n(ex_tm, to, H_SHORT + n, 0 C##n); break; \
            case 1: rc = gex_AM_RequestShort(ex_tm, to, H_SHORT + n, GEX_FLAG_IMMEDIATE C##n); break; \
            case 2: rc = gex_AM_RequestMedium##n(ex_tm, to, H_MEDIUM + n, out, bytes, GEX_EVENT_NOW, 0 C##n); break; \
            case 3: \
                rc = gex_AM_RequestMedium(ex_tm, to, H_MEDIUM + n, out, bytes, &leaf, 0 C##n); \
                gex_Event_Wait(leaf); \
                break; \
            case 4: rc = gex_AM_RequestLong##n(ex_tm, to, H_LONG + n, out, bytes, there, GEX_EVENT_NOW, 0 C##n); break; \
            case 5: \
                rc = gex_AM_RequestLong(ex_tm, to, H_LONG + n, out, bytes, there, GEX_EVENT_GROUP, 0 C##n); \
                gex_NBI_Wait(GEX_EC_AM, 0); \
                break; \
            case 6: \
                sd = gex_AM_PrepareRequestMedium(ex_tm, to, NULL, bytes, MOST, NULL, 0, n); \
                CHECK(gex_AM_SrcDescSize(sd) >= bytes, "%d bytes were negotiated", (int)gex_AM_SrcDescSize(sd)); \
                CHECK((uintptr_t)gex_AM_SrcDescAddr(sd) % 16 == 0, "memory is not aligned"); \
                memcpy(gex_AM_SrcDescAddr(sd), out, bytes); \
                gex_AM_CommitRequestMedium##n(sd, H_MEDIUM + n, bytes C##n); \
                break; \
            case 7: \
                sd = gex_AM_PrepareRequestMedium(ex_tm, to, out, 0, bytes, GEX_EVENT_NOW, 0, n); \
                rc = gex_AM_CommitRequestMedium##n##_v2(sd, H_MEDIUM + n, bytes, 0 C##n); \
                break; \
            case 8: \
                sd = gex_AM_PrepareRequestLong(ex_tm, to, NULL, bytes, bytes, there, NULL, 0, n); \
                memcpy(gex_AM_SrcDescAddr(sd), out, bytes); \
                gex_AM_CommitRequestLong##n(sd, H_LONG + n, bytes, there C##n); \
                break; \
            default: \
                sd = gex_AM_PrepareRequestLong(ex_tm, to, out, bytes, bytes, NULL, &leaf, 0, n); \
                CHECK(gex_AM_CancelRequestLong(sd, 0) == 0, "CancelRequestLong"); \
                sd = gex_AM_PrepareRequestLong(ex_tm, to, out, bytes, bytes, NULL, &leaf, 0, n); \
                rc = gex_AM_CommitRequestLong_v2(sd, H_LONG + n, bytes, there, 0 C##n); \
                gex_Event_Wait(leaf); \
        } \
        CHECK(rc == 0, "form %d with %d arguments was refused", form, n); \
    }
#define ALL(F) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15) F(16)
ALL(FAMILY)

static volatile int bare;
static void bare_short_h(gex_Token_t token) { check_token(token, 1, 0, H_SHORT); bare++; }
static void bare_medium_h(gex_Token_t token, void *buf, size_t n) {
    check_token(token, 1, 0, H_MEDIUM);
    CHECK(n == 3 && !memcmp(buf, "abc", 3), "a Medium without arguments");
    bare++;
}
static void bare_long_h(gex_Token_t token, void *buf, size_t n) {
    check_token(token, 1, 1, H_LONG);
    CHECK(n == 0 && buf == (void *)&bare, "an empty Long keeps its address");
    bare++;
}

#if CHECK_PAR
/* A thread ends with a message that it has prepared: the next one with its index may prepare. */
static void *prepares(void *commits) {
    gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(ex_tm, check_peer(), NULL, 0, 600, NULL, 0, 0);
    if (commits) gex_AM_CancelRequestMedium(sd, 0);
    return NULL;
}

static void prepared_by_others(void) {
    int i;
    for (i = 0; i < 2; i++) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, prepares, i ? &thread : NULL), "no thread");
        pthread_join(thread, NULL);
    }
}
#endif

/* A message that is cancelled gives its memory back, however large it is. */
static void cancelled(void) {
    const size_t large = 64 << 20;
    const long before = ex_resident();
    gex_AM_SrcDesc_t sd;
    if (gex_AM_MaxRequestLong(ex_tm, ex_me, NULL, GEX_FLAG_AM_PREPARE_LEAST_ALLOC, 0) < large) return;
    sd = gex_AM_PrepareRequestLong(ex_tm, ex_me, NULL, large, large, NULL, NULL, 0, 0);
    memset(gex_AM_SrcDescAddr(sd), 1, large);
    CHECK(gex_AM_CancelRequestLong(sd, 0) == 0, "CancelRequestLong");
    CHECK(ex_resident() - before < (long)(large / 4), "%ld bytes are left", ex_resident() - before);
}

int main(int argc, char **argv) {
    const gex_Flags_t both = GEX_FLAG_AM_REQUEST;
#define ROWS(n) \
    {H_SHORT + n, (gex_AM_Fn_t)short_h##n, GEX_FLAG_AM_SHORT | both, n, NULL, "short"}, \
    {H_MEDIUM + n, (gex_AM_Fn_t)medium_h##n, GEX_FLAG_AM_MEDIUM | both, n, NULL, "medium"}, \
    {H_LONG + n, (gex_AM_Fn_t)long_h##n, GEX_FLAG_AM_LONG | both, n, NULL, "long"},
    gex_AM_Entry_t table[] = {
        ALL(ROWS)
        {H_SHORT, (gex_AM_Fn_t)bare_short_h, GEX_FLAG_AM_SHORT | both, 0, NULL, NULL},
        {H_MEDIUM, (gex_AM_Fn_t)bare_medium_h, GEX_FLAG_AM_MEDIUM | both, 0, NULL, NULL},
        {H_LONG, (gex_AM_Fn_t)bare_long_h, GEX_FLAG_AM_LONG | both, 0, NULL, NULL},
        {H_ANSWER_SHORT, (gex_AM_Fn_t)answer_short_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL},
        {H_ANSWER_MEDIUM, (gex_AM_Fn_t)answer_medium_h, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 1, NULL, NULL},
        {H_ANSWER_LONG, (gex_AM_Fn_t)answer_long_h, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 2, NULL, NULL},
    };
#define SENDER(n) send##n,
    static void (*const senders[])(gex_Rank_t, int, int, void *, size_t) = {ALL(SENDER)};
    static unsigned char out[MOST];
    size_t iters, iter, bytes;
    int n, form, sent = 0;
    gex_Rank_t peer;
    ex_init("testexam", &argc, &argv);
    iters = check_arg(argc, argv, 1, 10);
    peer = check_peer();
    CHECK_OK(gex_EP_RegisterHandlers(ex_ep, table, sizeof table / sizeof *table));
    medium = gex_AM_LUBRequestMedium();
    longest = gex_AM_LUBRequestLong();
    CHECK(gex_AM_MaxArgs() >= 16 && medium >= 512 && longest >= 512, "limits");
    CHECK(gex_AM_MaxRequestMedium(ex_tm, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 16) >= medium, "the limit of all");
    CHECK(gex_AM_MaxReplyMedium(ex_tm, peer, NULL, GEX_FLAG_AM_PREPARE_LEAST_ALLOC, 16) >= gex_AM_LUBReplyMedium(), "replies");
    CHECK(gex_AM_MaxRequestLong(gex_TM_Pair(ex_ep, 0), peer, GEX_EVENT_GROUP, 0, 16) >= longest, "Longs");
    ex_barrier(ex_tm);
    gex_AM_RequestShort0(ex_tm, peer, H_SHORT, 0);
    gex_AM_RequestMedium(ex_tm, peer, H_MEDIUM, "abc", 3, GEX_EVENT_NOW, 0);
    /* Without a segment: the Long has no bytes. */
    gex_AM_RequestLong0(ex_tm, ex_me, H_LONG, NULL, 0, (void *)&bare, GEX_EVENT_NOW, 0);
    GASNET_BLOCKUNTIL(bare == 3);
    cancelled();
    ex_attach(AREA(2 * ex_ranks));
    ex_barrier(ex_tm);
    for (iter = 0; iter < iters; iter++) {
        for (n = 0; n < 16; n++) {
            for (form = 0; form < 10; form++) {
                int seed = (int)iter * 160 + n * 10 + form + 1;
                bytes = (size_t)seed * 61 % (medium < MOST ? medium + 1 : MOST);
                check_fill(out, bytes, (uint64_t)seed);
                senders[n](peer, seed, form, out, bytes);
                sent++;
                GASNET_BLOCKUNTIL((int)gasnett_atomic_read(&answered, 0) == sent);
            }
        }
        alarm(check_stall);
    }
#if CHECK_PAR
    prepared_by_others();
#endif
    /* Several are under way: handlers prepare replies while a prepared request waits. */
    for (iter = 0; iter < 20 * iters; iter++) {
        int seed = ((int)iter * (int)ex_ranks + (int)ex_me) * 7 + 4;
        bytes = (medium < MOST ? medium : MOST) - iter % 64;
        check_fill(out, bytes, (uint64_t)seed);
        senders[0](peer, seed, 6, out, bytes);
        sent++;
        GASNET_BLOCKUNTIL((int)gasnett_atomic_read(&answered, 0) >= sent - 4);
    }
    GASNET_BLOCKUNTIL((int)gasnett_atomic_read(&answered, 0) == sent);
    ex_barrier(ex_tm);
    CHECK((int)gasnett_atomic_read(&arrived, 0) == sent, "%d of %d messages arrived", (int)gasnett_atomic_read(&arrived, 0), sent);
    check_done();
}
