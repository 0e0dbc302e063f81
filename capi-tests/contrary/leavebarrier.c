/* leavebarrier: for 4 ranks over a network that connects by the first message. Rank 0 leaves the
 * first barrier and then does not call the library for a while. Its message to rank 1, which slept
 * when it was sent, must not wait for the next call. */
#include "../check.h"

#include <time.h>

#define H_LEFT 200

static volatile int64_t left;

static void left_h(gasnet_token_t token, gasnet_handlerarg_t high, gasnet_handlerarg_t low) {
    (void)token;
    left = (int64_t)(uint32_t)high << 32 | (uint32_t)low;
}

/* Microseconds, the same clock in all ranks of a host. */
static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {{H_LEFT, (void (*)())left_h}};
    int64_t called, until;
    check_init("leavebarrier", &argc, &argv);
    check_attach(table, 1, GASNET_PAGESIZE);
    /* The others have notified when rank 0 does. */
    if (gasnet_mynode() == 0) usleep(200000);
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    if (gasnet_mynode() == 1) {
        for (until = now() + 100000; now() < until;) gasnet_AMPoll();
        usleep(400000);
    }
    CHECK_OK(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS));
    if (gasnet_mynode() == 1) {
        int64_t t = now();
        CHECK_OK(gasnet_AMRequestShort2(0, H_LEFT, (gasnet_handlerarg_t)(t >> 32), (gasnet_handlerarg_t)t));
    }
    if (gasnet_mynode() == 0) {
        usleep(1500000);
        called = now();
        GASNET_BLOCKUNTIL(left != 0);
        CHECK(left < called, "rank 1 left the barrier %ld us after rank 0 called again", (long)(left - called));
    }
    check_barrier();
    check_done();
}
