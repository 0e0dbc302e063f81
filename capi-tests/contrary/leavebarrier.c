/* leavebarrier: for 4 ranks over a network that connects by the first message. Rank 0 leaves the
 * first barrier and then does not call the library for a while. Its message to rank 1, which slept
 * when it was sent, must not wait for the next call.
 *
 *   first     a rank that has left gasnet_attach sends at once, and no handler runs in a rank that
 *             has not
 *   stranger  for 6 ranks: rank 0 sends a request to rank 3, which is none of those that its
 *             barriers send to or receive from. It waits for the next call: the program fails, and
 *             so shows what the network does
 */
#include "../check.h"

#include <time.h>

#define H_LEFT 200
#define H_FIRST 201
#define H_STRANGER 202

/* When rank 1 left the barrier, or rank 0 called again; when the message of a stranger came. */
static volatile int64_t left, arrived;
static volatile int attached;

/* Microseconds, the same clock in all ranks of a host. */
static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Of a rank that has left gasnet_attach. */
static void first_h(gasnet_token_t token) {
    (void)token;
    CHECK(attached, "a handler ran inside gasnet_attach");
}

static void left_h(gasnet_token_t token, gasnet_handlerarg_t high, gasnet_handlerarg_t low) {
    (void)token;
    left = (int64_t)(uint32_t)high << 32 | (uint32_t)low;
}

static void stranger_h(gasnet_token_t token) {
    (void)token;
    arrived = now();
}

static void say_time(gasnet_node_t to, int64_t t) {
    CHECK_OK(gasnet_AMRequestShort2(to, H_LEFT, (gasnet_handlerarg_t)(t >> 32), (gasnet_handlerarg_t)t));
}

/* Rank 3 sleeps when the request is sent. */
static void send_to_stranger(void) {
    if (gasnet_mynode() == 0) {
        usleep(200000);
        CHECK_OK(gasnet_AMRequestShort0(3, H_STRANGER));
        usleep(1500000);
        say_time(3, now());
    } else if (gasnet_mynode() == 3) {
        usleep(400000);
        GASNET_BLOCKUNTIL(left != 0 && arrived != 0);
        CHECK(arrived < left, "the request arrived %ld us after rank 0 called again", (long)(arrived - left));
    }
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {
        {H_LEFT, (void (*)())left_h}, {H_FIRST, (void (*)())first_h}, {H_STRANGER, (void (*)())stranger_h}};
    gasnet_node_t to;
    int64_t called, until;
    check_init("leavebarrier", &argc, &argv);
    check_attach(table, 3, GASNET_PAGESIZE);
    attached = 1;
    if (argc > 1 && !strcmp(argv[1], "stranger")) {
        send_to_stranger();
        check_barrier();
        check_done();
    }
    if (argc > 1) {
        for (to = 1; to < gasnet_nodes(); to++)
            CHECK_OK(gasnet_AMRequestShort0((gasnet_mynode() + to) % gasnet_nodes(), H_FIRST));
        check_barrier();
        check_done();
    }
    /* The others have notified when rank 0 does. */
    if (gasnet_mynode() == 0) usleep(200000);
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    if (gasnet_mynode() == 1) {
        for (until = now() + 100000; now() < until;) gasnet_AMPoll();
        usleep(400000);
    }
    CHECK_OK(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS));
    if (gasnet_mynode() == 1) say_time(0, now());
    if (gasnet_mynode() == 0) {
        usleep(1500000);
        called = now();
        GASNET_BLOCKUNTIL(left != 0);
        CHECK(left < called, "rank 1 left the barrier %ld us after rank 0 called again", (long)(left - called));
    }
    check_barrier();
    check_done();
}
