/* testexcoll: collectives of GASNet-EX on the team of all and on split and created teams: barrier,
 * broadcast, reductions to one and to all with all types and operations, functions of the client,
 * several in flight. */
/* faults: flip_coll skip_sync drop_am:portals leave_messages:cross-mapped */
/* args: 10 */
/* nodes: any */
/* threads: both */
#include "checkex.h"

#define MOST 3000
typedef unsigned char block[MOST * 8];
static block outside[16];
static block *buffer = outside, *result = outside + 8;

/* Where sources and results are: outside of segments; in them; or in those of every other rank. */
static void place(int where) {
    block *all = where == 1 || (where == 2 && ex_me % 2) ? (block *)check_at(ex_me, 0) : outside;
    buffer = all;
    result = all + 8;
}

/* A value of rank `i`, small, so that sums and products are exact in all types. */
static int value_of(gex_Rank_t i, size_t k) { return (int)((i * 3 + k) % 4) + 1; }

#define TYPES(X) \
    X(int32_t, GEX_DT_I32, 1) \
    X(uint32_t, GEX_DT_U32, 1) \
    X(int64_t, GEX_DT_I64, 1) \
    X(uint64_t, GEX_DT_U64, 1) \
    X(float, GEX_DT_FLT, 0) \
    X(double, GEX_DT_DBL, 0)

/* The value of all ranks by operation `op`. */
static int64_t combined(gex_OP_t op, gex_Rank_t n, size_t k) {
    int64_t all = value_of(0, k);
    gex_Rank_t i;
    for (i = 1; i < n; i++) {
        int64_t v = value_of(i, k);
        switch (op) {
            case GEX_OP_ADD: all += v; break;
            case GEX_OP_MULT: all *= v; break;
            case GEX_OP_MIN: all = all < v ? all : v; break;
            case GEX_OP_MAX: all = all > v ? all : v; break;
            case GEX_OP_AND: all &= v; break;
            case GEX_OP_OR: all |= v; break;
            default: all ^= v;
        }
    }
    return all;
}

static const gex_OP_t ops[] = {GEX_OP_ADD, GEX_OP_MULT, GEX_OP_MIN, GEX_OP_MAX, GEX_OP_AND, GEX_OP_OR, GEX_OP_XOR};

#define NUMBERS(type, dt, bits) \
    static void reduce_##type(gex_TM_t tm, size_t count, int to_all, int in_place) { \
        gex_Rank_t n = gex_TM_QuerySize(tm), me = gex_TM_QueryRank(tm), root = (gex_Rank_t)count % n; \
        type *src = (type *)buffer[0], *dst = in_place ? src : (type *)result[0]; \
        size_t o, k; \
        for (o = 0; o < (bits ? 7 : 4); o++) { \
            for (k = 0; k < count; k++) src[k] = (type)value_of(me, k); \
            if (to_all) \
                gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, dst, src, dt, sizeof(type), count, ops[o], NULL, NULL, 0)); \
            else \
                gex_Event_Wait(gex_Coll_ReduceToOneNB(tm, root, dst, src, dt, sizeof(type), count, ops[o], NULL, NULL, 0)); \
            for (k = 0; k < count && (to_all || me == root); k++) \
                CHECK(dst[k] == (type)combined(ops[o], n, k), "%s: operation %d, element %d of %d is %g, not %g", #type, \
                      (int)o, (int)k, (int)count, (double)dst[k], (double)combined(ops[o], n, k)); \
        } \
    }
TYPES(NUMBERS)

/* An element of the client: two fields that are combined differently. */
struct pair { int64_t sum; double most; char unused[24]; };

static void combine_pairs(const void *left, void *inout, size_t count, const void *cdata) {
    const struct pair *a = (const struct pair *)left;
    struct pair *b = (struct pair *)inout;
    size_t k;
    CHECK(cdata == &ops, "the argument of the function was lost");
    for (k = 0; k < count; k++) {
        b[k].sum += a[k].sum;
        b[k].most = a[k].most > b[k].most ? a[k].most : b[k].most;
    }
}

static void reduce_pairs(gex_TM_t tm, size_t count) {
    gex_Rank_t n = gex_TM_QuerySize(tm), me = gex_TM_QueryRank(tm);
    struct pair *src = (struct pair *)buffer[0], *dst = (struct pair *)result[0];
    size_t k;
    for (k = 0; k < count; k++) {
        src[k].sum = (int64_t)(me + k);
        src[k].most = (double)me;
    }
    gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, dst, src, GEX_DT_USER, sizeof *src, count, GEX_OP_USER, combine_pairs,
                                          (void *)&ops, 0));
    for (k = 0; k < count; k++)
        CHECK(dst[k].sum == (int64_t)(n * k + n * (n - 1) / 2) && dst[k].most == (double)(n - 1), "element %d of pairs", (int)k);
}

/* Several of all kinds at once, synced in another order. */
static void in_flight(gex_TM_t tm, size_t bytes, uint64_t seed) {
    gex_Rank_t n = gex_TM_QuerySize(tm), me = gex_TM_QueryRank(tm), i;
    gex_Event_t events[10];
    uint64_t sum = 0, one = 1;
    for (i = 0; i < 8; i++) {
        if (me == (i + seed) % n) check_fill(buffer[i], bytes, seed + i);
        events[i] = gex_Coll_BroadcastNB(tm, (gex_Rank_t)((i + seed) % n), i & 1 ? buffer[i] : result[i], buffer[i], bytes, 0);
    }
    events[8] = gex_Coll_ReduceToAllNB(tm, &sum, &one, GEX_DT_U64, 8, 1, GEX_OP_ADD, NULL, NULL, 0);
    events[9] = gex_Coll_BarrierNB(tm, 0);
    gex_Event_Wait(events[9]);
    events[9] = GEX_EVENT_INVALID;
    gex_Event_WaitAll(events, 10, 0);
    for (i = 0; i < 8; i++) check_same(i & 1 ? buffer[i] : result[i], bytes, seed + i, "a broadcast");
    CHECK(sum == n, "%d ranks were counted, not %d", (int)sum, (int)n);
}

/* No member leaves a barrier before all have entered; that of each round is tested, and two follow
 * that are synced in the other order. */
static void barriers(gex_TM_t tm, int rounds, int attached) {
    gex_Rank_t n = gex_TM_QuerySize(tm), i;
    uint64_t *own = attached ? (uint64_t *)check_at(ex_me, 16 * sizeof(block)) : NULL, now, round;
    for (round = 1; round <= (uint64_t)rounds; round++) {
        gex_Event_t event, more[2];
        if (attached) gex_RMA_PutBlocking(ex_tm, ex_me, own, &round, sizeof round, 0);
        event = gex_Coll_BarrierNB(tm, 0);
        while (gex_Event_Test(event) != GASNET_OK) gasnet_AMPoll();
        for (i = 0; attached && i < n; i++) {
            gex_Rank_t other = gex_TM_TranslateRankToJobrank(tm, i);
            gex_RMA_GetBlocking(ex_tm, &now, other, check_at(other, 16 * sizeof(block)), sizeof now, 0);
            CHECK(now == round, "rank %d has entered barrier %d, not %d", (int)other, (int)now, (int)round);
        }
        more[0] = gex_Coll_BarrierNB(tm, 0);
        more[1] = gex_Coll_BarrierNB(tm, 0);
        gex_Event_Wait(more[1]);
        gex_Event_Wait(more[0]);
        now = round;
        gex_Event_Wait(gex_Coll_BroadcastNB(tm, 0, &now, &now, sizeof now, 0));
        CHECK(now == round, "a broadcast after barriers brought %d", (int)now);
    }
}

/* Messages are served by collectives alone: a client that counts what was sent and received needs
 * no poll of its own. The rank that calls last does not wait in a collective. */
#define H_SERVED 201
#define BEFORE 40
static volatile int served;
static int sent;
static void served_h(gex_Token_t token) {
    (void)token;
    served = served + 1;
}

static void messages(gex_TM_t tm, int rounds) {
    gex_Rank_t n = gex_TM_QuerySize(tm), me = gex_TM_QueryRank(tm);
    while (rounds--) {
        int64_t open = 1;
        int late = me == (gex_Rank_t)rounds % n, tries;
        /* More than one poll serves. */
        for (tries = 0; tries < BEFORE; tries++) gex_AM_RequestShort0(tm, (me + 1) % n, H_SERVED, 0);
        sent += BEFORE;
        if (late) usleep(500);
        gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
        CHECK(served >= sent, "%d of %d messages sent before a barrier were served in it", served, sent);
        gex_AM_RequestShort0(tm, (me + 1) % n, H_SERVED, 0);
        sent++;
        for (tries = 0; open; tries++) {
            int64_t mine = sent - served;
            if (late) usleep(100);
            gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, &open, &mine, GEX_DT_I64, 8, 1, GEX_OP_ADD, NULL, NULL, 0));
            CHECK(tries < 20000, "%d of %d messages were served", served, sent);
        }
    }
}

static void all_on(gex_TM_t tm, size_t iters, int attached) {
    static const size_t counts[] = {1, 3, 100, MOST};
    size_t c, iter;
    for (iter = 0; iter < iters; iter++) {
        place(attached ? (int)iter % 3 : 0);
        for (c = 0; c < 4; c++) {
            size_t count = counts[c] * (iter + 1) > MOST ? MOST : counts[c];
#define CALL(type, dt, bits) reduce_##type(tm, count, (int)(c + iter / 3) & 1, (int)iter & 2);
            TYPES(CALL)
            reduce_pairs(tm, count / 10 + 1);
            in_flight(tm, count * 8, iter * 16 + c);
        }
        barriers(tm, 5, attached);
        messages(tm, 20);
        alarm(check_stall);
    }
}

static void teams(size_t iters) {
    gex_TM_t half = GEX_TM_INVALID, even = GEX_TM_INVALID, back = GEX_TM_INVALID;
    gex_EP_Location_t *list = (gex_EP_Location_t *)calloc(ex_ranks, sizeof *list);
    gex_Addr_t scratch = check_at(ex_me, 16 * sizeof(block) + 64);
    gex_Memvec_t memory = {NULL, 0};
    gex_Rank_t i, n = 0;
    size_t need = gex_TM_Split(&half, ex_tm, 0, 0, NULL, 0, GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED);
    CHECK(need > 0 && half == GEX_TM_INVALID, "a query for scratch memory returned %d", (int)need);
    /* Two halves, in reverse order. */
    gex_TM_Split(&half, ex_tm, ex_me % 2, -(int)ex_me, scratch, need, 0);
    n = ex_ranks / 2 + (ex_me % 2 == 0 ? ex_ranks % 2 : 0);
    CHECK(gex_TM_QuerySize(half) == n, "a half has %d of %d ranks", (int)gex_TM_QuerySize(half), (int)ex_ranks);
    for (i = 0; i < n; i++)
        CHECK(gex_TM_TranslateRankToJobrank(half, i) == (n - 1 - i) * 2 + ex_me % 2, "rank %d of a half", (int)i);
    CHECK(gex_TM_TranslateJobrankToRank(half, ex_me) == gex_TM_QueryRank(half), "this rank in a half");
    CHECK((ex_me ^ 1) >= ex_ranks || gex_TM_TranslateJobrankToRank(half, ex_me ^ 1) == GEX_RANK_INVALID, "a stranger");
    gex_TM_SetCData(half, list);
    CHECK(gex_TM_QueryCData(half) == list && gex_TM_QueryCData(ex_tm) == NULL, "pointers of teams");
    all_on(half, iters, 1);
    CHECK(gex_TM_Destroy(half, &memory, 0) != 0 && memory.gex_addr == scratch && memory.gex_len == need, "scratch memory");
    /* Ranks that join none; a team of listed ranks. */
    gex_TM_Split(ex_me % 3 == 1 ? NULL : &even, ex_tm, 7, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    CHECK((even == GEX_TM_INVALID) == (ex_me % 3 == 1), "a rank without a team");
    for (n = 0, i = ex_ranks; i--;)
        if (i % 3 != 1) list[n++].gex_rank = i;
    gex_TM_Create(&back, ex_me % 3 != 1, ex_tm, list, n, NULL, 0, GEX_FLAG_TM_NO_SCRATCH | GEX_FLAG_RANK_IS_JOBRANK);
    if (ex_me % 3 != 1)
        CHECK(gex_TM_QueryFlags(back) == (GEX_FLAG_TM_NO_SCRATCH | GEX_FLAG_RANK_IS_JOBRANK), "flags of a team");
    CHECK(gex_TM_Create(NULL, 3, ex_tm, NULL, 0, NULL, 0, GEX_FLAG_TM_SCRATCH_SIZE_MIN) == 0, "scratch for no member");
    gex_TM_Create(NULL, 3, ex_tm, NULL, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    if (ex_me % 3 != 1) {
        CHECK(gex_TM_QuerySize(even) == n && gex_TM_QuerySize(back) == n, "sizes");
        CHECK(gex_TM_QueryRank(even) + gex_TM_QueryRank(back) == n - 1, "ranks of this process");
        all_on(back, 1, 1);
        all_on(even, 1, 1);
        CHECK(gex_TM_Destroy(even, NULL, 0) == 0, "memory of a team without any");
        gex_Event_Wait(gex_Coll_BarrierNB(back, 0));
        gex_TM_Destroy(back, NULL, GEX_FLAG_GLOBALLY_QUIESCED);
    }
    free(list);
}

int main(int argc, char **argv) {
    gex_AM_Entry_t handler = {H_SERVED, (gex_AM_Fn_t)served_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "served"};
    size_t iters, i;
    ex_init("testexcoll", &argc, &argv);
    iters = check_arg(argc, argv, 1, 10);
    CHECK_OK(gex_EP_RegisterHandlers(ex_ep, &handler, 1));
    ex_barrier(ex_tm);
    all_on(ex_tm, 2, 0);
    ex_attach(17 * sizeof(block));
    all_on(ex_tm, iters, 1);
    for (i = 0; i < 3; i++) teams(2);
    ex_barrier(ex_tm);
    check_done();
}
