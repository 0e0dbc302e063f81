/* testbadex: wrong calls of GASNet-EX, one per run. The library answers each with an error code,
 * or with one fatal message that names the function, the argument and a remedy.
 *
 * `testbadex -list` prints the cases as `testbad -list` does, without a job: name, threads, passes
 * or dies, and words that lines which begin with *** contain. */
/* args: register_twice */
/* nodes: any */
/* threads: both */
#include "checkex.h"

#include <pthread.h>

/* The state of the job in which a case runs. */
enum when {
    BEFORE_INIT, /* it ends gex_Client_Init */
    BEFORE_ATTACH,
    ATTACHED,
    CHECKED /* attached, with debug checks on */
};
/* DIES: rank 0 alone runs it, and does not return; DIES_TOGETHER: all ranks run it. */
enum outcome { PASSES, DIES, DIES_TOGETHER };

enum { H_NOTHING = 201, H_REQUEST, H_REPLY_TWICE, H_KEEP_TOKEN, H_REPLY_GROUP, H_PUTTING, H_ANSWERED, H_PREPARE, H_PREPARE_LATE, H_WAITING, H_CALLING };

#define NO_RANK 1000000
#define NO_RANK_WORD "1000000"
#define SIZE 65536

/* A team of this rank alone. */
static gex_TM_t alone;
static gex_Token_t kept;
static volatile int came;
static uint64_t word;
static char bytes[256];

static void nothing_h(gex_Token_t token) { (void)token; }
static void request_h(gex_Token_t token) {
    (void)token;
    gex_AM_RequestShort0(ex_tm, 0, H_NOTHING, 0);
}
static void reply_twice_h(gex_Token_t token) {
    gex_AM_ReplyShort0(token, H_ANSWERED, 0);
    gex_AM_ReplyShort0(token, H_ANSWERED, 0);
}
static void keep_token_h(gex_Token_t token) {
    kept = token;
    came = 1;
}
static void reply_group_h(gex_Token_t token) { gex_AM_ReplyMedium0(token, H_ANSWERED, bytes, 1, GEX_EVENT_GROUP, 0); }
static void prepare_h(gex_Token_t token) { gex_AM_PrepareReplyMedium(token, NULL, 0, 10, NULL, 0, 0); }
static void prepare_late_h(gex_Token_t token) {
    gex_AM_ReplyShort0(token, H_ANSWERED, 0);
    prepare_h(token);
}
/* The function: a macro may know that there is nothing to wait for. */
static void waiting_h(gex_Token_t token) {
    (void)token;
    (gex_Event_Wait)(GEX_EVENT_INVALID);
}
static void (*called)(void);
static void calling_h(gex_Token_t token) {
    (void)token;
    called();
    came = 1;
}
static void putting_h(gex_Token_t token) {
    (void)token;
    gex_RMA_PutBlocking(ex_tm, 0, check_at(0, 0), &word, 8, 0);
}

static void send(gex_AM_Index_t handler) {
    gex_AM_RequestShort0(ex_tm, 0, handler, 0);
    GASNET_BLOCKUNTIL(came);
}

/* Runs a function in a handler of this rank. */
static void in_handler(void (*function)(void)) {
    called = function;
    gex_AM_RequestShort0(ex_tm, ex_me, H_CALLING, 0);
    GASNET_BLOCKUNTIL(came);
}

/* ---- objects and the start ---- */

static void register_twice(void) {
    gex_AM_Entry_t row = {H_NOTHING, (gex_AM_Fn_t)nothing_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL};
    CHECK(gex_EP_RegisterHandlers(ex_ep, &row, 1) == GASNET_ERR_BAD_ARG, "an index was registered twice");
}
static void register_low(void) {
    gex_AM_Entry_t row = {64, (gex_AM_Fn_t)nothing_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL};
    CHECK(gex_EP_RegisterHandlers(ex_ep, &row, 1) == GASNET_ERR_BAD_ARG, "an index of the library was registered");
}
static void init_twice(void) {
    CHECK(gex_Client_Init(&ex_client, &ex_ep, &ex_tm, "AGAIN", NULL, NULL, 0) == GASNET_ERR_NOT_INIT, "a second client");
}
static void init_no_memory(void) { setenv("GASNET_PORTAL_AMRECV_SPACE", "1TB", 1); }
/* Before gasnet_attach, a job of gasnet_init answers queries of its objects. */
static void objects_of_init(void) {
    setenv("GASNET_DEBUG_CHECKS", "1", 1);
    check_init("testbadex", NULL, NULL);
    gasnet_QueryGexObjects(&ex_client, &ex_ep, &ex_tm, &ex_segment);
    ex_me = gex_TM_QueryRank(ex_tm);
    ex_ranks = gex_TM_QuerySize(ex_tm);
    CHECK(ex_me == gasnet_mynode() && ex_ranks == gasnet_nodes(), "rank %d of %d", (int)ex_me, (int)ex_ranks);
    CHECK(gex_TM_QueryClient(ex_tm) == ex_client && gex_TM_QueryEP(ex_tm) == ex_ep, "relations");
    CHECK(gex_TM_QueryFlags(ex_tm) == 0 && gex_TM_QueryCData(ex_tm) == NULL, "state of another");
    CHECK(gex_TM_TranslateJobrankToRank(ex_tm, ex_ranks - 1) == ex_ranks - 1, "jobrank to rank");
    CHECK(gex_TM_TranslateRankToJobrank(ex_tm, ex_ranks - 1) == ex_ranks - 1, "rank to jobrank");
    CHECK(gex_AM_MaxRequestMedium(ex_tm, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 0) >= 512, "a limit of messages");
    gex_TM_SetCData(ex_tm, &word);
    check_attach(NULL, 0, SIZE);
    CHECK(gex_TM_QueryCData(ex_tm) == &word, "the pointer was lost");
    ex_barrier(ex_tm);
    check_done();
}
static void attach_size(void) {
    CHECK(gex_Segment_Attach(&ex_segment, ex_tm, GASNET_PAGESIZE + 1) == GASNET_ERR_BAD_ARG, "a crooked segment");
}
static void attach_empty(void) {
    CHECK(gex_Segment_Attach(&ex_segment, ex_tm, 0) == GASNET_ERR_BAD_ARG, "a segment without bytes");
}
static void attach_team(void) {
    CHECK(gex_Segment_Attach(&ex_segment, gex_TM_Pair(ex_ep, 0), GASNET_PAGESIZE) == GASNET_ERR_BAD_ARG, "a pair");
}
static void endpoint_more(void) {
    gex_EP_t ep;
    CHECK(gex_EP_Create(&ep, ex_client, GEX_EP_CAPABILITY_ALL, 0) == GASNET_ERR_RESOURCE, "a second endpoint");
}
static void client_none(void) { gex_Client_QueryName(GEX_CLIENT_INVALID); }
static void endpoint_none(void) { gex_EP_QueryCData((gex_EP_t)(uintptr_t)0x4d); }
static void segment_none(void) { gex_Segment_QueryAddr(GEX_SEGMENT_INVALID); }
static gex_Segment_t created(void) {
    gex_Segment_t segment = GEX_SEGMENT_INVALID;
    CHECK_OK(gex_Segment_Create(&segment, ex_client, &word, sizeof word, GEX_MK_HOST, 0));
    return segment;
}
static void create_empty(void) {
    gex_Segment_t segment;
    CHECK(gex_Segment_Create(&segment, ex_client, &word, 0, GEX_MK_HOST, 0) == GASNET_ERR_BAD_ARG, "no bytes");
}
static void create_beyond(void) {
    gex_Segment_t segment;
    CHECK(gex_Segment_Create(&segment, ex_client, &word, ~(size_t)0, GEX_MK_HOST, 0) == GASNET_ERR_BAD_ARG, "too long");
}
static void create_huge(void) {
    gex_Segment_t segment;
    CHECK(gex_Segment_Create(&segment, ex_client, NULL, ~(size_t)0 / 2, GEX_MK_HOST, 0) == GASNET_ERR_RESOURCE, "too much");
}
static void create_kind(void) {
    gex_Segment_t segment;
    CHECK(gex_Segment_Create(&segment, ex_client, &word, 8, GEX_MK_INVALID, 0) == GASNET_ERR_BAD_ARG, "no kind of memory");
}
static void segment_gone(void) {
    gex_Segment_t segment = created();
    gex_Segment_Destroy(segment, 0);
    gex_Segment_QueryAddr(segment);
}
static void bind_none(void) {
    CHECK(gex_EP_BindSegment(ex_ep, GEX_SEGMENT_INVALID, 0) == GASNET_ERR_BAD_ARG, "no segment was bound");
    CHECK(gex_EP_BindSegment(GEX_EP_INVALID, created(), 0) == GASNET_ERR_BAD_ARG, "bound to no endpoint");
    CHECK(gex_EP_BindSegment(ex_ep, created(), 1) == GASNET_ERR_BAD_ARG, "unknown flags");
}
static void bind_attached(void) {
    CHECK(gex_EP_BindSegment(ex_ep, created(), 0) == GASNET_ERR_BAD_ARG, "a second segment was bound");
}
static void destroy_bound(void) {
    gex_Segment_t segment = created();
    CHECK_OK(gex_EP_BindSegment(ex_ep, segment, 0));
    gex_Segment_Destroy(segment, 0);
}
static void put_unpublished(void) {
    CHECK_OK(gex_EP_BindSegment(ex_ep, created(), 0));
    gex_RMA_PutBlocking(ex_tm, 1, &word, bytes, 8, 0);
}
static void bound_rank(void) { gex_Event_Wait(gex_EP_QueryBoundSegmentNB(ex_tm, NO_RANK, NULL, NULL, NULL, 0)); }

/* ---- teams ---- */

static void attach_bound(void) {
    CHECK_OK(gex_EP_BindSegment(ex_ep, created(), 0));
    CHECK(gex_Segment_Attach(&ex_segment, ex_tm, GASNET_PAGESIZE) == GASNET_ERR_NOT_INIT, "a second segment");
    check_done();
}
static void attach_published(void) {
    if (ex_me == 1) CHECK_OK(gex_EP_BindSegment(ex_ep, created(), 0));
    CHECK_OK(gex_EP_PublishBoundSegment(ex_tm, &ex_ep, 1, 0));
    if (ex_me != 1) CHECK(gex_Segment_Attach(&ex_segment, ex_tm, GASNET_PAGESIZE) == GASNET_ERR_NOT_INIT, "a late segment");
    check_done();
}
/* Threads that only ask need no thread index. */
#if CHECK_PAR
static pthread_barrier_t meeting;
static void one_that_asks(int id) {
    (void)id;
    CHECK(gex_TM_QuerySize(ex_tm) == ex_ranks && gex_TM_QueryRank(ex_tm) == ex_me, "wrong answers");
    CHECK(gex_TM_QueryEP(ex_tm) == ex_ep && gex_TM_QueryClient(ex_tm) == ex_client, "wrong objects");
    pthread_barrier_wait(&meeting);
}
static void par_teams_ask(void) {
    enum { MANY = GASNETT_MAX_THREADS + 4 };
    pthread_barrier_init(&meeting, NULL, MANY);
    check_join(check_start(MANY, 0, one_that_asks), MANY);
}
#else
#define par_teams_ask NULL
#endif
static void team_none(void) { gex_TM_QuerySize(GEX_TM_INVALID); }
static void team_pair(void) { gex_Event_Wait(gex_Coll_BarrierNB(gex_TM_Pair(ex_ep, 0), 0)); }
static void team_all(void) { gex_TM_Destroy(ex_tm, NULL, 0); }
static void team_gone(void) {
    gex_TM_Destroy(alone, NULL, 0);
    gex_TM_QueryRank(alone);
}
static void team_used_again(void) {
    gex_TM_t gone = alone;
    gex_TM_Split(&alone, gone, 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gex_TM_Destroy(gone, NULL, 0);
    gex_TM_Split(&alone, alone, 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gex_Event_Wait(gex_Coll_BarrierNB(gone, 0));
}
static void team_color(void) {
    gex_TM_t tm;
    gex_TM_Split(&tm, ex_tm, -1, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
}
static void team_two(void) {
    gex_EP_Location_t self = {0, 0};
    gex_TM_t tms[2];
    gex_TM_Create(tms, 2, ex_tm, &self, 1, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
}
static void team_twice(void) {
    gex_EP_Location_t members[2] = {{0, 0}, {0, 0}};
    gex_TM_t tm;
    members[0].gex_rank = members[1].gex_rank = ex_me;
    gex_TM_Create(&tm, 1, ex_tm, members, 2, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
}
static void team_stranger(void) {
    gex_EP_Location_t members[] = {{0, 0}, {NO_RANK, 0}};
    gex_TM_t tm;
    gex_TM_Create(&tm, 1, ex_tm, members, 2, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
}
static void team_index(void) {
    gex_EP_Location_t self = {0, 1};
    gex_TM_t tm;
    gex_TM_Create(&tm, 1, ex_tm, &self, 1, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
}
static void team_not_parent(void) {
    gex_EP_Location_t members[] = {{0, 0}, {1, 0}};
    gex_TM_t tm;
    gex_TM_Create(&tm, 1, alone, members, 2, NULL, 0, GEX_FLAG_TM_NO_SCRATCH | GEX_FLAG_RANK_IS_JOBRANK);
}
static void team_without_self(void) {
    gex_EP_Location_t other = {1, 0};
    gex_TM_t tm;
    gex_TM_Create(&tm, 1, ex_tm, &other, 1, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
}
static void create_alone(size_t teams, void *scratch, size_t size, gex_Flags_t flags) {
    gex_EP_Location_t self = {0, 0};
    gex_TM_t tm;
    gex_TM_Create(&tm, teams, alone, &self, 1, &scratch, size, flags);
}
static void team_nowhere(void) { create_alone(0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH); }
static void team_no_flag(void) { create_alone(1, NULL, 0, 0); }
static void team_two_flags(void) { create_alone(1, NULL, 0, GEX_FLAG_TM_NO_SCRATCH | GEX_FLAG_TM_LOCAL_SCRATCH); }
static void team_scratch_outside(void) { create_alone(1, bytes, sizeof bytes, GEX_FLAG_TM_LOCAL_SCRATCH); }
static void split_alone(void *scratch, size_t size) {
    gex_TM_t tm;
    gex_TM_Split(&tm, alone, 0, 0, scratch, size, 0);
}
static void split_no_scratch(void) { split_alone(check_at(0, 0), 0); }
static void split_scratch_outside(void) { split_alone(check_at(0, SIZE - 8), 16); }
static void team_job_rank(void) { gex_TM_TranslateJobrankToRank(ex_tm, ex_ranks); }
static void team_rank_invalid(void) { gex_TM_TranslateRankToJobrank(ex_tm, GEX_RANK_INVALID); }
static void team_with_domain(void) {
    gex_AD_t ad;
    gex_AD_Create(&ad, alone, GEX_DT_U64, GEX_OP_ADD, 0);
    gex_TM_Destroy(alone, NULL, 0);
}
static void team_with_barrier(void) {
    gex_Event_t event = gex_Coll_BarrierNB(alone, 0);
    gex_TM_Destroy(alone, NULL, 0);
    gex_Event_Wait(event);
}
/* Teams as the specification wants them, while calls are checked. */
static void teams_right(void) {
    gex_EP_Location_t self = {0, 0};
    gex_AD_t ad;
    gex_TM_t tm;
    void *scratch = check_at(ex_me, SIZE - 8);
    int i;
    self.gex_rank = ex_me;
    gex_TM_Split(&tm, alone, 0, 0, scratch, 8, 0);
    for (i = 0; i < 300; i++) gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    gex_AD_Create(&ad, tm, GEX_DT_U64, GEX_OP_ADD, 0);
    gex_AD_Destroy(ad);
    gex_TM_Destroy(tm, NULL, 0);
    gex_TM_Create(&tm, 1, ex_tm, &self, 1, &scratch, 8, GEX_FLAG_TM_SYMMETRIC_SCRATCH);
    gex_TM_Destroy(tm, NULL, 0);
    gex_TM_Create(NULL, 7, ex_tm, NULL, 0, NULL, 0, 0);
    self.gex_rank = 0;
    gex_TM_Create(&tm, !ex_me, ex_tm, &self, 1, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    if (!ex_me) gex_TM_Destroy(tm, NULL, 0);
}
static void team_rank(void) { gex_TM_TranslateRankToJobrank(ex_tm, NO_RANK); }

/* ---- puts, gets, events ---- */

static void put_rank(void) { gex_RMA_PutBlocking(ex_tm, NO_RANK, check_at(0, 0), &word, 8, 0); }
static void get_rank(void) { gex_Event_Wait(gex_RMA_GetNB(ex_tm, &word, NO_RANK, check_at(0, 0), 8, 0)); }
static void put_pair_rank(void) { gex_RMA_PutNBI(gex_TM_Pair(ex_ep, 0), NO_RANK, check_at(0, 0), &word, 8, GEX_EVENT_NOW, 0); }
static void put_outside(void) { gex_RMA_PutBlocking(ex_tm, 1, check_at(1, SIZE - 4), &word, 8, 0); }
static void get_outside(void) { gex_RMA_GetBlocking(ex_tm, &word, 1, check_at(1, SIZE - 4), 8, 0); }
static void put_early(void) { gex_RMA_PutBlocking(ex_tm, 1, &word, &word, 8, 0); }
static void put_group(void) { gex_Event_Wait(gex_RMA_PutNB(ex_tm, 1, check_at(1, 0), bytes, 200, GEX_EVENT_GROUP, 0)); }
static void put_nbi_event(void) {
    gex_Event_t leaf;
    gex_RMA_PutNBI(ex_tm, 1, check_at(1, 0), bytes, 200, &leaf, 0);
}
static void value_long(void) { gex_RMA_PutBlockingVal(ex_tm, 1, check_at(1, 0), 1, 9, 0); }
static void value_none(void) { gex_RMA_GetBlockingVal(ex_tm, 1, check_at(1, 0), 0, 0); }
static void wait_no_op(void) { gex_Event_Wait(GEX_EVENT_NO_OP); }
static void test_no_op(void) {
    gex_Event_t events[] = {GEX_EVENT_INVALID, GEX_EVENT_NO_OP};
    gex_Event_TestSome(events, 2, 0);
}
static gex_Event_t begun(void) { return gex_RMA_PutNB(ex_tm, 1, check_at(1, 0), &word, 8, GEX_EVENT_DEFER, 0); }
static void event_twice(void) {
    gex_Event_t event = begun();
    gex_Event_Wait(event);
    gex_Event_Wait(event);
}
static void event_tested_twice(void) {
    gex_Event_t event = begun();
    while (gex_Event_Test(event)) gasnet_AMPoll();
    gex_Event_Test(event);
}
static void event_listed_twice(void) {
    gex_Event_t both[2];
    both[0] = both[1] = begun();
    gex_Event_WaitAll(both, 2, 0);
}
static void leaf_late(void) {
    gex_Event_t event = begun(), leaf = gex_Event_QueryLeaf(event, GEX_EC_LC);
    gex_Event_Wait(event);
    gex_Event_Wait(leaf);
}
static void leaf_of_synced(void) {
    gex_Event_t event = begun();
    gex_Event_Wait(event);
    gex_Event_QueryLeaf(event, GEX_EC_LC);
}
static void leaf_of_leaf(void) { gex_Event_QueryLeaf(gex_Event_QueryLeaf(begun(), GEX_EC_LC), GEX_EC_LC); }
static void leaf_category(void) { gex_Event_QueryLeaf(begun(), GEX_EC_ALL); }
static void test_flags(void) {
    gex_Event_t event = begun();
    gex_Event_TestAll(&event, 1, GEX_FLAG_IMMEDIATE);
}
static void region_flags(void) { gex_NBI_BeginAccessRegion(GEX_FLAG_IMMEDIATE); }
/* What may be done with leaves, while calls are checked. */
static void leaves_right(void) {
    gex_Event_t events[3], event, leaf;
    int order;
    event = begun();
    leaf = gex_Event_QueryLeaf(event, GEX_EC_LC);
    CHECK(leaf == gex_Event_QueryLeaf(event, GEX_EC_LC), "an event has two leaves");
    gex_Event_Wait(leaf);
    gex_Event_Wait(gex_Event_QueryLeaf(event, GEX_EC_PUT));
    gex_Event_Wait(event);
    for (order = 0; order < 2; order++) {
        events[order] = begun();
        events[1 - order] = gex_Event_QueryLeaf(events[order], GEX_EC_LC);
        events[2] = GEX_EVENT_INVALID;
        while (events[0] != GEX_EVENT_INVALID || events[1] != GEX_EVENT_INVALID) gex_Event_WaitSome(events, 3, 0);
    }
    gex_NBI_BeginAccessRegion(0);
    gex_RMA_PutNBI(ex_tm, 1, check_at(1, 0), &word, 8, GEX_EVENT_DEFER, 0);
    event = gex_NBI_EndAccessRegion(0);
    gex_Event_Wait(gex_Event_QueryLeaf(event, GEX_EC_LC));
    gex_Event_Wait(event);
    event = gex_RMA_PutNB(ex_tm, 1, check_at(1, 0), &word, 8, &leaf, 0);
    gex_Event_Wait(event);
    gex_Event_Wait(gex_Coll_BarrierNB(alone, 0));
    gex_Event_Wait(GEX_EVENT_INVALID);
}
static void leaf_no_op(void) { gex_Event_Wait(gex_Event_QueryLeaf(GEX_EVENT_NO_OP, GEX_EC_LC)); }
static void wait_other(void) { gex_Event_Wait((gex_Event_t)(uintptr_t)0x7654321); }
static void wait_other_leaf(void) { gex_Event_Wait((gex_Event_t)(uintptr_t)0x55d080004560); }
static void region_twice(void) {
    gex_NBI_BeginAccessRegion(0);
    gex_NBI_BeginAccessRegion(0);
}
static void region_end(void) { gex_Event_Wait(gex_NBI_EndAccessRegion(0)); }
static void wait_in_region(void) {
    gex_NBI_BeginAccessRegion(0);
    (gex_NBI_Wait)(GEX_EC_ALL, 0);
}
static void vector_totals(void) {
    gex_Memvec_t to, from;
    to.gex_addr = check_at(1, 0);
    to.gex_len = 16;
    from.gex_addr = bytes;
    from.gex_len = 15;
    gex_Event_Wait(gex_VIS_VectorPutNB(ex_tm, 1, 1, &to, 1, &from, 0));
}
static void indexed_outside(void) {
    void *from = check_at(1, SIZE - 8), *to = bytes;
    gex_VIS_IndexedGetBlocking(ex_tm, 1, &to, 16, 1, 1, &from, 16, 0);
}
static void strided_outside(void) {
    const ptrdiff_t down = -8, up = 8;
    const size_t count = 2;
    gex_VIS_StridedPutBlocking(ex_tm, 1, check_at(1, 0), &down, bytes, &up, 8, &count, 1, 0);
}
static void strided_levels(void) {
    const ptrdiff_t up = 8;
    const size_t count = 2;
    gex_VIS_StridedGetBlocking(ex_tm, bytes, &up, 1, check_at(1, 0), &up, 8, &count, (size_t)1 << 60, 0);
}
static void notice_long(void) { gex_VIS_SetPeerCompletionHandler(H_ANSWERED, bytes, GEX_VIS_MAX_PEERCOMPLETION + 1, 0); }
static void notice_handler(void) { gex_VIS_SetPeerCompletionHandler(5, NULL, 0, 0); }

/* ---- messages ---- */

static void short_rank(void) { gex_AM_RequestShort0(ex_tm, NO_RANK, H_NOTHING, 0); }
static void short_reserved(void) { gex_AM_RequestShort0(ex_tm, 1, 64, 0); }
static void medium_defer(void) { gex_AM_RequestMedium0(ex_tm, 1, H_NOTHING, bytes, 1, GEX_EVENT_DEFER, 0); }
static void medium_null(void) { gex_AM_RequestMedium0(ex_tm, 1, H_NOTHING, bytes, 1, NULL, 0); }
static void long_outside(void) {
    gex_AM_RequestLong0(ex_tm, 1, H_NOTHING, &word, 8, check_at(1, SIZE - 4), GEX_EVENT_NOW, 0);
}
static void arguments_many(void) {
    static const gex_AM_Arg_t args[17] = {0};
    gasneti_RequestShort(ex_tm, 1, H_NOTHING, 0, 17, args);
}
static void limit_rank(void) { gex_AM_MaxRequestMedium(ex_tm, NO_RANK, GEX_EVENT_NOW, 0, 0); }
static void limit_args(void) { gex_AM_MaxRequestMedium(ex_tm, 0, GEX_EVENT_NOW, 0, 17); }
static void limit_defer(void) { gex_AM_MaxReplyLong(ex_tm, 0, GEX_EVENT_DEFER, 0, 0); }
static void limit_team(void) { gex_AM_MaxRequestLong(GEX_TM_INVALID, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 0); }
static void limit_token(void) {
    send(H_KEEP_TOKEN);
    gex_Token_MaxReplyMedium(kept, GEX_EVENT_NOW, 0, 0);
}
static void request_in_handler(void) { send(H_REQUEST); }
static void reply_twice(void) { send(H_REPLY_TWICE); }
static void reply_group(void) { send(H_REPLY_GROUP); }
static void token_later(void) {
    gex_Token_Info_t info;
    send(H_KEEP_TOKEN);
    gex_Token_Info(kept, &info, GEX_TI_SRCRANK);
}
static gex_AM_SrcDesc_t prepare(size_t most) {
    return gex_AM_PrepareRequestMedium(ex_tm, 1, NULL, 0, most, NULL, 0, 0);
}
static void prepare_twice(void) {
    prepare(10);
    prepare(10);
}
static void prepare_least(void) { gex_AM_PrepareRequestMedium(ex_tm, 1, NULL, 20, 10, NULL, 0, 0); }
static void prepare_leaf(void) { gex_AM_PrepareRequestMedium(ex_tm, 1, NULL, 0, 10, GEX_EVENT_NOW, 0, 0); }
static void prepare_null(void) { gex_AM_PrepareRequestMedium(ex_tm, 1, bytes, 0, 10, NULL, 0, 0); }
static void prepare_defer(void) { gex_AM_PrepareRequestMedium(ex_tm, 1, bytes, 0, 10, GEX_EVENT_DEFER, 0, 0); }
static void commit_elsewhere(void) {
    gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestLong(ex_tm, 1, NULL, 0, 10, check_at(1, 0), NULL, 0, 0);
    gex_AM_CommitRequestLong0(sd, H_NOTHING, 1, check_at(1, 8));
}
static void message_args(void) {
    gex_AM_RequestShort1(ex_tm, 0, H_REQUEST, 0, 7);
    GASNET_BLOCKUNTIL(came);
}
static void message_category(void) {
    gex_AM_RequestMedium0(ex_tm, 0, H_REQUEST, bytes, 8, GEX_EVENT_NOW, 0);
    GASNET_BLOCKUNTIL(came);
}
static void commit_more(void) { gex_AM_CommitRequestMedium0(prepare(10), H_NOTHING, 11); }
static void commit_none(void) { gex_AM_CommitRequestMedium0(GEX_AM_SRCDESC_NO_OP, H_NOTHING, 0); }
static void commit_twice(void) {
    gex_AM_SrcDesc_t sd = prepare(10);
    gex_AM_CommitRequestMedium0(sd, H_ANSWERED, 1);
    gex_AM_CommitRequestMedium0(sd, H_ANSWERED, 1);
}
static void *commit_it(void *sd) {
    gex_AM_CommitRequestMedium0((gex_AM_SrcDesc_t)sd, H_NOTHING, 1);
    return NULL;
}
static void par_commit_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, commit_it, prepare(10));
    pthread_join(thread, NULL);
}
static void address_after(void) {
    gex_AM_SrcDesc_t sd = prepare(10);
    gex_AM_CancelRequestMedium(sd, 0);
    prepare(10);
    gex_AM_SrcDescAddr(sd);
}
static void reply_kept_prepared(void) { send(H_PREPARE); }
static void prepare_in_handler(void) { send(H_PREPARE_LATE); }
static void request_between(void) {
    prepare(10);
    gex_AM_RequestShort0(ex_tm, 1, H_NOTHING, 0);
}
static void poll_between(void) {
    prepare(10);
    gasnet_AMPoll();
}
static void commit_other(void) { gex_AM_CommitRequestLong0(prepare(10), H_NOTHING, 1, check_at(1, 0)); }
static void cancel_other(void) { gex_AM_CancelReplyMedium(prepare(10), 0); }

/* ---- atomics and collectives ---- */

static gex_AD_t domain(gex_DT_t dt, gex_OP_t ops) {
    gex_AD_t ad;
    gex_AD_Create(&ad, alone, dt, ops, 0);
    return ad;
}
#define OP(ad, rank, at, op) gex_Event_Wait(gex_AD_OpNB_U64(ad, &word, rank, at, op, 1, 1, 0))
static void domain_type(void) { domain(0, GEX_OP_ADD); }
static void domain_bits(void) { domain(GEX_DT_DBL, GEX_OP_ADD | GEX_OP_XOR); }
static void domain_none(void) { OP(GEX_AD_INVALID, 0, check_at(0, 0), GEX_OP_ADD); }
static void domain_gone(void) {
    gex_AD_t ad = domain(GEX_DT_U64, GEX_OP_ADD);
    gex_AD_Destroy(ad);
    gex_AD_QueryOps(ad);
}
static void domain_used_again(void) {
    gex_AD_t gone = domain(GEX_DT_U64, GEX_OP_ADD);
    gex_AD_Destroy(gone);
    domain(GEX_DT_U64, GEX_OP_ADD);
    OP(gone, 0, check_at(0, 0), GEX_OP_ADD);
}
static void domain_reset(void) {
    gex_AD_t ad = domain(GEX_DT_U64, GEX_OP_ADD);
    OP(ad, 0, check_at(0, 0), GEX_OP_ADD);
    gex_AD_Destroy(ad);
    ad = GEX_AD_INVALID;
    OP(ad, 0, check_at(0, 0), GEX_OP_ADD);
}
static void domain_twice(void) {
    gex_AD_t gone = domain(GEX_DT_U64, GEX_OP_ADD);
    gex_AD_Destroy(gone);
    gex_AD_Destroy(gone);
}
static void atomic_type(void) { OP(domain(GEX_DT_I64, GEX_OP_ADD), 0, check_at(0, 0), GEX_OP_ADD); }
static void atomic_op(void) { OP(domain(GEX_DT_U64, GEX_OP_ADD), 0, check_at(0, 0), GEX_OP_FADD); }
static void atomic_ops(void) { OP(domain(GEX_DT_U64, GEX_OP_ADD | GEX_OP_SUB), 0, check_at(0, 0), GEX_OP_ADD | GEX_OP_SUB); }
static void atomic_null(void) {
    gex_AD_t ad = domain(GEX_DT_U64, GEX_OP_FADD);
    gex_Event_Wait(gex_AD_OpNB_U64(ad, NULL, 0, (uint64_t *)check_at(0, 0), GEX_OP_FADD, 1, 0, 0));
}
static void atomic_rank(void) { OP(domain(GEX_DT_U64, GEX_OP_ADD), 1, check_at(0, 0), GEX_OP_ADD); }
static void atomic_crooked(void) { OP(domain(GEX_DT_U64, GEX_OP_ADD), 0, check_at(0, 4), GEX_OP_ADD); }
static void atomic_outside(void) { OP(domain(GEX_DT_U64, GEX_OP_ADD), 0, check_at(0, SIZE), GEX_OP_ADD); }
static void coll_root(void) { gex_Event_Wait(gex_Coll_BroadcastNB(ex_tm, NO_RANK, &word, &word, 8, 0)); }
static void reduce_op(void) {
    gex_Event_Wait(gex_Coll_ReduceToAllNB(ex_tm, &word, &word, GEX_DT_U64, 8, 1, GEX_OP_FADD, NULL, NULL, 0));
}
static void reduce_size(void) {
    gex_Event_Wait(gex_Coll_ReduceToAllNB(ex_tm, &word, &word, GEX_DT_U64, 4, 1, GEX_OP_ADD, NULL, NULL, 0));
}
static void reduce_function(void) {
    gex_Event_Wait(gex_Coll_ReduceToAllNB(ex_tm, &word, &word, GEX_DT_USER, 8, 1, GEX_OP_USER, NULL, NULL, 0));
}

/* ---- with debug checks ---- */

static void lock_put(void) {
    static gex_HSL_t lock = GEX_HSL_INITIALIZER;
    gex_HSL_Lock(&lock);
    gex_RMA_PutBlocking(ex_tm, 1, check_at(1, 0), &word, 8, 0);
}
static void lock_request(void) {
    static gex_HSL_t lock = GEX_HSL_INITIALIZER;
    gex_HSL_Lock(&lock);
    gex_AM_RequestShort0(ex_tm, 1, H_NOTHING, 0);
}
static gex_HSL_t held = GEX_HSL_INITIALIZER;
static void lock_twice(void) {
    gex_HSL_Lock(&held);
    gex_HSL_Lock(&held);
}
static void lock_polls(void) {
    gex_HSL_Lock(&held);
    gasnet_AMPoll();
}
static void unlock_open(void) { gex_HSL_Unlock(&held); }
static void wait_for_nothing(void) { gex_Event_Wait(GEX_EVENT_INVALID); }
static void lock_wait(void) {
    gex_HSL_Lock(&held);
    wait_for_nothing();
}
static void handler_waits_inline(void) { in_handler(wait_for_nothing); }
static void handler_registers(void) { in_handler(register_twice); }
static void handler_creates(void) { in_handler(create_empty); }
static void translate(void) { gex_TM_TranslateRankToJobrank(ex_tm, 0); }
static void handler_translates(void) { in_handler(translate); }
static void bound_later(void) { gex_Event_Wait(gex_EP_QueryBoundSegmentNB(ex_tm, 0, NULL, NULL, NULL, 0)); }
static void handler_bound(void) { in_handler(bound_later); }
static void bound_at_once(void) {
    uintptr_t size;
    CHECK(gex_EP_QueryBoundSegmentNB(ex_tm, 0, NULL, NULL, &size, GEX_FLAG_IMMEDIATE) == GEX_EVENT_INVALID && size == SIZE, "no query in a handler");
    CHECK(gex_TM_QuerySize(ex_tm) == ex_ranks && gex_AM_LUBReplyLong() > 0, "no query in a handler");
}
static void handler_queries(void) {
    in_handler(bound_at_once);
    gex_HSL_Lock(&held);
    bound_at_once();
    gex_HSL_Unlock(&held);
}
static void handler_puts(void) { send(H_PUTTING); }
static void handler_waits(void) { send(H_WAITING); }

static void put_from_null(void) { gex_RMA_PutBlocking(ex_tm, 1, check_at(1, 0), NULL, 8, 0); }
static void get_to_null(void) { gex_Event_Wait(gex_RMA_GetNB(ex_tm, NULL, 1, check_at(1, 0), 8, 0)); }
static void put_none_from_null(void) {
    gex_RMA_PutBlocking(ex_tm, 1, check_at(1, 0), NULL, 0, 0);
    gex_RMA_GetBlocking(ex_tm, NULL, 1, check_at(1, 0), 0, 0);
    gex_Event_Wait(gex_Coll_BroadcastNB(ex_tm, 0, NULL, NULL, 0, 0));
    gex_Event_Wait(gex_Coll_ReduceToOneNB(ex_tm, 0, ex_me ? NULL : bytes, &word, GEX_DT_U64, 8, 1, GEX_OP_ADD, NULL, NULL, 0));
}
static void reduce_to_null(void) {
    gex_Event_Wait(gex_Coll_ReduceToOneNB(ex_tm, 0, NULL, &word, GEX_DT_U64, 8, 1, GEX_OP_ADD, NULL, NULL, 0));
}
static void broadcast_from_null(void) { gex_Event_Wait(gex_Coll_BroadcastNB(ex_tm, 0, bytes, NULL, 8, 0)); }

static void medium_from_null(void) { gex_AM_RequestMedium0(ex_tm, 1, H_NOTHING, NULL, 8, GEX_EVENT_NOW, 0); }
static void putv_from_null(void) {
    gex_Memvec_t to[1] = {{check_at(1, 0), 8}}, from[1] = {{NULL, 8}};
    gex_VIS_VectorPutBlocking(ex_tm, 1, 1, to, 1, from, 0);
}
static void puti_without_list(void) {
    void *to[1] = {check_at(1, 0)};
    gex_VIS_IndexedPutNBI(ex_tm, 1, 1, to, 8, 1, NULL, 8, 0);
}
static void gets_without_counts(void) {
    ptrdiff_t stride[1] = {16};
    gex_Event_Wait(gex_VIS_StridedGetNB(ex_tm, bytes, stride, 1, check_at(1, 0), stride, 4, NULL, 1, 0));
}
static void notice_from_null(void) { gex_VIS_SetPeerCompletionHandler(H_ANSWERED, NULL, 8, 0); }
/* Without bytes an address may be null. */
static void strided_none_from_null(void) {
    size_t none[1] = {0};
    gex_VIS_StridedPutBlocking(ex_tm, 1, NULL, NULL, NULL, NULL, 0, NULL, 1, 0);
    gex_VIS_StridedGetBlocking(ex_tm, NULL, NULL, 1, NULL, NULL, 8, none, 1, 0);
    gex_VIS_VectorGetNBI(ex_tm, 0, NULL, 1, 0, NULL, 0);
}

static void put_overlaps(void) { gex_RMA_PutBlocking(ex_tm, ex_me, check_at(ex_me, 0), check_at(ex_me, 4), 8, 0); }
static void put_to_self(void) { gex_RMA_PutBlocking(ex_tm, ex_me, check_at(ex_me, 0), &word, 8, GEX_FLAG_PEER_NEVER_SELF); }
static void get_near(void) { gex_RMA_GetBlockingVal(ex_tm, ex_me, check_at(ex_me, 0), 8, GEX_FLAG_PEER_NEVER_NBRHD); }
static gex_AD_t domain_of_all(void) {
    gex_AD_t ad;
    gex_AD_Create(&ad, ex_tm, GEX_DT_U64, GEX_OP_ADD, 0);
    return ad;
}
#define ADD(ad, rank, flags) gex_Event_Wait(gex_AD_OpNB_U64(ad, NULL, rank, check_at(rank, 0), GEX_OP_ADD, 1, 0, flags))
static void atomic_of_other(void) { ADD(domain_of_all(), 1, GEX_FLAG_AD_MY_RANK); }
static void atomic_of_stranger(void) { ADD(domain(GEX_DT_U64, GEX_OP_ADD), 1, GEX_FLAG_RANK_IS_JOBRANK); }
/* Flags that say what is so, while calls are checked. */
static void flags_right(void) {
    gex_AD_t ad = domain_of_all(), own = domain(GEX_DT_U64, GEX_OP_ADD);
    ADD(ad, ex_me, GEX_FLAG_AD_MY_RANK);
    ADD(ad, ex_me, GEX_FLAG_AD_MY_NBRHD | GEX_FLAG_RANK_IS_JOBRANK);
    gex_Event_Wait(gex_AD_OpNB_U64(own, NULL, 0, check_at(ex_me, 0), GEX_OP_ADD, 1, 0, GEX_FLAG_AD_MY_RANK));
    ADD(own, ex_me, GEX_FLAG_RANK_IS_JOBRANK);
    gex_RMA_PutBlocking(ex_tm, !ex_me, check_at(!ex_me, 0), &word, 8, GEX_FLAG_PEER_NEVER_SELF);
    gex_RMA_PutBlocking(ex_tm, ex_me, check_at(ex_me, 0), check_at(ex_me, 8), 8, 0);
}

static void reduce_nothing(void) {
    gex_Event_Wait(gex_Coll_ReduceToAllNB(ex_tm, &word, &word, GEX_DT_U64, 8, 0, GEX_OP_ADD, NULL, NULL, 0));
}
static void prepare_arguments(void) { gex_AM_PrepareRequestMedium(ex_tm, 1, bytes, 0, 10, GEX_EVENT_NOW, 0, 17); }
static void cancel_flags(void) { gex_AM_CancelRequestMedium(prepare(10), 5); }
static void publish_flags(void) { gex_EP_PublishBoundSegment(ex_tm, NULL, 0, 7); }
static void location_flags(void) { gex_TM_TranslateRankToEP(ex_tm, 0, 3); }

/* ---- collectives that differ between the ranks ---- */

static int64_t numbers[2];
static void broadcast(gex_Rank_t root, size_t nbytes) {
    gex_Event_Wait(gex_Coll_BroadcastNB(ex_tm, root, bytes, bytes, nbytes, 0));
}
static void reduce(gex_DT_t dt, gex_OP_t op) {
    gex_Event_Wait(gex_Coll_ReduceToAllNB(ex_tm, numbers, numbers, dt, 8, 2, op, NULL, NULL, 0));
}
static void coll_roots_differ(void) { broadcast(ex_me, 8); }
static void coll_sizes_differ(void) { broadcast(0, ex_me ? 8 : 16); }
static void coll_calls_differ(void) {
    if (ex_me) broadcast(0, 8);
    gex_Event_Wait(gex_Coll_BarrierNB(ex_tm, 0));
}
static void coll_ops_differ(void) { reduce(GEX_DT_I64, ex_me ? GEX_OP_ADD : GEX_OP_MAX); }
static void coll_types_differ(void) { reduce(ex_me ? GEX_DT_I64 : GEX_DT_DBL, GEX_OP_ADD); }
/* Calls that agree, while calls are checked. */
static void coll_agree(void) {
    int i;
    for (i = 0; i < 1000; i++) {
        broadcast((gex_Rank_t)i % ex_ranks, 8);
        reduce(GEX_DT_I64, GEX_OP_MAX);
        gex_Event_Wait(gex_Coll_BarrierNB(ex_tm, 0));
    }
}

static const struct testcase {
    const char *name;
    enum when when;
    enum outcome outcome;
    const char *words;
    void (*run)(void);
} cases[] = {
    {"register_twice", ATTACHED, PASSES, "gex_EP_RegisterHandlers()|index 201|twice", register_twice},
    {"register_low", ATTACHED, PASSES, "gex_EP_RegisterHandlers()|index 64|128", register_low},
    {"init_twice", BEFORE_ATTACH, PASSES, "gex_Client_Init()|before", init_twice},
    {"init_no_memory", BEFORE_INIT, DIES, "gex_Client_Init(): the Portals network cannot be set up|GASNET_PORTAL_AMRECV_SPACE", init_no_memory},
    {"objects_of_init", BEFORE_INIT, PASSES, "", objects_of_init},
    {"attach_size", BEFORE_ATTACH, PASSES, "gex_Segment_Attach()|page size", attach_size},
    {"attach_empty", BEFORE_ATTACH, PASSES, "gex_Segment_Attach()|0 bytes|GASNET_PAGESIZE", attach_empty},
    {"attach_team", BEFORE_ATTACH, PASSES, "gex_Segment_Attach()|0x1|team of all ranks", attach_team},
    {"endpoint_more", ATTACHED, PASSES, "gex_EP_Create()|GASNET_MAXEPS", endpoint_more},
    {"client_none", ATTACHED, DIES, "gex_Client_QueryName()|0x0|no client|gex_Client_Init", client_none},
    {"endpoint_none", ATTACHED, DIES, "gex_EP_QueryCData()|0x4d|no endpoint", endpoint_none},
    {"segment_none", BEFORE_ATTACH, DIES, "gex_Segment_QueryAddr()|no segment|gex_Segment_Attach", segment_none},
    {"segment_gone", BEFORE_ATTACH, DIES, "gex_Segment_QueryAddr()|gex_Segment_Destroy", segment_gone},
    {"create_empty", BEFORE_ATTACH, PASSES, "gex_Segment_Create()|no bytes", create_empty},
    {"create_beyond", BEFORE_ATTACH, PASSES, "gex_Segment_Create()|beyond all addresses", create_beyond},
    {"create_huge", BEFORE_ATTACH, PASSES, "gex_Segment_Create()|no memory|ulimit -v", create_huge},
    {"create_kind", BEFORE_ATTACH, PASSES, "gex_Segment_Create()|no kind of memory|GEX_MK_HOST", create_kind},
    {"bind_none", BEFORE_ATTACH, PASSES, "gex_EP_BindSegment()|no created segment|no such endpoint or flags", bind_none},
    {"bind_attached", ATTACHED, PASSES, "gex_EP_BindSegment()|bound already", bind_attached},
    {"destroy_bound", BEFORE_ATTACH, DIES, "gex_Segment_Destroy()|bound to the endpoint", destroy_bound},
    {"put_unpublished", BEFORE_ATTACH, DIES, "gex_RMA_PutBlocking()|no segment is known|gex_EP_PublishBoundSegment", put_unpublished},
    {"bound_rank", ATTACHED, DIES, "gex_EP_QueryBoundSegmentNB()|" NO_RANK_WORD, bound_rank},
    {"attach_bound", BEFORE_ATTACH, PASSES, "gex_Segment_Attach()|was bound by gex_EP_BindSegment", attach_bound},
    {"attach_published", BEFORE_ATTACH, PASSES, "gex_Segment_Attach()|other ranks have published|before any rank binds", attach_published},
    {"par_teams_ask", ATTACHED, PASSES, "", par_teams_ask},
    {"team_none", ATTACHED, DIES, "gex_TM_QuerySize()|0x0|no team", team_none},
    {"team_pair", ATTACHED, DIES, "gex_Coll_BarrierNB()|pair", team_pair},
    {"team_all", ATTACHED, DIES, "gex_TM_Destroy()|team of all ranks", team_all},
    {"team_gone", ATTACHED, DIES, "gex_TM_QueryRank()|gex_TM_Destroy", team_gone},
    {"team_used_again", ATTACHED, DIES, "gex_Coll_BarrierNB()|gex_TM_Destroy", team_used_again},
    {"team_color", ATTACHED, DIES, "gex_TM_Split()|color -1", team_color},
    {"team_two", ATTACHED, DIES, "gex_TM_Create()|2 new teams", team_two},
    {"team_twice", ATTACHED, DIES, "gex_TM_Create()|is listed twice", team_twice},
    {"team_stranger", ATTACHED, DIES, "gex_TM_Create()|entry 1|" NO_RANK_WORD "|not below", team_stranger},
    {"team_index", ATTACHED, DIES, "gex_TM_Create()|entry 0|endpoint index 1|GASNET_MAXEPS is 1", team_index},
    {"team_not_parent", ATTACHED, DIES, "gex_TM_Create()|entry 1|rank 1 of the job|parent team", team_not_parent},
    {"team_without_self", ATTACHED, DIES, "gex_TM_Create()|num_new_tms is 1|no endpoint of this rank", team_without_self},
    {"team_nowhere", CHECKED, DIES, "gex_TM_Create()|num_new_tms is 0|endpoint of this rank", team_nowhere},
    {"team_no_flag", CHECKED, DIES, "gex_TM_Create()|0x0|GEX_FLAG_TM_GLOBAL_SCRATCH", team_no_flag},
    {"team_two_flags", CHECKED, DIES, "gex_TM_Create()|0x28|Pass one of", team_two_flags},
    {"team_scratch_outside", CHECKED, DIES, "gex_TM_Create()|scratch memory|not in the segment", team_scratch_outside},
    {"split_no_scratch", CHECKED, DIES, "gex_TM_Split()|0 bytes|GEX_FLAG_TM_NO_SCRATCH", split_no_scratch},
    {"split_scratch_outside", CHECKED, DIES, "gex_TM_Split()|16 bytes|not in the segment", split_scratch_outside},
    {"team_job_rank", CHECKED, DIES, "gex_TM_TranslateJobrankToRank()|rank 2", team_job_rank},
    {"team_rank_invalid", ATTACHED, DIES, "gex_TM_TranslateRankToJobrank()|rank GEX_RANK_INVALID", team_rank_invalid},
    {"team_with_domain", CHECKED, DIES, "gex_TM_Destroy()|atomics domain|gex_AD_Destroy", team_with_domain},
    {"team_with_barrier", CHECKED, DIES, "gex_TM_Destroy()|not synced", team_with_barrier},
    {"teams_right", CHECKED, PASSES, "", teams_right},
    {"team_rank", ATTACHED, DIES, "gex_TM_TranslateRankToJobrank()|" NO_RANK_WORD, team_rank},
    {"put_rank", ATTACHED, DIES, "gex_RMA_PutBlocking()|" NO_RANK_WORD, put_rank},
    {"get_rank", ATTACHED, DIES, "gex_RMA_GetNB()|" NO_RANK_WORD, get_rank},
    {"put_pair_rank", ATTACHED, DIES, "gex_RMA_PutNBI()|" NO_RANK_WORD, put_pair_rank},
    {"put_outside", ATTACHED, DIES, "gex_RMA_PutBlocking()|outside the segment of rank 1", put_outside},
    {"get_outside", ATTACHED, DIES, "gex_RMA_GetBlocking()|outside the segment of rank 1", get_outside},
    {"put_early", BEFORE_ATTACH, DIES, "gex_RMA_PutBlocking()|before any segment|gex_Segment_Attach", put_early},
    {"put_group", CHECKED, DIES, "gex_RMA_PutNB()|lc_opt|GEX_EVENT_NOW", put_group},
    {"put_nbi_event", ATTACHED, DIES, "gex_RMA_PutNBI()|lc_opt|GEX_EVENT_NOW", put_nbi_event},
    {"value_long", ATTACHED, DIES, "gex_RMA_PutBlockingVal()|9|8", value_long},
    {"value_none", ATTACHED, DIES, "gex_RMA_GetBlockingVal()|0 bytes|8", value_none},
    {"wait_no_op", ATTACHED, DIES, "gex_Event_Wait()|GEX_EVENT_NO_OP", wait_no_op},
    {"test_no_op", ATTACHED, DIES, "gex_Event_TestSome()|GEX_EVENT_NO_OP", test_no_op},
    {"event_twice", CHECKED, DIES, "gex_Event_Wait()|synced twice", event_twice},
    {"event_tested_twice", CHECKED, DIES, "gex_Event_Test()|synced twice", event_tested_twice},
    {"event_listed_twice", CHECKED, DIES, "gex_Event_WaitAll()|synced twice", event_listed_twice},
    {"leaf_late", CHECKED, DIES, "gex_Event_Wait()|leaf of an operation that was synced", leaf_late},
    {"leaf_of_synced", CHECKED, DIES, "gex_Event_QueryLeaf()|synced", leaf_of_synced},
    {"leaf_of_leaf", CHECKED, DIES, "gex_Event_QueryLeaf()|is a leaf", leaf_of_leaf},
    {"leaf_category", CHECKED, DIES, "gex_Event_QueryLeaf()|0xffffffff|one category", leaf_category},
    {"leaves_right", CHECKED, PASSES, "", leaves_right},
    {"test_flags", CHECKED, DIES, "gex_Event_TestAll()|0x1|Pass 0", test_flags},
    {"region_flags", CHECKED, DIES, "gex_NBI_BeginAccessRegion()|0x1|Pass 0", region_flags},
    {"leaf_no_op", ATTACHED, DIES, "gex_Event_QueryLeaf()|GEX_EVENT_NO_OP", leaf_no_op},
    {"wait_other", ATTACHED, DIES, "0x7654321|handle", wait_other},
    {"wait_other_leaf", ATTACHED, DIES, "0x55d080004560|handle", wait_other_leaf},
    {"region_twice", ATTACHED, DIES, "gex_NBI_BeginAccessRegion()|open", region_twice},
    {"region_end", ATTACHED, DIES, "gex_NBI_EndAccessRegion()|gex_NBI_BeginAccessRegion", region_end},
    {"wait_in_region", ATTACHED, DIES, "gex_NBI_Wait()|region", wait_in_region},
    {"vector_totals", ATTACHED, DIES, "gex_VIS_VectorPutNB()|destination has 16 bytes|source 15", vector_totals},
    {"indexed_outside", ATTACHED, DIES, "gex_VIS_IndexedGetBlocking()|16 bytes|segment of rank 1", indexed_outside},
    {"strided_outside", ATTACHED, DIES, "gex_VIS_StridedPutBlocking()|16 bytes|segment of rank 1", strided_outside},
    {"strided_levels", ATTACHED, DIES, "gex_VIS_StridedGetBlocking()|1152921504606846976 stride levels|65535", strided_levels},
    {"notice_long", ATTACHED, DIES, "gex_VIS_SetPeerCompletionHandler()|128|127", notice_long},
    {"notice_handler", ATTACHED, DIES, "gex_VIS_SetPeerCompletionHandler()|handler 5|128", notice_handler},
    {"short_rank", ATTACHED, DIES, "gex_AM_RequestShort()|" NO_RANK_WORD, short_rank},
    {"short_reserved", ATTACHED, DIES, "gex_AM_RequestShort()|handler 64|128", short_reserved},
    {"medium_defer", ATTACHED, DIES, "gex_AM_RequestMedium()|lc_opt|GEX_EVENT_NOW", medium_defer},
    {"medium_null", ATTACHED, DIES, "gex_AM_RequestMedium()|lc_opt|GEX_EVENT_NOW", medium_null},
    {"long_outside", ATTACHED, DIES, "gex_AM_RequestLong()|outside the segment of rank 1", long_outside},
    {"arguments_many", ATTACHED, DIES, "gex_AM_RequestShort()|17|16", arguments_many},
    {"limit_rank", ATTACHED, DIES, "gex_AM_MaxRequestMedium()|" NO_RANK_WORD, limit_rank},
    {"limit_args", CHECKED, DIES, "gex_AM_MaxRequestMedium()|17|16", limit_args},
    {"limit_defer", CHECKED, DIES, "gex_AM_MaxReplyLong()|lc_opt|GEX_EVENT_NOW", limit_defer},
    {"limit_team", CHECKED, DIES, "gex_AM_MaxRequestLong()|0x0|no team", limit_team},
    {"limit_token", CHECKED, DIES, "gex_Token_MaxReplyMedium()|token", limit_token},
    {"request_in_handler", ATTACHED, DIES, "gex_AM_RequestShort()|handler|gex_AM_Reply", request_in_handler},
    {"reply_twice", ATTACHED, DIES, "gex_AM_ReplyShort()|replied", reply_twice},
    {"reply_group", ATTACHED, DIES, "gex_AM_ReplyMedium()|lc_opt", reply_group},
    {"token_later", ATTACHED, DIES, "gex_Token_Info()|token", token_later},
    {"prepare_twice", ATTACHED, DIES, "gex_AM_PrepareRequestMedium()|prepared a message already", prepare_twice},
    {"prepare_least", ATTACHED, DIES, "gex_AM_PrepareRequestMedium()|20 to 10 bytes", prepare_least},
    {"prepare_leaf", ATTACHED, DIES, "gex_AM_PrepareRequestMedium()|lc_opt|client_buf", prepare_leaf},
    {"prepare_null", ATTACHED, DIES, "gex_AM_PrepareRequestMedium()|lc_opt|GEX_EVENT_NOW", prepare_null},
    {"prepare_defer", ATTACHED, DIES, "gex_AM_PrepareRequestMedium()|lc_opt|GROUP", prepare_defer},
    {"commit_elsewhere", CHECKED, DIES, "gex_AM_CommitRequestLong()|dest_addr|gex_AM_Prepare", commit_elsewhere},
    {"message_args", CHECKED, DIES, "was registered for other messages|a Short request with 1 arguments|gex_nargs", message_args},
    {"message_category", CHECKED, DIES, "was registered for other messages|a Medium request with 0 arguments|gex_flags", message_category},
    {"commit_more", ATTACHED, DIES, "gex_AM_CommitRequestMedium()|11 bytes|10 and 0", commit_more},
    {"commit_none", ATTACHED, DIES, "gex_AM_CommitRequestMedium()|source descriptor", commit_none},
    {"commit_twice", ATTACHED, DIES, "gex_AM_CommitRequestMedium()|source descriptor", commit_twice},
    {"commit_other", ATTACHED, DIES, "gex_AM_CommitRequestLong()|source descriptor", commit_other},
    {"par_commit_thread", ATTACHED, DIES, "gex_AM_CommitRequestMedium()|another thread", par_commit_thread},
    {"address_after", ATTACHED, DIES, "gex_AM_SrcDescAddr()|committed or cancelled before", address_after},
    {"reply_kept_prepared", CHECKED, DIES, "handler 208|reply that it has prepared", reply_kept_prepared},
    {"request_between", CHECKED, DIES, "gex_AM_RequestShort()|has prepared an active message", request_between},
    {"poll_between", CHECKED, DIES, "gasnet_AMPoll()|has prepared an active message", poll_between},
    {"prepare_in_handler", ATTACHED, DIES, "gex_AM_PrepareReplyMedium()|replied already", prepare_in_handler},
    {"cancel_other", ATTACHED, DIES, "gex_AM_CancelReplyMedium()|source descriptor", cancel_other},
    {"domain_type", ATTACHED, DIES, "gex_AD_Create()|dt 0 |GEX_DT_I32", domain_type},
    {"domain_bits", ATTACHED, DIES, "gex_AD_Create()|GEX_DT_DBL has no operation GEX_OP_XOR|integers", domain_bits},
    {"domain_none", ATTACHED, DIES, "gex_AD_OpNB_U64()|0x0|gex_AD_Create", domain_none},
    {"domain_gone", ATTACHED, DIES, "gex_AD_QueryOps()|gex_AD_Destroy", domain_gone},
    {"domain_used_again", ATTACHED, DIES, "gex_AD_OpNB_U64()|gex_AD_Destroy has ended", domain_used_again},
    {"domain_reset", ATTACHED, DIES, "gex_AD_OpNB_U64()|0x0|gex_AD_Create", domain_reset},
    {"domain_twice", ATTACHED, DIES, "gex_AD_Destroy()|gex_AD_Destroy has ended", domain_twice},
    {"atomic_type", ATTACHED, DIES, "gex_AD_OpNB_U64()|another type, GEX_DT_I64", atomic_type},
    {"atomic_op", ATTACHED, DIES, "gex_AD_OpNB_U64()|GEX_OP_FADD is no operation", atomic_op},
    {"atomic_ops", ATTACHED, DIES, "gex_AD_OpNB_U64()|GEX_OP_ADD|GEX_OP_SUB|one operation", atomic_ops},
    {"atomic_null", ATTACHED, DIES, "gex_AD_OpNB_U64()|result_p is null", atomic_null},
    {"atomic_rank", ATTACHED, DIES, "gex_AD_OpNB_U64()|rank 1", atomic_rank},
    {"atomic_crooked", ATTACHED, DIES, "gex_AD_OpNB_U64()|offset 4|aligned", atomic_crooked},
    {"atomic_outside", ATTACHED, DIES, "gex_AD_OpNB_U64()|outside the segment", atomic_outside},
    {"coll_root", ATTACHED, DIES, "gex_Coll_BroadcastNB()|root " NO_RANK_WORD, coll_root},
    {"reduce_op", ATTACHED, DIES, "gex_Coll_ReduceToAllNB()|GEX_DT_U64 has no reduction GEX_OP_FADD|GEX_OP_ADD", reduce_op},
    {"reduce_size", ATTACHED, DIES, "gex_Coll_ReduceToAllNB()|dt_sz", reduce_size},
    {"reduce_function", ATTACHED, DIES, "gex_Coll_ReduceToAllNB()|user_op", reduce_function},
    {"lock_put", CHECKED, DIES, "gex_RMA_PutBlocking()|holds the handler-safe lock", lock_put},
    {"lock_request", CHECKED, DIES, "gex_AM_RequestShort()|holds the handler-safe lock", lock_request},
    {"lock_twice", CHECKED, DIES, "gex_HSL_Lock(): this thread holds", lock_twice},
    {"lock_polls", CHECKED, DIES, "gasnet_AMPoll()|gex_HSL_Unlock", lock_polls},
    {"unlock_open", CHECKED, DIES, "gex_HSL_Unlock()|is not locked", unlock_open},
    {"lock_wait", CHECKED, DIES, "gex_Event_Wait()|holds the handler-safe lock|gex_HSL_Unlock", lock_wait},
    {"handler_waits_inline", CHECKED, DIES, "gex_Event_Wait()|handler", handler_waits_inline},
    {"handler_registers", CHECKED, DIES, "gex_EP_RegisterHandlers()|handler", handler_registers},
    {"handler_creates", CHECKED, DIES, "gex_Segment_Create()|handler", handler_creates},
    {"handler_translates", CHECKED, DIES, "gex_TM_TranslateRankToJobrank()|handler|gex_*_Query*", handler_translates},
    {"handler_bound", CHECKED, DIES, "gex_EP_QueryBoundSegmentNB()|handler", handler_bound},
    {"handler_queries", CHECKED, PASSES, "", handler_queries},
    {"handler_waits", CHECKED, DIES, "gex_Event_Wait()|handler", handler_waits},
    {"put_from_null", CHECKED, DIES, "gex_RMA_PutBlocking()|src is null|8 bytes", put_from_null},
    {"get_to_null", CHECKED, DIES, "gex_RMA_GetNB()|dest is null|8 bytes", get_to_null},
    {"put_none_from_null", CHECKED, PASSES, "", put_none_from_null},
    {"medium_from_null", CHECKED, DIES, "gex_AM_RequestMedium()|source_addr is null|8 bytes", medium_from_null},
    {"putv_from_null", CHECKED, DIES, "gex_VIS_VectorPutBlocking()|a local address is null|8 bytes", putv_from_null},
    {"puti_without_list", CHECKED, DIES, "gex_VIS_IndexedPutNBI()|srclist is null|1 elements", puti_without_list},
    {"gets_without_counts", CHECKED, DIES, "gex_VIS_StridedGetNB()|count is null|1 elements", gets_without_counts},
    {"notice_from_null", CHECKED, DIES, "gex_VIS_SetPeerCompletionHandler()|source_addr is null|8 bytes", notice_from_null},
    {"strided_none_from_null", CHECKED, PASSES, "", strided_none_from_null},
    {"reduce_to_null", CHECKED, DIES, "gex_Coll_ReduceToOneNB()|dst is null|8 bytes", reduce_to_null},
    {"broadcast_from_null", CHECKED, DIES, "gex_Coll_BroadcastNB()|src is null|8 bytes", broadcast_from_null},
    {"put_overlaps", CHECKED, DIES, "gex_RMA_PutBlocking()|overlap|8 bytes", put_overlaps},
    {"put_to_self", CHECKED, DIES, "gex_RMA_PutBlocking()|GEX_FLAG_PEER_NEVER_SELF|rank 0", put_to_self},
    {"get_near", CHECKED, DIES, "gex_RMA_GetBlockingVal()|GEX_FLAG_PEER_NEVER_NBRHD|neighbourhood", get_near},
    {"atomic_of_other", CHECKED, DIES, "gex_AD_OpNB_U64()|GEX_FLAG_AD_MY_RANK|rank 1 of the job is not", atomic_of_other},
    {"atomic_of_stranger", CHECKED, DIES, "gex_AD_OpNB_U64()|rank 1 of the job|team", atomic_of_stranger},
    {"flags_right", CHECKED, PASSES, "", flags_right},
    {"reduce_nothing", CHECKED, DIES, "gex_Coll_ReduceToAllNB()|dt_cnt is 0", reduce_nothing},
    {"prepare_arguments", ATTACHED, DIES, "gex_AM_PrepareRequestMedium()|17|16", prepare_arguments},
    {"cancel_flags", CHECKED, DIES, "gex_AM_CancelRequestMedium()|0x5|Pass 0", cancel_flags},
    {"publish_flags", CHECKED, DIES, "gex_EP_PublishBoundSegment()|0x7|Pass 0", publish_flags},
    {"location_flags", CHECKED, DIES, "gex_TM_TranslateRankToEP()|0x3|Pass 0", location_flags},
    {"coll_roots_differ", CHECKED, DIES_TOGETHER, "gex_Coll_BroadcastNB()|with root 0|with root 1", coll_roots_differ},
    {"coll_sizes_differ", CHECKED, DIES_TOGETHER, "gex_Coll_BroadcastNB()|of 8 bytes|of 16 bytes", coll_sizes_differ},
    {"coll_calls_differ", CHECKED, DIES_TOGETHER, "a broadcast of 8 bytes|a barrier|same order", coll_calls_differ},
    {"coll_ops_differ", CHECKED, DIES_TOGETHER, "gex_Coll_ReduceToAllNB()|a reduce to all of 16 bytes|GEX_OP_ADD|GEX_OP_MAX", coll_ops_differ},
    {"coll_types_differ", CHECKED, DIES_TOGETHER, "gex_Coll_ReduceToAllNB()|elements of 8 bytes|GEX_DT_I64|GEX_DT_DBL", coll_types_differ},
    {"coll_agree", CHECKED, PASSES, "", coll_agree},
    {"handler_puts", CHECKED, DIES, "gex_RMA_PutBlocking()|handler", handler_puts},
};
#define CASES (sizeof cases / sizeof *cases)

/* Runs the case, or the end of one that must die. */
static void run(const struct testcase *c) {
    check_alive(c->name);
    if (c->outcome == DIES && ex_me != 0) {
        static volatile int never;
        GASNET_BLOCKUNTIL(never);
    }
    c->run();
    if (c->outcome == PASSES) return;
    if (c->outcome == DIES_TOGETHER) {
        /* What the other rank called may become known when the own call has returned. */
        static volatile int never;
        GASNET_BLOCKUNTIL(never);
    }
    printf("testbadex: FAIL (%s went on)\n", c->name);
    fflush(stdout);
    _exit(5);
}

int main(int argc, char **argv) {
    gex_AM_Entry_t table[] = {
#define ROW(index, name, kind) {index, (gex_AM_Fn_t)name, kind, 0, NULL, #name}
        ROW(H_NOTHING, nothing_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP),
        ROW(H_REQUEST, request_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST),
        ROW(H_REPLY_TWICE, reply_twice_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST),
        ROW(H_KEEP_TOKEN, keep_token_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST),
        ROW(H_REPLY_GROUP, reply_group_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST),
        ROW(H_PUTTING, putting_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST),
        ROW(H_WAITING, waiting_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST),
        ROW(H_CALLING, calling_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST),
        ROW(H_PREPARE, prepare_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST),
        ROW(H_PREPARE_LATE, prepare_late_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST),
        ROW(H_ANSWERED, nothing_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQREP),
    };
    const struct testcase *c = NULL;
    size_t i;
    if (argc == 2 && !strcmp(argv[1], "-list")) {
        for (i = 0; i < CASES; i++)
            printf("%s\t%s\t%s\t%s\n", cases[i].name, strncmp(cases[i].name, "par_", 4) ? "both" : "par",
                   cases[i].outcome == PASSES ? "passes" : "dies", cases[i].words);
        return 0;
    }
    for (i = 0; i < CASES && argc == 2; i++)
        if (!strcmp(argv[1], cases[i].name)) c = &cases[i];
    if (!c) {
        fprintf(stderr, "usage: testbadex -list | case\n");
        return 1;
    }
    if (c->when == CHECKED) setenv("GASNET_DEBUG_CHECKS", "1", 1);
    if (c->when == BEFORE_INIT) c->run();
    ex_init("testbadex", &argc, &argv);
    if (c->when == BEFORE_INIT) {
        printf("testbadex: FAIL (gex_Client_Init went on)\n");
        fflush(stdout);
        _exit(5);
    }
    CHECK_OK(gex_EP_RegisterHandlers(ex_ep, table, sizeof table / sizeof *table));
    if (c->when == BEFORE_ATTACH) run(c);
    gex_TM_Split(&alone, ex_tm, (int)ex_me, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    ex_attach(SIZE);
    ex_barrier(ex_tm);
    if (c->when != BEFORE_ATTACH) run(c);
    check_done();
}
