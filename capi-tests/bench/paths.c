/* paths: performs each of the library's hottest operations a fixed number of times. Each runs
 * in a function path_*, so that a profiler can count its instructions (ci/instructions.sh).
 * Two ranks, forked by gasnet_init, take turns by words in memory of this program, and poll
 * only where a path says so. So the counts repeat exactly.
 *
 * usage: GASNET_PSHM_NODES=2 paths TIMES
 * With GASNET_SUPERNODE_MAXSIZE=1, puts and gets go through Portals. */
#include <gasnet.h>
#include <gasnetex.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define H_PING 201
#define H_PONG 202
#define H_SWALLOW 203
#define H_SWALLOW_DATA 204
#define H_PING_4 205
#define H_PONG_4 206
#define PATH(name) static __attribute__((noinline)) void path_##name(void)

/* The turn: rises by one at each change; even numbers are rank 0's. */
static volatile uint32_t *turn;
static uint32_t my_turn;
static gasnet_node_t me;
static char *remote, *local;
static uint64_t word = 7;
static volatile long came;
static gex_TM_t team;
static gex_AD_t domain;
static volatile size_t any_size[] = {1, 8, 64};
static volatile gex_OP_t any_op = GEX_OP_FADD;

static void ping_h(gasnet_token_t t) { gasnet_AMReplyShort0(t, H_PONG); }
static void swallow_h(gasnet_token_t t) {
    (void)t;
    came = came + 1;
}
static void pong_4_h(gasnet_token_t t, gasnet_handlerarg_t a, gasnet_handlerarg_t b, gasnet_handlerarg_t c,
                     gasnet_handlerarg_t d) {
    (void)t;
    came = came + (a == 1 && b == 2 && c == 3 && d == 4);
}
static void ping_4_h(gasnet_token_t t, gasnet_handlerarg_t a, gasnet_handlerarg_t b, gasnet_handlerarg_t c,
                     gasnet_handlerarg_t d) {
    gasnet_AMReplyShort4(t, H_PONG_4, a, b, c, d);
}
static void swallow_data_h(gasnet_token_t t, void *b, size_t n) {
    (void)t, (void)b, (void)n;
    came = came + 1;
}

PATH(put_8) { gasnet_put(1, remote, &word, 8); }
PATH(get_8) { gasnet_get(&word, 1, remote, 8); }
/* Of sizes that the compiler does not know. */
PATH(put_any_1) { gasnet_put(1, remote, local, any_size[0]); }
PATH(put_any_8) { gasnet_put(1, remote, local, any_size[1]); }
PATH(put_any_64) { gasnet_put(1, remote, local, any_size[2]); }
PATH(get_any_64) { gasnet_get(local, 1, remote, any_size[2]); }
PATH(put_4096) { gasnet_put(1, remote, local, 4096); }
PATH(put_nb_8) { gasnet_wait_syncnb(gasnet_put_nb(1, remote, &word, 8)); }
PATH(put_nbi_8) {
    gasnet_put_nbi(1, remote, &word, 8);
    gasnet_wait_syncnbi_puts();
}
PATH(poll_idle) { gasnet_AMPoll(); }

/* The parts of an active message: sending the request, serving it at the target (with its
 * reply), and receiving the reply. */
PATH(short_request) { gasnet_AMRequestShort0(1, H_PING); }
PATH(short_serve) { gasnet_AMPoll(); }
PATH(short_take) { gasnet_AMPoll(); }
PATH(short_4_request) { gasnet_AMRequestShort4(1, H_PING_4, 1, 2, 3, 4); }
PATH(short_4_serve) { gasnet_AMPoll(); }
PATH(short_4_take) { gasnet_AMPoll(); }
PATH(one_way_request) { gasnet_AMRequestShort0(1, H_SWALLOW); }
PATH(one_way_serve) { gasnet_AMPoll(); }
PATH(one_way_take) { gasnet_AMPoll(); }
PATH(medium_64_request) { gasnet_AMRequestMedium0(1, H_SWALLOW_DATA, local, 64); }
PATH(medium_64_serve) { gasnet_AMPoll(); }
PATH(medium_64_take) { gasnet_AMPoll(); }
PATH(long_64_request) { gasnet_AMRequestLong0(1, H_SWALLOW_DATA, local, 64, remote); }
PATH(long_64_serve) { gasnet_AMPoll(); }
PATH(long_64_take) { gasnet_AMPoll(); }

/* The same of GASNet-EX, and a fetching addition. */
PATH(ex_put_8) { gex_RMA_PutBlocking(team, 1, remote, &word, 8, 0); }
PATH(ex_put_nbi_8) {
    gex_RMA_PutNBI(team, 1, remote, &word, 8, GEX_EVENT_NOW, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
}
PATH(ex_fadd_8) { gex_Event_Wait(gex_AD_OpNB_U64(domain, &word, 1, remote, GEX_OP_FADD, 1, 0, 0)); }
PATH(ex_any_8) { gex_Event_Wait(gex_AD_OpNB_U64(domain, &word, 1, remote, any_op, 1, 0, 0)); }
PATH(ex_short_request) { gex_AM_RequestShort0(team, 1, H_PING, 0); }
PATH(ex_short_serve) { gasnet_AMPoll(); }
PATH(ex_short_take) { gasnet_AMPoll(); }
PATH(ex_short_4_request) { gex_AM_RequestShort4(team, 1, H_PING_4, 0, 1, 2, 3, 4); }
PATH(ex_short_4_serve) { gasnet_AMPoll(); }
PATH(ex_short_4_take) { gasnet_AMPoll(); }
PATH(ex_medium_64_request) { gex_AM_RequestMedium0(team, 1, H_SWALLOW_DATA, local, 64, GEX_EVENT_NOW, 0); }
PATH(ex_medium_64_serve) { gasnet_AMPoll(); }
PATH(ex_medium_64_take) { gasnet_AMPoll(); }

/* Performs one operation in this rank's turn, and passes the turn on. */
static void in_turn(void (*path)(void)) {
    while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) != my_turn) {}
    path();
    __atomic_store_n(turn, my_turn + 1, __ATOMIC_RELEASE);
    my_turn += 2;
}
static void nothing(void) {}

static void alone(void (*path)(void), long times) {
    long i;
    for (i = 0; i < times; i++) in_turn(me == 0 ? path : nothing);
}
static void message(void (*request)(void), void (*serve)(void), void (*take)(void), long times) {
    long i;
    for (i = 0; i < times; i++) {
        in_turn(me == 0 ? request : serve);
        in_turn(me == 0 ? take : nothing);
    }
}

/* A get, since the first one makes a table. Messages until the rings of both ranks' event queues
 * have gone round once (8192 events): a ring sets up its slots in its first lap. */
static void first_lap(void) {
    const long messages = 8192;
    if (me == 0) {
        long i;
        gasnet_get(&word, 1, remote, 8);
        for (i = 1; i <= messages; i++) {
            gasnet_AMRequestShort0(1, H_PING);
            GASNET_BLOCKUNTIL(came == i);
        }
    }
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    came = 0;
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t handlers[] = {
        {H_PING, ping_h},         {H_PONG, swallow_h},   {H_SWALLOW, swallow_h}, {H_SWALLOW_DATA, swallow_data_h},
        {H_PING_4, ping_4_h}, {H_PONG_4, pong_4_h}};
    static void (*const by_one[])(void) = {path_put_8,     path_get_8,     path_put_any_1, path_put_any_8,
                                           path_put_any_64, path_get_any_64, path_put_4096, path_put_nb_8,
                                           path_put_nbi_8, path_poll_idle, path_ex_put_8, path_ex_put_nbi_8};
    gasnet_seginfo_t seg[2];
    long times = argc == 2 ? atol(argv[1]) : 0;
    size_t i;
    turn = (volatile uint32_t *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (times < 1 || turn == MAP_FAILED || gasnet_init(&argc, &argv) || gasnet_nodes() != 2 ||
        gasnet_attach(handlers, 6, 4 * GASNET_PAGESIZE, 0)) {
        fprintf(stderr, "usage: GASNET_PSHM_NODES=2 paths TIMES\n");
        return 2;
    }
    me = gasnet_mynode();
    my_turn = me;
    gasnet_getSegmentInfo(seg, 2);
    remote = (char *)seg[1].addr;
    local = (char *)seg[me].addr + 2 * GASNET_PAGESIZE;
    memset(local, 1, GASNET_PAGESIZE);
    gasnet_QueryGexObjects(NULL, NULL, &team, NULL);
    gex_AD_Create(&domain, team, GEX_DT_U64, GEX_OP_FADD, 0);
    first_lap();
    for (i = 0; i < sizeof by_one / sizeof *by_one; i++) alone(by_one[i], times);
    message(path_short_request, path_short_serve, path_short_take, times);
    message(path_short_4_request, path_short_4_serve, path_short_4_take, times);
    message(path_one_way_request, path_one_way_serve, path_one_way_take, times);
    message(path_medium_64_request, path_medium_64_serve, path_medium_64_take, times);
    message(path_long_64_request, path_long_64_serve, path_long_64_take, times);
    message(path_ex_short_request, path_ex_short_serve, path_ex_short_take, times);
    message(path_ex_short_4_request, path_ex_short_4_serve, path_ex_short_4_take, times);
    message(path_ex_medium_64_request, path_ex_medium_64_serve, path_ex_medium_64_take, times);
    /* Elsewhere the target does it in its own calls. */
    if (!getenv("GASNET_SUPERNODE_MAXSIZE") || !strcmp(getenv("GASNET_SUPERNODE_MAXSIZE"), "0")) {
        alone(path_ex_fadd_8, times);
        alone(path_ex_any_8, times);
    }
    /* At rank 1 requests without a reply, at rank 0 the replies. */
    if (came != 4 * times) {
        fprintf(stderr, "paths: %ld messages were taken as they should be, of %ld\n", came, 4 * times);
        gasnet_exit(1);
    }
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_exit(0);
    return 0;
}
