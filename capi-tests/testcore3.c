/* testcore3: empty Mediums and Longs, from and to addresses that must not be touched. */
/* faults: flip_arg drop_am */
/* args: */
/* nodes: any */
/* threads: both */
#include "check.h"

#define H_MEDIUM 201
#define H_LONG 202
#define H_BACK_MEDIUM 203
#define H_BACK_LONG 204
#define ROUNDS 10

static gasnett_atomic_t answers = gasnett_atomic_init(0);

static void *const addresses[] = {NULL, (void *)1, (void *)~(uintptr_t)0, (void *)~(uintptr_t)7};
#define ADDRESSES ((int)(sizeof addresses / sizeof *addresses))

static void empty(size_t n, gasnet_handlerarg_t which, gasnet_handlerarg_t inverse) {
    CHECK(n == 0, "a message of no bytes came with %lu", (unsigned long)n);
    CHECK(which == ~inverse && which >= 0 && which < ADDRESSES, "arguments %d and %d", which, inverse);
}

static void medium_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t which,
                     gasnet_handlerarg_t inverse) {
    (void)buf;
    empty(n, which, inverse);
    CHECK_OK(gasnet_AMReplyMedium2(token, H_BACK_MEDIUM, addresses[(unsigned)which % ADDRESSES], 0, which, inverse));
}

static void long_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t which, gasnet_handlerarg_t inverse) {
    gasnet_node_t from = 0;
    empty(n, which, inverse);
    CHECK(buf == check_at(gasnet_mynode(), 0), "a Long of no bytes came to %p", buf);
    CHECK_OK(gasnet_AMGetMsgSource(token, &from));
    CHECK_OK(gasnet_AMReplyLong2(token, H_BACK_LONG, addresses[(unsigned)which % ADDRESSES], 0, check_at(from, 0),
                                 which, inverse));
}

static void back_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t which, gasnet_handlerarg_t inverse) {
    (void)token;
    (void)buf;
    empty(n, which, inverse);
    gasnett_atomic_increment(&answers, 0);
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {
        {H_MEDIUM, medium_h}, {H_LONG, long_h}, {H_BACK_MEDIUM, back_h}, {H_BACK_LONG, back_h}};
    gasnet_node_t peer;
    void *to;
    int i, r, sent = 0;

    check_init("testcore3", &argc, &argv);
    check_attach(table, 4, GASNET_PAGESIZE);
    peer = check_peer();
    to = check_at(peer, 0);
    check_alive("empty messages");
    for (r = 0; r < ROUNDS; r++) {
        for (i = 0; i < ADDRESSES; i++) {
            void *src = addresses[i];
            CHECK_OK(gasnet_AMRequestMedium2(peer, H_MEDIUM, src, 0, i, ~i));
            CHECK_OK(gasnet_AMRequestLong2(peer, H_LONG, src, 0, to, i, ~i));
            CHECK_OK(gasnet_AMRequestLongAsync2(peer, H_LONG, src, 0, to, i, ~i));
            sent += 3;
            GASNET_BLOCKUNTIL((int)gasnett_atomic_read(&answers, 0) == sent);
        }
    }
    check_barrier();
    CHECK((int)gasnett_atomic_read(&answers, 0) == sent, "%d answers to %d requests",
          (int)gasnett_atomic_read(&answers, 0), sent);
    check_constant(check_at(gasnet_mynode(), 0), GASNET_PAGESIZE, 0, "the segment");
    check_done();
}
