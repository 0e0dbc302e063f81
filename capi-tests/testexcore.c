/* testexcore: the life of a GASNet-EX job: objects and queries, handlers, messages and collectives
 * before any segment exists, the segment, puts and gets in all forms, events and categories. */
/* faults: flip_put flip_get skip_sync */
/* args: 20 */
/* nodes: any */
/* threads: both */
#include "checkex.h"

#define SIZE 65536
static volatile int hits;

static void hit_h(gex_Token_t token, gex_AM_Arg_t value) {
    gex_Token_Info_t info;
    gex_TI_t known = gex_Token_Info(token, &info, GEX_TI_ALL);
    CHECK((known & (GEX_TI_SRCRANK | GEX_TI_EP)) == (GEX_TI_SRCRANK | GEX_TI_EP), "the token knows 0x%x", known);
    CHECK(info.gex_srcrank == (gex_Rank_t)value && info.gex_ep == ex_ep, "a message of rank %d comes from %d", (int)value,
          (int)info.gex_srcrank);
    if (known & GEX_TI_ENTRY)
        CHECK(info.gex_entry && !strcmp(info.gex_entry->gex_name, "hit") && info.gex_entry->gex_cdata == &hits, "the row");
    if (known & GEX_TI_IS_REQ) CHECK(info.gex_is_req, "a request is none");
    if (known & GEX_TI_IS_LONG) CHECK(!info.gex_is_long, "a Short is a Long");
    hits++;
}

static void objects(void) {
    static int places[3];
    int *const there = places + 1;
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    gex_Segment_t segment;
    gasnet_QueryGexObjects(&client, &ep, &tm, &segment);
    CHECK(client == ex_client && ep == ex_ep && tm == ex_tm, "the objects of the job are others");
    CHECK(segment == GEX_SEGMENT_INVALID && gex_EP_QuerySegment(ep) == GEX_SEGMENT_INVALID, "a segment before attach");
    CHECK(!strcmp(gex_Client_QueryName(client), "TEST"), "the client is %s", gex_Client_QueryName(client));
    CHECK(gex_Client_QueryFlags(client) == GEX_FLAG_USES_GASNET1, "flags of the client");
    CHECK(gex_EP_QueryClient(ep) == client && gex_TM_QueryClient(tm) == client && gex_TM_QueryEP(tm) == ep, "relations");
    CHECK(gex_EP_QueryIndex(ep) == 0, "the endpoint has another index");
    CHECK(gex_Client_QueryCData(client) == NULL && gex_EP_QueryCData(ep) == NULL && gex_TM_QueryCData(tm) == NULL,
          "pointers before any was set");
    gex_Client_SetCData(client, there);
    gex_EP_SetCData(ep, there + 1);
    gex_TM_SetCData(tm, there - 1);
    CHECK(gex_Client_QueryCData(client) == there && gex_EP_QueryCData(ep) == there + 1 &&
              gex_TM_QueryCData(tm) == there - 1, "pointers were lost");
    CHECK(gex_TM_QueryRank(tm) == ex_me && gex_TM_QuerySize(tm) == ex_ranks, "rank and size");
    CHECK(gex_TM_TranslateRankToJobrank(tm, ex_ranks - 1) == ex_ranks - 1, "rank to jobrank");
    CHECK(gex_TM_TranslateJobrankToRank(tm, ex_ranks - 1) == ex_ranks - 1, "jobrank to rank");
    CHECK(gex_TM_Pair(ep, 0) == gex_TM_Pair(ep, 0), "pairs differ");
    CHECK(gex_System_QueryMaxThreads() >= 1 && (CHECK_PAR || gex_System_QueryMaxThreads() == 1), "threads");
    CHECK(gex_System_QueryHiddenAMConcurrencyLevel() == GASNET_HIDDEN_AM_CONCURRENCY_LEVEL, "hidden handlers");
}

static void neighbours(void) {
    gex_RankInfo_t *near, *host;
    gex_Rank_t nears, hosts, me_near, me_host, i, sets, set, host_sets, host_set;
    gex_System_QueryNbrhdInfo(&near, &nears, &me_near);
    gex_System_QueryHostInfo(&host, &hosts, &me_host);
    gex_System_QueryMyPosition(&sets, &set, &host_sets, &host_set);
    CHECK(near[me_near].gex_jobrank == ex_me && host[me_host].gex_jobrank == ex_me, "this rank is not at its index");
    CHECK(nears >= 1 && nears <= hosts && hosts <= ex_ranks, "%d near, %d of the host", (int)nears, (int)hosts);
    for (i = 1; i < nears; i++) CHECK(near[i - 1].gex_jobrank < near[i].gex_jobrank, "the list is not sorted");
    CHECK(set < sets && host_set < host_sets && host_sets <= sets && sets <= ex_ranks, "positions");
    gex_System_QueryNbrhdInfo(NULL, NULL, NULL);
}

/* Messages and collectives need no segment. */
static void before_attach(void) {
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)hit_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, (const void *)&hits, "hit"},
        {200, (gex_AM_Fn_t)hit_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP, 1, (const void *)&hits, "hit"},
    };
    gex_AM_Entry_t again = {200, (gex_AM_Fn_t)hit_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, NULL};
    uint64_t mine = ex_me + 1, sum = 0;
    gex_Rank_t i;
    uintptr_t size = 1;
    CHECK_OK(gex_EP_RegisterHandlers(ex_ep, table, 2));
    CHECK(table[0].gex_index == 253, "the highest free index is %d", table[0].gex_index);
    CHECK(gex_EP_RegisterHandlers(ex_ep, &again, 1) == GASNET_ERR_BAD_ARG, "an index was registered twice");
    ex_barrier(ex_tm);
    for (i = 0; i < ex_ranks; i++) {
        CHECK(gex_AM_RequestShort1(ex_tm, i, table[0].gex_index, 0, (gex_AM_Arg_t)ex_me) == 0, "a Short was refused");
        CHECK(gex_AM_RequestShort(gex_TM_Pair(ex_ep, 0), i, 200, 0, (gex_AM_Arg_t)ex_me) == 0, "a Short was refused");
    }
    GASNET_BLOCKUNTIL(hits == 2 * (int)ex_ranks);
    gex_Event_Wait(gex_Coll_ReduceToAllNB(ex_tm, &sum, &mine, GEX_DT_U64, sizeof sum, 1, GEX_OP_ADD, NULL, NULL, 0));
    CHECK(sum == (uint64_t)ex_ranks * (ex_ranks + 1) / 2, "the sum is %lu", (unsigned long)sum);
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(ex_tm, 0, NULL, NULL, &size, 0));
    CHECK(size == 0, "a segment of %lu bytes before attach", (unsigned long)size);
    CHECK(gex_Segment_QueryBound(ex_tm, 0, NULL, NULL, &size) != 0, "a segment before attach");
}

/* Puts `n` bytes to the peer in one form, and gets them back in another. */
static void round_trip(int form, size_t n, uint64_t seed) {
    static unsigned char out[SIZE], back[SIZE];
    gex_Rank_t peer = check_peer();
    gex_TM_t tm = form & 1 ? ex_tm : gex_TM_Pair(ex_ep, 0);
    char *there = check_at(peer, (size_t)(form % 7));
    gex_Event_t event = GEX_EVENT_INVALID, leaf = GEX_EVENT_INVALID, both[3];
    check_fill(out, n, seed);
    memset(back, 0, n);
    switch (form % 8) {
        case 0: CHECK(gex_RMA_PutBlocking(tm, peer, there, out, n, 0) == 0, "PutBlocking"); break;
        case 1:
            event = gex_RMA_PutNB(tm, peer, there, out, n, GEX_EVENT_NOW, 0);
            memset(out, 0, n);
            gex_Event_Wait(event);
            break;
        case 2:
            event = gex_RMA_PutNB(tm, peer, there, out, n, &leaf, 0);
            gex_Event_Wait(leaf);
            memset(out, 0, n);
            while (gex_Event_Test(event) != GASNET_OK) gasnet_AMPoll();
            break;
        case 3:
            CHECK(gex_RMA_PutNBI(tm, peer, there, out, n, GEX_EVENT_GROUP, 0) == 0, "PutNBI");
            gex_NBI_Wait(GEX_EC_LC, 0);
            memset(out, 0, n);
            gex_NBI_Wait(GEX_EC_PUT, 0);
            break;
        case 4:
            gex_NBI_BeginAccessRegion(0);
            CHECK(gex_RMA_PutNBI(tm, peer, there, out, n, GEX_EVENT_DEFER, 0) == 0, "PutNBI");
            event = gex_NBI_EndAccessRegion(0);
            gex_Event_Wait(event);
            break;
        case 5:
            gex_NBI_BeginAccessRegion(0);
            CHECK(gex_RMA_PutNBI(tm, peer, there, out, n / 2, GEX_EVENT_GROUP, 0) == 0, "PutNBI");
            CHECK(gex_RMA_PutNBI(tm, peer, there + n / 2, out + n / 2, n - n / 2, GEX_EVENT_GROUP, 0) == 0, "PutNBI");
            event = gex_NBI_EndAccessRegion(0);
            leaf = gex_Event_QueryLeaf(event, GEX_EC_LC);
            CHECK(leaf == gex_Event_QueryLeaf(event, GEX_EC_LC), "an event has two leaves");
            gex_Event_Wait(leaf);
            memset(out, 0, n);
            gex_Event_Wait(event);
            break;
        case 6:
            both[0] = gex_RMA_PutNB(tm, peer, there, out, n, &both[1], 0);
            /* Whichever comes first. */
            while (gex_Event_TestAll(both, 2, 0) != GASNET_OK) gasnet_AMPoll();
            CHECK(both[0] == GEX_EVENT_INVALID && both[1] == GEX_EVENT_INVALID, "a leaf outlives its root");
            break;
        default:
            both[0] = GEX_EVENT_INVALID;
            both[1] = gex_RMA_PutNB(tm, peer, there, out, n, GEX_EVENT_DEFER, 0);
            both[2] = gex_Event_QueryLeaf(both[1], GEX_EC_LC);
            gex_Event_WaitAll(both, 3, 0);
            CHECK(both[1] == GEX_EVENT_INVALID && both[2] == GEX_EVENT_INVALID, "events stay");
    }
    switch (form % 4) {
        case 0: CHECK(gex_RMA_GetBlocking(tm, back, peer, there, n, 0) == 0, "GetBlocking"); break;
        case 1:
            event = gex_RMA_GetNB(tm, back, peer, there, n, 0);
            while (gex_Event_TestAll(&event, 1, 0) != GASNET_OK) gasnet_AMPoll();
            break;
        case 2:
            CHECK(gex_RMA_GetNBI(tm, back, peer, there, n, 0) == 0, "GetNBI");
            gex_NBI_Wait(GEX_EC_GET, 0);
            break;
        default:
            event = gex_RMA_GetNB(tm, back, peer, there, n, 0);
            gex_Event_WaitSome(&event, 1, 0);
    }
    check_same(back, n, seed, "a put and a get");
}

static void values(uint64_t seed) {
    gex_Rank_t peer = check_peer();
    size_t n;
    for (n = 1; n <= 8; n++) {
        uint64_t value = check_mix(seed + n), low = n == 8 ? value : value & ((UINT64_C(1) << 8 * n) - 1), got;
        switch (n % 3) {
            case 0: CHECK(gex_RMA_PutBlockingVal(ex_tm, peer, check_at(peer, 64), value, n, 0) == 0, "PutBlockingVal"); break;
            case 1: gex_Event_Wait(gex_RMA_PutNBVal(ex_tm, peer, check_at(peer, 64), value, n, 0)); break;
            default:
                CHECK(gex_RMA_PutNBIVal(ex_tm, peer, check_at(peer, 64), value, n, 0) == 0, "PutNBIVal");
                gex_NBI_Wait(GEX_EC_ALL, 0);
        }
        got = gex_RMA_GetBlockingVal(ex_tm, peer, check_at(peer, 64), n, 0);
        CHECK(got == low, "a value of %d bytes is 0x%lx, not 0x%lx", (int)n, (unsigned long)got, (unsigned long)low);
    }
}

/* Tests of events do not poll: they are legal while a handler-safe lock is held. */
static void tests_under_a_lock(void) {
    static gex_HSL_t lock = GEX_HSL_INITIALIZER;
    gex_Event_t events[2] = {GEX_EVENT_INVALID, GEX_EVENT_INVALID};
    gex_HSL_Lock(&lock);
    CHECK(gex_Event_Test(GEX_EVENT_INVALID) == GASNET_OK, "Test");
    CHECK(gex_Event_TestSome(events, 2, 0) == GASNET_OK, "TestSome");
    CHECK(gex_Event_TestAll(events, 2, 0) == GASNET_OK, "TestAll");
    CHECK(gex_NBI_Test(GEX_EC_ALL, 0) == GASNET_OK, "NBI_Test");
    gex_HSL_Unlock(&lock);
}

int main(int argc, char **argv) {
    static const size_t sizes[] = {0, 1, 2, 4, 7, 8, 64, 1000, 2048, 5000, SIZE - 8};
    void *own, *here;
    uintptr_t size;
    size_t i, iters, early;
    int form;
    /* Realm asks before the job starts. */
    early = gex_AM_LUBRequestMedium();
    ex_init("testexcore", &argc, &argv);
    CHECK(early == gex_AM_LUBRequestMedium() && early == gex_AM_LUBReplyMedium(), "a Medium of %lu before the job",
          (unsigned long)early);
    iters = check_arg(argc, argv, 1, 10);
    objects();
    neighbours();
    before_attach();
    CHECK(gex_Segment_Attach(&ex_segment, ex_tm, GASNET_PAGESIZE + 1) == GASNET_ERR_BAD_ARG, "a crooked segment");
    ex_attach(SIZE);
    CHECK(gex_EP_QuerySegment(ex_ep) == ex_segment && gex_Segment_QueryClient(ex_segment) == ex_client, "the segment");
    CHECK(gex_Segment_QueryAddr(ex_segment) == check_seg[ex_me].addr, "the address of the segment");
    CHECK(gex_Segment_QuerySize(ex_segment) == check_round(SIZE), "the size of the segment");
    CHECK(gex_Segment_QueryBound(ex_tm, ex_me, &own, &here, &size) == 0 && own == check_seg[ex_me].addr && here == own &&
              size == check_round(SIZE), "the bound segment");
    CHECK(gex_Segment_Attach(&ex_segment, ex_tm, GASNET_PAGESIZE) != GASNET_OK, "a second segment");
    for (; iters--; ex_barrier(ex_tm)) {
        for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (form = 0; form < 16; form++) round_trip(form, sizes[i], iters * 100 + i + (size_t)form + ex_me);
        values(iters + ex_me);
        tests_under_a_lock();
        gex_Coll_BarrierBlocking(ex_tm, 0);
    }
    check_done();
}
