/* ex: GASNet-EX between rank 0 and the last rank, and over all ranks. Puts and gets, round trips
 * of active messages after a warm-up, a remote atomic, barrier, reduction and broadcast. The
 * source compiles against any installation of GASNet-EX.
 *
 * usage: ex [options] [measurement ...]      options: see figures.h
 * The sizes are those that a measurement names; ex_barrier has the number of ranks. */
#include "figures.h"

#include <gasnetex.h>
#include <gasnet_coll.h>
#include <gasnet_ratomic.h>

#define H_PING 201
#define H_PONG 202
#define H_MEDIUM 203
#define H_MEDIUM_BACK 204

/* The longest Medium that all installations have, 64 KiB with its header. */
#define LONGEST_MEDIUM 65408
#define SEGMENT ((size_t)8 << 20)

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t all;
static gex_AD_t domain;
static gex_Rank_t peer;
static char *remote, *local;
static uint64_t word;
static volatile long back; /* replies received */

static void fail(const char *what) {
    fprintf(stderr, "ex: %s\n", what);
    gasnet_exit(1);
}

static inline void bench_barrier(void) { gex_Event_Wait(gex_Coll_BarrierNB(all, 0)); }

/* ---- active messages ---- */

static void ping_h(gex_Token_t t) { gex_AM_ReplyShort0(t, H_PONG, 0); }
static void pong_h(gex_Token_t t) {
    (void)t;
    back = back + 1;
}
static void medium_h(gex_Token_t t, void *b, size_t n) { gex_AM_ReplyMedium0(t, H_MEDIUM_BACK, b, n, GEX_EVENT_NOW, 0); }
static void medium_back_h(gex_Token_t t, void *b, size_t n) {
    (void)t, (void)b, (void)n;
    back = back + 1;
}

static void short_trip(size_t n, long times) {
    (void)n;
    back = 0;
    while (times--) {
        long want = back + 1;
        gex_AM_RequestShort0(all, peer, H_PING, 0);
        GASNET_BLOCKUNTIL(back == want);
    }
}
/* Sends Mediums of 256 bytes, 8 MiB of them, and of 64 KiB, 32 MiB: the first laps through receive
 * buffers, and through memory where payloads wait, touch their pages for the first time. The short
 * ones are sent one by one, since those of a burst may go another way. */
static void warm_up(void) {
    static const struct {
        size_t bytes;
        long times;
    } laps[] = {{256, 32768}, {LONGEST_MEDIUM, 512}};
    const gex_Rank_t next = (gex_Rank_t)((bench_me + 1) % bench_nodes);
    int lap;
    for (lap = 0; lap < 2; lap++) {
        long i;
        back = 0;
        for (i = 1; i <= laps[lap].times; i++) {
            gex_AM_RequestMedium0(all, next, H_MEDIUM, local, laps[lap].bytes, GEX_EVENT_NOW, 0);
            if (lap == 0) GASNET_BLOCKUNTIL(back == i);
        }
        GASNET_BLOCKUNTIL(back == laps[lap].times);
    }
    bench_barrier();
}

static void medium_trip(size_t n, long times) {
    back = 0;
    while (times--) {
        long want = back + 1;
        gex_AM_RequestMedium0(all, peer, H_MEDIUM, local, n, GEX_EVENT_NOW, 0);
        GASNET_BLOCKUNTIL(back == want);
    }
}

/* The request is negotiated, and its payload copied to where the library chose. */
static void negotiated_trip(size_t n, long times) {
    back = 0;
    while (times--) {
        long want = back + 1;
        gex_AM_SrcDesc_t message = gex_AM_PrepareRequestMedium(all, peer, NULL, n, n, NULL, 0, 0);
        memcpy(gex_AM_SrcDescAddr(message), local, n);
        gex_AM_CommitRequestMedium0(message, H_MEDIUM, n);
        GASNET_BLOCKUNTIL(back == want);
    }
}

/* ---- puts, gets, a remote atomic ---- */

static void put(size_t n, long times) { while (bench_again(&times)) gex_RMA_PutBlocking(all, peer, remote, local, n, 0); }
static void get(size_t n, long times) { while (bench_again(&times)) gex_RMA_GetBlocking(all, local, peer, remote, n, 0); }
static void put_nb(size_t n, long times) {
    while (bench_again(&times)) gex_Event_Wait(gex_RMA_PutNB(all, peer, remote, local, n, GEX_EVENT_DEFER, 0));
}
static void get_nb(size_t n, long times) { while (bench_again(&times)) gex_Event_Wait(gex_RMA_GetNB(all, local, peer, remote, n, 0)); }
static void put_nbi(size_t n, long times) {
    while (bench_again(&times)) {
        gex_RMA_PutNBI(all, peer, remote, local, n, GEX_EVENT_DEFER, 0);
        gex_NBI_Wait(GEX_EC_PUT, 0);
    }
}
static void get_nbi(size_t n, long times) {
    while (bench_again(&times)) {
        gex_RMA_GetNBI(all, local, peer, remote, n, 0);
        gex_NBI_Wait(GEX_EC_GET, 0);
    }
}
static void fadd(size_t n, long times) {
    (void)n;
    while (bench_again(&times)) gex_Event_Wait(gex_AD_OpNB_U64(domain, &word, peer, remote, GEX_OP_FADD, 1, 0, 0));
}

/* ---- collectives ---- */

static void barrier(size_t n, long times) {
    (void)n;
    while (times--) bench_barrier();
}
static void reduce(size_t n, long times) {
    while (times--)
        gex_Event_Wait(gex_Coll_ReduceToAllNB(all, local + n, local, GEX_DT_U64, 8, n / 8, GEX_OP_ADD, NULL, NULL, 0));
}
static void broadcast(size_t n, long times) {
    while (times--) gex_Event_Wait(gex_Coll_BroadcastNB(all, 0, local + n, local, n, 0));
}

/* Rank 0 sets every rank's number of repetitions. */
static long bench_agree(long times) {
    int64_t mine = times, agreed = 0;
    gex_Event_Wait(gex_Coll_BroadcastNB(all, 0, &agreed, &mine, sizeof agreed, 0));
    return (long)agreed;
}

#include "together.h"

/* A figure of rank 0 alone, or of all ranks together, for each of these sizes; 0 ends them. */
static void sizes(const char *name, const char *unit, int alone, void (*run)(size_t, long), const size_t *size) {
    if (!bench_wants(name, unit)) return;
    for (; *size; size++) bench_row(*size, (alone ? bench_alone(run, *size) : bench_together(run, *size)) / 1000);
}

int main(int argc, char **argv) {
    static const size_t transfers[] = {8, 4096, 65536, 1 << 20, 0}, payloads[] = {8, 1024, 16384, LONGEST_MEDIUM, 0};
    static const size_t number[] = {8, 0}, blocks[] = {8, 1 << 20, 0};
    gex_AM_Entry_t table[] = {
        {H_PING, (gex_AM_Fn_t)ping_h, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 0, NULL, "ping"},
        {H_PONG, (gex_AM_Fn_t)pong_h, GEX_FLAG_AM_REPLY | GEX_FLAG_AM_SHORT, 0, NULL, "pong"},
        {H_MEDIUM, (gex_AM_Fn_t)medium_h, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_MEDIUM, 0, NULL, "medium"},
        {H_MEDIUM_BACK, (gex_AM_Fn_t)medium_back_h, GEX_FLAG_AM_REPLY | GEX_FLAG_AM_MEDIUM, 0, NULL, "back"},
    };
    gex_Segment_t segment;
    void *addr;
    if (!bench_options(argc, argv)) return 2;
    if (gex_Client_Init(&client, &ep, &all, "BENCH", &argc, &argv, 0)) return 1;
    bench_me = (int)gex_TM_QueryRank(all);
    bench_nodes = (int)gex_TM_QuerySize(all);
    if (gex_EP_RegisterHandlers(ep, table, sizeof table / sizeof *table)) fail("no handlers");
    if (gex_Segment_Attach(&segment, all, SEGMENT)) fail("no segment");
    if (bench_pinned) bench_pin(bench_me);
    peer = (gex_Rank_t)bench_nodes - 1;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(all, peer, &addr, NULL, NULL, 0));
    remote = (char *)addr;
    local = (char *)gex_Segment_QueryAddr(segment) + SEGMENT / 2;
    memset(gex_Segment_QueryAddr(segment), 1, SEGMENT);
    gex_AD_Create(&domain, all, GEX_DT_U64, GEX_OP_FADD, 0);
    bench_barrier();

    sizes("ex_put", "Latency (us)", 1, put, transfers);
    sizes("ex_get", "Latency (us)", 1, get, transfers);
    sizes("ex_put_nb", "Latency (us)", 1, put_nb, transfers);
    sizes("ex_get_nb", "Latency (us)", 1, get_nb, transfers);
    sizes("ex_put_nbi", "Latency (us)", 1, put_nbi, transfers);
    sizes("ex_get_nbi", "Latency (us)", 1, get_nbi, transfers);
    sizes("ex_fadd", "Latency (us)", 1, fadd, number);
    if (bench_asked("ex_short_trip") || bench_asked("ex_medium_trip") || bench_asked("ex_negotiated_trip")) warm_up();
    if (bench_wants("ex_short_trip", "Round trip (us)")) bench_row(0, bench_alone(short_trip, 0) / 1000);
    sizes("ex_medium_trip", "Round trip (us)", 1, medium_trip, payloads);
    sizes("ex_negotiated_trip", "Round trip (us)", 1, negotiated_trip, payloads);
    if (bench_wants("ex_barrier", "Time (us)")) bench_row((size_t)bench_nodes, bench_together(barrier, 0) / 1000);
    sizes("ex_reduce", "Time (us)", 0, reduce, blocks);
    sizes("ex_broadcast", "Time (us)", 0, broadcast, blocks);
    bench_barrier();
    gasnet_exit(0);
    return 0;
}
