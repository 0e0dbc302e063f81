/* testexsegment: segments that clients of GASNet-EX make of memory: made and destroyed, bound,
 * published to some members of a team and then to all, and used by puts and gets. Without
 * GASNET_TEST_SEGMENT the memory differs from rank to rank. */
/* args: 40 */
/* nodes: any */
/* threads: both */
/* segments: created */
#include "checkex.h"

#define WORDS 1024

/* Memory of the program; the other kinds are of the heap, of the stack, mapped by the library. */
static unsigned char in_program[WORDS * 8];

/* The segment of a rank, as it sees it, and what it has bound; size 0 for none. */
static void bound(gex_Rank_t rank, void **base, size_t *size) {
    void *here = in_program;
    *base = NULL;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(ex_tm, rank, base, &here, size, 0));
    CHECK(rank == ex_me ? here == *base : here == NULL, "rank %u: its segment is mapped at %p", rank, here);
}

static gex_Segment_t create(void *memory, size_t bytes) {
    gex_Segment_t segment = GEX_SEGMENT_INVALID;
    static int mark;
    CHECK_OK(gex_Segment_Create(&segment, ex_client, memory, bytes, GEX_MK_HOST, 0));
    CHECK(memory ? gex_Segment_QueryAddr(segment) == memory : gex_Segment_QueryAddr(segment) != NULL, "the address");
    CHECK(memory ? gex_Segment_QuerySize(segment) == bytes : gex_Segment_QuerySize(segment) >= bytes, "the size");
    CHECK(gex_Segment_QueryClient(segment) == ex_client && gex_Segment_QueryFlags(segment) == 0, "the client");
    CHECK(gex_Segment_QueryCData(segment) == NULL, "a pointer");
    gex_Segment_SetCData(segment, &mark);
    CHECK(gex_Segment_QueryCData(segment) == &mark, "the pointer was lost");
    return segment;
}

/* Segments that are made and destroyed at once leave no memory behind and no name. */
static void made_and_destroyed(size_t rounds) {
    gex_Segment_t last = GEX_SEGMENT_INVALID;
    while (rounds--) {
        gex_Segment_t segment = create(rounds % 2 ? NULL : in_program, sizeof in_program);
        CHECK(segment != last, "a name is used again");
        if (rounds % 2) {
            /* Memory that the library maps is zero. */
            unsigned char *memory = (unsigned char *)gex_Segment_QueryAddr(segment);
            CHECK(memory[0] == 0 && memory[sizeof in_program - 1] == 0, "the memory is not zero");
            memset(memory, 1, sizeof in_program);
        }
        gex_Segment_Destroy(segment, 0);
        last = segment;
    }
}

/* A put to every rank, each to its own place, and gets of all that the others put. */
static void puts_and_gets(size_t round) {
    gex_Rank_t rank;
    void *base;
    size_t size;
    uint64_t *own = (uint64_t *)gex_Segment_QueryAddr(ex_segment), value;
    for (rank = 0; rank < ex_ranks; rank++) {
        uint64_t mine = round * 1000 + ex_me;
        bound(rank, &base, &size);
        CHECK(gex_RMA_PutBlocking(ex_tm, rank, (uint64_t *)base + ex_me, &mine, sizeof mine, 0) == 0, "a put");
        /* The last bytes, which one rank alone writes. */
        if (rank == (ex_me + 1) % ex_ranks) gex_RMA_PutNBI(ex_tm, rank, (char *)base + size - 8, &mine, sizeof mine, GEX_EVENT_DEFER, 0);
        gex_NBI_Wait(GEX_EC_PUT, 0);
    }
    ex_barrier(ex_tm);
    for (rank = 0; rank < ex_ranks; rank++) {
        gex_Rank_t before = (rank + ex_ranks - 1) % ex_ranks;
        memcpy(&value, own + rank, sizeof value);
        CHECK(value == round * 1000 + rank, "round %lu: rank %u has put %lu", (unsigned long)round, rank, (unsigned long)value);
        bound(rank, &base, &size);
        gex_Event_Wait(gex_RMA_GetNB(ex_tm, &value, rank, (char *)base + size - 8, sizeof value, 0));
        CHECK(value == round * 1000 + before, "round %lu: the end of rank %u has %lu", (unsigned long)round, rank,
              (unsigned long)value);
    }
    ex_barrier(ex_tm);
}

#define H_LONG 200
#define H_REPLY 201
static volatile int replies;

static void long_h(gex_Token_t token, void *buf, size_t n) {
    check_same(buf, n, n, "a Long of a rank without a segment");
    gex_AM_ReplyShort0(token, H_REPLY, 0);
}
static void reply_h(gex_Token_t token) {
    (void)token;
    replies++;
}

/* Rank 0 alone has a segment: the others put and get there, and send Longs, by turns. */
static void without_a_segment(void) {
    static const size_t sizes[] = {8, 700, 2048, 5000};
    static unsigned char out[5000], back[5000];
    gex_Rank_t turn;
    size_t i, size;
    void *base;
    CHECK_OK(gex_EP_PublishBoundSegment(ex_tm, &ex_ep, ex_me == 0, 0));
    for (turn = 1; turn < ex_ranks; turn++) {
        for (i = 0; turn == ex_me && i < sizeof sizes / sizeof *sizes; i++) {
            const size_t n = sizes[i];
            bound(0, &base, &size);
            check_fill(out, n, n + turn);
            CHECK(gex_RMA_PutBlocking(ex_tm, 0, base, out, n, 0) == 0, "a put");
            CHECK(gex_RMA_GetBlocking(ex_tm, back, 0, base, n, 0) == 0, "a get");
            check_same(back, n, n + turn, "a put without a segment");
            gex_Event_Wait(gex_RMA_PutNB(ex_tm, 0, base, out, n, GEX_EVENT_DEFER, 0));
            check_fill(out, n, n);
            replies = 0;
            gex_AM_RequestLong0(ex_tm, 0, H_LONG, out, n, base, GEX_EVENT_NOW, 0);
            while (!replies) gasnet_AMPoll();
        }
        ex_barrier(ex_tm);
    }
}

int main(int argc, char **argv) {
    gex_AM_Entry_t table[] = {{H_LONG, (gex_AM_Fn_t)long_h, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 0, NULL, "long"},
                              {H_REPLY, (gex_AM_Fn_t)reply_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "reply"}};
    uint64_t on_stack[WORDS];
    void *base, *memory[4];
    size_t size = 1, rounds, i;
    gex_Rank_t rank, odd;
    gex_TM_t halves = GEX_TM_INVALID;
    gex_Segment_t named = GEX_SEGMENT_INVALID;
    const char *kind = getenv("GASNET_TEST_SEGMENT");

    ex_init("testexsegment", &argc, &argv);
    rounds = check_arg(argc, argv, 1, 100);
    if (argc > 2) check_usage("[rounds 100]");
    memory[0] = in_program;
    memory[1] = (char *)calloc(1, sizeof in_program + 8) + 1;
    memory[2] = on_stack;
    memory[3] = NULL;
    CHECK_OK(gex_EP_RegisterHandlers(ex_ep, table, 2));
    made_and_destroyed(rounds);
    CHECK(gex_EP_QuerySegment(ex_ep) == GEX_SEGMENT_INVALID, "a segment is bound");

    /* Nothing is bound yet. */
    CHECK_OK(gex_EP_PublishBoundSegment(ex_tm, &ex_ep, 1, 0));
    for (rank = 0; rank < ex_ranks; rank++) {
        bound(rank, &base, &size);
        CHECK(size == 0 && base == NULL, "rank %u has a segment", rank);
    }
    i = kind ? (strcmp(kind, "own") ? 3 : 1) : ex_me % 4;
    ex_segment = create(memory[i], sizeof in_program);
    if (ex_me == 0) CHECK_OK(gex_EP_BindSegment(ex_ep, ex_segment, 0));
    without_a_segment();
    if (ex_me != 0) CHECK_OK(gex_EP_BindSegment(ex_ep, ex_segment, 0));
    CHECK(gex_EP_QuerySegment(ex_ep) == ex_segment, "another segment is bound");
    gasnet_QueryGexObjects(NULL, NULL, NULL, &named);
    CHECK(named == ex_segment, "gasnet_QueryGexObjects names another segment");
    bound(ex_me, &base, &size);
    CHECK(base == gex_Segment_QueryAddr(ex_segment) && size == gex_Segment_QuerySize(ex_segment), "the bound segment");
    /* It can be used here before any rank knows it. */
    CHECK(gex_RMA_PutBlockingVal(ex_tm, ex_me, base, 77, 8, 0) == 0, "a put");
    CHECK(gex_RMA_GetBlockingVal(ex_tm, ex_me, base, 8, 0) == 77, "a get");

    /* Even and odd ranks apart; of these only the first one publishes. Rank 0 has done so. */
    odd = ex_me % 2;
    gex_TM_Split(&halves, ex_tm, (int)odd, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    CHECK_OK(gex_EP_PublishBoundSegment(halves, &ex_ep, ex_me <= 1, 0));
    for (rank = 0; rank < ex_ranks; rank++) {
        bound(rank, &base, &size);
        CHECK((size != 0) == (rank == ex_me || rank == odd || rank == 0), "rank %u has a segment of %lu bytes", rank, (unsigned long)size);
    }
    gex_TM_Destroy(halves, NULL, 0);
    CHECK_OK(gex_EP_PublishBoundSegment(ex_tm, &ex_ep, 1, 0));
    check_alive("run");
    for (i = 0; i < rounds; i++) puts_and_gets(i);
    /* It changes nothing. */
    CHECK_OK(gex_EP_PublishBoundSegment(ex_tm, &ex_ep, 1, 0));
    CHECK(gex_Segment_Attach(&ex_segment, ex_tm, GASNET_PAGESIZE) == GASNET_ERR_NOT_INIT, "a segment was attached");
    check_done();
}
