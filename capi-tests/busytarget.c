/* busytarget: a target that computes, for the cases `hosts::progress` of the runner. Rank 0 puts
 * to rank 1 and gets from it, while rank 1 does not call the library. A thread of the library must
 * complete these operations there, and must run no handler.
 *
 * Arguments: seconds that rank 1 computes at most.
 */
#include "check.h"

#define H_ASK 201
#define WORDS 1000
#define BYTES (1 << 20)
/* Offsets in the segment of rank 1. */
#define AT_END 0
#define AT_WORD 64
#define AT_BYTES 4096

static volatile int asked;

static void ask_h(gasnet_token_t token) {
    (void)token;
    asked++;
}

static void initiator(void) {
    char *bytes = (char *)malloc(BYTES);
    uint64_t i, end = 1;
    for (i = 1; i <= WORDS; i++) gasnet_put(1, check_at(1, AT_WORD), &i, 8);
    check_fill(bytes, BYTES, 7);
    gasnet_put_bulk(1, check_at(1, AT_BYTES), bytes, BYTES);
    memset(bytes, 0, BYTES);
    gasnet_get_bulk(bytes, 1, check_at(1, AT_BYTES), BYTES);
    check_same(bytes, BYTES, 7, "a get after a put");
    CHECK_OK(gasnet_AMRequestShort0(1, H_ASK));
    gasnet_put(1, check_at(1, AT_END), &end, 8);
    free(bytes);
}

static void target(double seconds) {
    volatile uint64_t *end = (volatile uint64_t *)check_at(1, AT_END);
    double until = check_now() + seconds * 1e9;
    uint64_t sum = 0;
    while (*end == 0 && check_now() < until) sum = check_mix(sum);
    CHECK(*end == 1, "no put arrived in %g s", seconds);
    CHECK(asked == 0, "a handler ran while this rank computed");
    GASNET_BLOCKUNTIL(asked == 1);
    sum = *(volatile uint64_t *)check_at(1, AT_WORD);
    CHECK(sum == WORDS, "the word is %" PRIu64, sum);
    check_same(check_at(1, AT_BYTES), BYTES, 7, "what was put");
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {{H_ASK, (void (*)())ask_h}};
    uint64_t zero = 0;
    check_init("busytarget", &argc, &argv);
    if (gasnet_nodes() != 2 || argc > 2) check_usage("[seconds]");
    check_attach(table, 1, AT_BYTES + BYTES);
    check_barrier();
    /* A connection exists from here on. */
    if (gasnet_mynode() == 0) gasnet_put(1, check_at(1, AT_END), &zero, 8);
    check_barrier();
    if (gasnet_mynode() == 0)
        initiator();
    else
        target((double)check_arg(argc, argv, 1, 60));
    check_barrier();
    check_done();
}
