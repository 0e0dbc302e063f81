/* am: active messages. Round trips of Short, Medium and Long by size between rank 0 and the
 * last rank. Floods of requests whose handlers reply, the same with a window of unanswered
 * requests, and floods of requests without a reply. Round trips and floods between all pairs.
 * All are measured after a warm-up.
 *
 * usage: am [options] [measurement ...]      options: see bench.h */
#include "bench.h"

#define H_PING 201
#define H_PONG 202
#define H_MEDIUM 203
#define H_MEDIUM_BACK 204
#define H_LONG 205
#define H_LONG_BACK 206
#define H_COUNT 207
#define H_COUNT_MEDIUM 208
#define H_COUNT_LONG 209
#define H_ASK 210
#define H_TELL 211

static gasnet_node_t peer;
static char *local;
static volatile long back;    /* replies received */
static volatile long counted; /* requests without a reply received */
static volatile gasnet_handlerarg_t peer_count; /* the peer's count */

static void ping_h(gasnet_token_t t) { gasnet_AMReplyShort0(t, H_PONG); }
static void pong_h(gasnet_token_t t) {
    (void)t;
    back = back + 1;
}
static void medium_h(gasnet_token_t t, void *b, size_t n) { gasnet_AMReplyMedium0(t, H_MEDIUM_BACK, b, n); }
static void long_h(gasnet_token_t t, void *b, size_t n) {
    gasnet_node_t from;
    gasnet_AMGetMsgSource(t, &from);
    gasnet_AMReplyLong0(t, H_LONG_BACK, b, n, bench_seg[from].addr);
}
static void payload_back_h(gasnet_token_t t, void *b, size_t n) {
    (void)t, (void)b, (void)n;
    back = back + 1;
}
static void count_h(gasnet_token_t t) {
    (void)t;
    counted = counted + 1;
}
static void count_payload_h(gasnet_token_t t, void *b, size_t n) {
    (void)t, (void)b, (void)n;
    counted = counted + 1;
}

static void ask_h(gasnet_token_t t) { gasnet_AMReplyShort1(t, H_TELL, (gasnet_handlerarg_t)counted); }
static void tell_h(gasnet_token_t t, gasnet_handlerarg_t count) {
    (void)t;
    peer_count = count;
    back = back + 1;
}

/* ---- round trips ---- */

static void trip_short(size_t n, long times) {
    (void)n;
    back = 0;
    while (times--) {
        long want = back + 1;
        gasnet_AMRequestShort0(peer, H_PING);
        GASNET_BLOCKUNTIL(back == want);
    }
}
static void trip_medium(size_t n, long times) {
    back = 0;
    while (times--) {
        long want = back + 1;
        gasnet_AMRequestMedium0(peer, H_MEDIUM, local, n);
        GASNET_BLOCKUNTIL(back == want);
    }
}
static void trip_long(size_t n, long times) {
    back = 0;
    while (times--) {
        long want = back + 1;
        gasnet_AMRequestLong0(peer, H_LONG, local, n, bench_seg[peer].addr);
        GASNET_BLOCKUNTIL(back == want);
    }
}

/* A request of a rank to itself, whose handler replies. */
static void trip_own_short(size_t n, long times) {
    (void)n;
    back = 0;
    while (times--) {
        long want = back + 1;
        gasnet_AMRequestShort0((gasnet_node_t)bench_me, H_PING);
        GASNET_BLOCKUNTIL(back == want);
    }
}
static void trip_own_medium(size_t n, long times) {
    back = 0;
    while (times--) {
        long want = back + 1;
        gasnet_AMRequestMedium0((gasnet_node_t)bench_me, H_MEDIUM, local, n);
        GASNET_BLOCKUNTIL(back == want);
    }
}

/* One round trip to each of the other ranks. */
static void trip_pairs(size_t n, long times) {
    (void)n;
    while (times--) {
        int i;
        for (i = 1; i < bench_nodes; i++) {
            long want = back + 1;
            gasnet_AMRequestShort0((gasnet_node_t)((bench_me + i) % bench_nodes), H_PING);
            GASNET_BLOCKUNTIL(back == want);
        }
    }
}

/* ---- floods ---- */

static void flood_short(size_t n, long times) {
    long i;
    (void)n;
    back = 0;
    for (i = 0; i < times; i++) gasnet_AMRequestShort0(peer, H_PING);
    GASNET_BLOCKUNTIL(back == times);
}
static void flood_medium(size_t n, long times) {
    long i;
    back = 0;
    for (i = 0; i < times; i++) gasnet_AMRequestMedium0(peer, H_MEDIUM, local, n);
    GASNET_BLOCKUNTIL(back == times);
}
static void flood_long(size_t n, long times) {
    long i;
    back = 0;
    for (i = 0; i < times; i++) gasnet_AMRequestLong0(peer, H_LONG, local, n, bench_seg[peer].addr);
    GASNET_BLOCKUNTIL(back == times);
}

/* Keeps at most a window of requests unanswered. */
static void window_medium(size_t n, long times) {
    long i;
    back = 0;
    for (i = 0; i < times; i++) {
        GASNET_BLOCKUNTIL(i - back < BENCH_WINDOW);
        gasnet_AMRequestMedium0(peer, H_MEDIUM, local, n);
    }
    GASNET_BLOCKUNTIL(back == times);
}

/* Requests to each of the other ranks in turn. */
static void flood_pairs(size_t n, long times) {
    long t;
    back = 0;
    for (t = 0; t < times; t++) {
        int i;
        for (i = 1; i < bench_nodes; i++)
            gasnet_AMRequestMedium0((gasnet_node_t)((bench_me + i) % bench_nodes), H_MEDIUM, local, n);
    }
    GASNET_BLOCKUNTIL(back == times * (bench_nodes - 1));
}

/* One way: rank 0 asks the target for its count until all requests have arrived. */
static void all_counted(long times) {
    static long sent;
    sent += times;
    do {
        long want = back + 1;
        gasnet_AMRequestShort0(peer, H_ASK);
        GASNET_BLOCKUNTIL(back == want);
    } while (peer_count != (gasnet_handlerarg_t)sent);
}
static void way_short(size_t n, long times) {
    long i;
    (void)n;
    for (i = 0; i < times; i++) gasnet_AMRequestShort0(peer, H_COUNT);
    all_counted(times);
}
static void way_medium(size_t n, long times) {
    long i;
    for (i = 0; i < times; i++) gasnet_AMRequestMedium0(peer, H_COUNT_MEDIUM, local, n);
    all_counted(times);
}
static void way_long(size_t n, long times) {
    long i;
    for (i = 0; i < times; i++) gasnet_AMRequestLong0(peer, H_COUNT_LONG, local, n, bench_seg[peer].addr);
    all_counted(times);
}

/* Before the measurements, every rank receives Mediums of 256 bytes, 8 MiB of them, and of 64 KiB
 * or the longest, 32 MiB, and as many replies. The first laps through receive buffers, and through
 * memory where payloads wait, touch their pages for the first time. The short ones are sent one by
 * one, since those of a burst may go another way. */
static void warm_up(void) {
    static int warm;
    const size_t long_lap = gasnet_AMMaxMedium() < bench_max ? gasnet_AMMaxMedium() : bench_max;
    const size_t bytes[] = {256, long_lap}, all[] = {(size_t)8 << 20, (size_t)32 << 20};
    /* With small sizes alone, the first lap is enough. */
    const int laps = long_lap > bytes[0] ? 2 : 1;
    int lap;
    if (warm++ || bench_nodes == 1) return;
    for (lap = 0; lap < laps; lap++) {
        const long times = (long)(all[lap] / bytes[lap]) / (bench_nodes - 1);
        long t;
        int i;
        back = 0;
        for (t = 1; t <= times; t++) {
            for (i = 1; i < bench_nodes; i++)
                gasnet_AMRequestMedium0((gasnet_node_t)((bench_me + i) % bench_nodes), H_MEDIUM, local, bytes[lap]);
            if (lap == 0) GASNET_BLOCKUNTIL(back == t * (bench_nodes - 1));
        }
        GASNET_BLOCKUNTIL(back == times * (bench_nodes - 1));
    }
    bench_barrier();
}

static void sizes(const char *name, const char *unit, void (*run)(size_t, long), size_t max, int rate) {
    size_t n;
    if (!bench_wants(name, unit)) return;
    warm_up();
    for (n = bench_min; n <= bench_max && n / 2 < max; n *= 2) {
        /* The last one may be less than twice the one before: that of a Medium. */
        size_t bytes = n < max ? n : max;
        double ns = bench_alone(run, bytes);
        bench_row(bytes, rate ? 1e9 / ns : ns / 1000);
    }
}

static void once(const char *name, const char *unit, void (*run)(size_t, long), int rate) {
    double ns;
    if (!bench_wants(name, unit)) return;
    warm_up();
    ns = bench_alone(run, 0);
    bench_row(0, rate ? 1e9 / ns : ns / 1000);
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t handlers[] = {{H_PING, ping_h},
                                        {H_PONG, pong_h},
                                        {H_MEDIUM, medium_h},
                                        {H_MEDIUM_BACK, payload_back_h},
                                        {H_LONG, long_h},
                                        {H_LONG_BACK, payload_back_h},
                                        {H_COUNT, count_h},
                                        {H_COUNT_MEDIUM, count_payload_h},
                                        {H_COUNT_LONG, count_payload_h},
                                        {H_ASK, ask_h},
                                        {H_TELL, tell_h}};
    size_t medium, longest;
    bench_max = (size_t)64 << 10;
    if (!bench_options(argc, argv)) return 2;
    bench_init(&argc, &argv, handlers, (int)(sizeof handlers / sizeof *handlers), 2 * bench_max + 4096);
    peer = (gasnet_node_t)bench_nodes - 1;
    local = (char *)bench_seg[bench_me].addr + bench_max;
    medium = gasnet_AMMaxMedium();
    longest = gasnet_AMMaxLongRequest() < gasnet_AMMaxLongReply() ? gasnet_AMMaxLongRequest() : gasnet_AMMaxLongReply();

    once("short_trip", "Round trip (us)", trip_short, 0);
    sizes("medium_trip", "Round trip (us)", trip_medium, medium, 0);
    sizes("long_trip", "Round trip (us)", trip_long, longest, 0);
    once("own_short_trip", "Round trip (us)", trip_own_short, 0);
    sizes("own_medium_trip", "Round trip (us)", trip_own_medium, medium, 0);
    once("short_flood", "Requests/s", flood_short, 1);
    sizes("medium_flood", "Requests/s", flood_medium, medium, 1);
    sizes("long_flood", "Requests/s", flood_long, longest, 1);
    sizes("medium_window", "Requests/s", window_medium, medium, 1);
    once("short_one_way", "Requests/s", way_short, 1);
    sizes("medium_one_way", "Requests/s", way_medium, medium, 1);
    sizes("long_one_way", "Requests/s", way_long, longest, 1);
    if (bench_nodes > 1 && bench_wants("pairs_trip", "Round trip (us)")) {
        /* Ranks that share CPUs settle into a rhythm, which the start of the job or a flood
         * disturbs. */
        const double ms = bench_ms;
        bench_ms = 200;
        bench_together(trip_pairs, 0);
        bench_ms = ms;
        bench_row(0, bench_together(trip_pairs, 0) / 1000 / (double)(bench_nodes - 1));
    }
    if (bench_nodes > 1 && bench_wants("pairs_flood", "Requests/s")) {
        warm_up();
        bench_row(64, 1e9 * (double)(bench_nodes - 1) / bench_together(flood_pairs, 64));
    }
    bench_end();
    return 0;
}
