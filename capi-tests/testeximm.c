/* testeximm: GEX_FLAG_IMMEDIATE. The rank 2i sends requests and transfers to the rank 2i + 1,
 * which sleeps meanwhile, until each kind is refused. A call that waits instead is never refused,
 * so the test fails or stalls. What was accepted arrives once, and nothing else. */
/* faults: flip_arg */
/* args: 2 */
/* nodes: any */
/* threads: both */
#include "checkex.h"

#define MOST 100000 /* calls of a kind */
#define LONGEST 4096
#define PUTS 4000
#define PUT_BYTES 4096

enum { H_SHORT = 130, H_MEDIUM, H_LONG, H_TOTAL };

/* The kinds of request. */
enum { SHORT, MEDIUM, LARGE, LONG, LONG_LARGE, NEGOTIATED, SHORTENED, PREPARED_LONG, COMMITTED, KINDS };
static const char *const names[] = {"Short", "Medium", "large Medium", "Long", "large Long", "prepared", "shortened",
                                    "prepared Long", "committed"};

/* Of this rank as target: messages of each kind, and the sum of their numbers. */
static volatile long arrived[KINDS], sums[KINDS];
static volatile int totals;
static unsigned char out[65536];

static void count(gex_AM_Arg_t kind, gex_AM_Arg_t number) {
    if (kind < 0 || kind >= KINDS) {
        CHECK(0, "a message of kind %d", (int)kind);
        return;
    }
    arrived[kind] = arrived[kind] + 1;
    sums[kind] = sums[kind] + number;
}
static void short_h(gex_Token_t token, gex_AM_Arg_t kind, gex_AM_Arg_t number) {
    (void)token;
    count(kind, number);
}
static void data_h(gex_Token_t token, void *buf, size_t n, gex_AM_Arg_t kind, gex_AM_Arg_t number) {
    (void)token;
    check_same(buf, n, 5, "the payload");
    count(kind, number);
}
static void total_h(gex_Token_t token, gex_AM_Arg_t kind, gex_AM_Arg_t messages, gex_AM_Arg_t sum) {
    (void)token;
    CHECK(arrived[kind] == messages && (gex_AM_Arg_t)sums[kind] == sum, "%ld of %d messages (%s) arrived, the sum is %ld, not %d",
          arrived[kind], (int)messages, names[kind], sums[kind], (int)sum);
    arrived[kind] = sums[kind] = 0;
    totals++;
}

/* An immediate request: what it returned. */
static int request(int kind, gex_Rank_t to, int number) {
    const size_t large = gex_AM_LUBRequestMedium() < 20000 ? gex_AM_LUBRequestMedium() : 20000;
    gex_AM_SrcDesc_t sd;
    size_t n;
    int rc;
    switch (kind) {
        case SHORT: return gex_AM_RequestShort2(ex_tm, to, H_SHORT, GEX_FLAG_IMMEDIATE, kind, number);
        case MEDIUM: {
            gex_Event_t event = (gex_Event_t)out;
            rc = gex_AM_RequestMedium2(ex_tm, to, H_MEDIUM, out, 700, &event, GEX_FLAG_IMMEDIATE, kind, number);
            CHECK(!rc || event == (gex_Event_t)out, "a refused request has stored an event");
            if (!rc) gex_Event_Wait(event);
            return rc;
        }
        case LARGE:
            return gex_AM_RequestMedium2(ex_tm, to, H_MEDIUM, out, large, GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE, kind, number);
        case LONG:
            return gex_AM_RequestLong2(ex_tm, to, H_LONG, out, 16, check_at(to, 0), GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE,
                                       kind, number);
        case LONG_LARGE:
            return gex_AM_RequestLong2(ex_tm, to, H_LONG, out, LONGEST, check_at(to, 0), GEX_EVENT_NOW,
                                       GEX_FLAG_IMMEDIATE, kind, number);
        case NEGOTIATED:
            sd = gex_AM_PrepareRequestMedium(ex_tm, to, NULL, 600, large, NULL, GEX_FLAG_IMMEDIATE, 2);
            if (sd == GEX_AM_SRCDESC_NO_OP) return 1;
            check_fill((unsigned char *)gex_AM_SrcDescAddr(sd), 600, 5);
            gex_AM_CommitRequestMedium2(sd, H_MEDIUM, 600, kind, number);
            return 0;
        case SHORTENED:
            /* It travels and takes two credits: of an odd number the last message lacks one. Each
             * wait lends one more, so the number is odd in one of two iterations. */
            n = 300;
            sd = gex_AM_PrepareRequestMedium(ex_tm, to, NULL, 0, large, NULL, GEX_FLAG_IMMEDIATE, 2);
            if (sd == GEX_AM_SRCDESC_NO_OP) return 1;
            check_fill((unsigned char *)gex_AM_SrcDescAddr(sd), n, 5);
            gex_AM_CommitRequestMedium2(sd, H_MEDIUM, n, kind, number);
            return 0;
        case PREPARED_LONG:
            n = 1900;
            sd = gex_AM_PrepareRequestLong(ex_tm, to, out, n, n, check_at(to, 0), GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE, 2);
            if (sd == GEX_AM_SRCDESC_NO_OP) return 1;
            gex_AM_CommitRequestLong2(sd, H_LONG, n, check_at(to, 0), kind, number);
            return 0;
        default:
            sd = gex_AM_PrepareRequestMedium(ex_tm, to, NULL, 600, 600, NULL, 0, 2);
            check_fill((unsigned char *)gex_AM_SrcDescAddr(sd), 600, 5);
            rc = gex_AM_CommitRequestMedium2_v2(sd, H_MEDIUM, 600, GEX_FLAG_IMMEDIATE, kind, number);
            if (rc) {
                /* It is still prepared. */
                CHECK(gex_AM_SrcDescSize(sd) == 600, "a refused message is not prepared any more");
                gex_AM_CancelRequestMedium(sd, 0);
            }
            return rc;
    }
}

/* A Long that is accepted waits until its source has been read. A contrary library may move data
 * only in calls of the target, so as long as the target sleeps. */
static int waits_for_target(int kind) {
    const char *habits = getenv("CONTRARY");
    return kind == LONG_LARGE && habits && strstr(habits, "in_calls");
}

/* The part of the segment that slot i of a transfer uses. */
static void *slot(gex_Rank_t of, int i) { return check_at(of, LONGEST + (size_t)i * PUT_BYTES); }

/* A word of the segment, which wakes its owner up. */
static volatile uint64_t *alarm_clock(gex_Rank_t of) { return (volatile uint64_t *)((char *)slot(of, PUTS) + 64); }

/* Sleeps until another rank says that it has seen enough. On a busy machine that takes long. Where
 * puts need this rank's calls it wakes up in the end: then a request that waits is not refused.
 * Elsewhere it must be woken. */
static void sleep_until_woken(gex_Rank_t waker) {
    void *here = NULL;
    int ms;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(ex_tm, waker, NULL, &here, NULL, 0));
    for (ms = 0; ms < (here ? 30000 : 1500) && !*alarm_clock(ex_me); ms++) usleep(1000);
    CHECK(!here || *alarm_clock(ex_me), "rank %d waits in an immediate call", (int)waker);
}
static void wake_up(gex_Rank_t sleeper) {
    gex_RMA_PutNBIVal(ex_tm, sleeper, (void *)alarm_clock(sleeper), 1, sizeof(uint64_t), GEX_FLAG_IMMEDIATE);
}

/* Fills the queue of a rank that sleeps. A large Long to memory that is not mapped may wait until
 * its source has left, as the payload of any call with GEX_EVENT_NOW, and so be accepted each
 * time. */
static void requests(int kind, gex_Rank_t to) {
    int i, sent = 0, other, unrefused, most = MOST;
    void *here = NULL;
    long sum = 0;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(ex_tm, to, NULL, &here, NULL, 0));
    if (kind == LONG_LARGE && !here) most = 1000;
    for (i = 0; i < most; i++) {
        int rc = request(kind, to, i);
        CHECK(rc == 0 || rc == 1, "%s returned %d", names[kind], rc);
        if (rc) break;
        sent++;
        sum += i;
    }
    unrefused = i == most;
    CHECK(!unrefused || most < MOST, "%s: none of %d messages was refused", names[kind], most);
    CHECK(sent != 0, "%s: the first message was refused", names[kind]);
    /* Small messages may still be accepted. Then nothing more is. */
    for (i = 0; i < MOST; i++) {
        if (gex_AM_RequestShort2(ex_tm, to, H_SHORT, GEX_FLAG_IMMEDIATE, kind, i)) break;
        sent++;
        sum += i;
    }
    CHECK(unrefused || i < MOST, "%s: none of %d Shorts after it was refused", names[kind], MOST);
    for (other = 0; other < KINDS; other++)
        CHECK(waits_for_target(other) || unrefused || request(other, to, 1), "%s was accepted after %s", names[other], names[kind]);
    wake_up(to);
    gex_AM_RequestShort3(ex_tm, to, H_TOTAL, 0, kind, sent, (gex_AM_Arg_t)sum);
    gex_NBI_Wait(GEX_EC_PUT, 0);
}

/* Initiates transfers to a rank that sleeps until one is refused. */
static void transfers(gex_Rank_t to, int mapped) {
    static unsigned char from[PUTS][PUT_BYTES], back[PUT_BYTES];
    gex_Event_t events[PUTS], leaf;
    int i, started = 0, refused = 0;
    for (i = 0; i < PUTS; i++) {
        memset(from[i], i % 255 + 1, PUT_BYTES);
        events[i] = GEX_EVENT_INVALID;
        if (i % 2) {
            gex_Event_t *lc_opt = i % 4 == 1 ? GEX_EVENT_DEFER : GEX_EVENT_GROUP;
            refused = gex_RMA_PutNBI(ex_tm, to, slot(to, i), from[i], PUT_BYTES, lc_opt, GEX_FLAG_IMMEDIATE);
        } else {
            events[i] = gex_RMA_PutNB(ex_tm, to, slot(to, i), from[i], PUT_BYTES, &leaf, GEX_FLAG_IMMEDIATE);
            refused = events[i] == GEX_EVENT_NO_OP;
        }
        if (refused) break;
        started++;
    }
    CHECK(!mapped || !refused, "a put in mapped memory was refused");
    if (refused) {
        gex_Event_t none = gex_RMA_GetNB(ex_tm, back, to, slot(to, 0), PUT_BYTES, GEX_FLAG_IMMEDIATE);
        events[i] = GEX_EVENT_INVALID;
        leaf = (gex_Event_t)out;
        CHECK(gex_RMA_PutNB(ex_tm, to, slot(to, i), out, PUT_BYTES, &leaf, GEX_FLAG_IMMEDIATE) == GEX_EVENT_NO_OP,
              "PutNB was accepted");
        CHECK(leaf == (gex_Event_t)out, "a refused put has stored an event");
        CHECK(none == GEX_EVENT_NO_OP, "a get was accepted");
        CHECK(gex_RMA_GetNBI(ex_tm, back, to, slot(to, 0), PUT_BYTES, GEX_FLAG_IMMEDIATE), "GetNBI was accepted");
        CHECK(gex_RMA_PutBlocking(ex_tm, to, slot(to, i), out, PUT_BYTES, GEX_FLAG_IMMEDIATE), "PutBlocking was accepted");
        CHECK(gex_RMA_GetBlocking(ex_tm, back, to, slot(to, 0), PUT_BYTES, GEX_FLAG_IMMEDIATE), "GetBlocking was accepted");
        CHECK(gex_RMA_PutBlockingVal(ex_tm, to, slot(to, i), 1, 8, GEX_FLAG_IMMEDIATE), "PutBlockingVal was accepted");
        CHECK(gex_RMA_PutNBIVal(ex_tm, to, slot(to, i), 1, 8, GEX_FLAG_IMMEDIATE), "PutNBIVal was accepted");
        CHECK(gex_RMA_PutNBVal(ex_tm, to, slot(to, i), 1, 8, GEX_FLAG_IMMEDIATE) == GEX_EVENT_NO_OP, "PutNBVal was accepted");
    }
    gex_Event_WaitAll(events, (size_t)(started + refused < PUTS ? started + refused : PUTS), 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    if (refused) CHECK(gex_RMA_PutBlocking(ex_tm, to, slot(to, PUTS), "one", 4, GEX_FLAG_IMMEDIATE) == 0, "refused later");
    for (i = 0; i < PUTS; i += i < started - 2 ? 97 : 1) {
        gex_RMA_GetBlocking(ex_tm, back, to, slot(to, i), PUT_BYTES, 0);
        CHECK(back[0] == (i < started ? i % 255 + 1 : 0) && back[PUT_BYTES - 1] == back[0], "put %d of %d: the byte is %d", i,
              started, back[0]);
        if (i > started + 4) break;
    }
}

int main(int argc, char **argv) {
    gex_AM_Entry_t table[] = {
        {H_SHORT, (gex_AM_Fn_t)short_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, "short"},
        {H_MEDIUM, (gex_AM_Fn_t)data_h, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 2, NULL, "medium"},
        {H_LONG, (gex_AM_Fn_t)data_h, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 2, NULL, "long"},
        {H_TOTAL, (gex_AM_Fn_t)total_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 3, NULL, "total"},
    };
    size_t iters, iter;
    int kind;
    ex_init("testeximm", &argc, &argv);
    iters = check_arg(argc, argv, 1, 3);
    CHECK_OK(gex_EP_RegisterHandlers(ex_ep, table, sizeof table / sizeof *table));
    ex_attach(LONGEST + (PUTS + 1) * (size_t)PUT_BYTES);
    check_fill(out, sizeof out, 5);
    for (iter = 0; iter < iters; iter++) {
        const gex_Rank_t to = ex_me + 1;
        const int sends = ex_me % 2 == 0 && to < ex_ranks, sleeps = ex_me % 2 == 1;
        for (kind = 0; kind < KINDS; kind++) {
            int polls;
            if (waits_for_target(kind)) continue;
            ex_barrier(ex_tm);
            /* Replies of the round before return what it used. Barriers make each rank call. */
            for (polls = 0; polls < 200; polls++) {
                gasnet_AMPoll();
                if (polls % 20 == 0) ex_barrier(ex_tm);
            }
            *alarm_clock(ex_me) = 0;
            ex_barrier(ex_tm);
            if (sleeps) {
                sleep_until_woken(ex_me - 1);
                GASNET_BLOCKUNTIL(totals == 1);
                totals = 0;
            }
            if (sends) requests(kind, to);
        }
        if (iter == 0) memset(slot(ex_me, 0), 0, PUTS * (size_t)PUT_BYTES);
        ex_barrier(ex_tm);
        if (sleeps) usleep(300000);
        if (sends && iter == 0) {
            void *here = NULL;
            gex_Event_Wait(gex_EP_QueryBoundSegmentNB(ex_tm, to, NULL, &here, NULL, 0));
            transfers(to, here != NULL);
        }
        ex_barrier(ex_tm);
    }
    check_done();
}
