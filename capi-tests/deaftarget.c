/* deaftarget: rank 0 floods rank 1 of another host, which stops polling again and again, for the
 * cases `hosts::flood` of the runner. Mediums, Longs and implicit puts arrive once, in whatever
 * order, with the right bytes. The memory of no rank grows by 64 MB or more.
 *
 * Arguments: messages, pauses of rank 1, milliseconds of a pause.
 */
#include "check.h"
#include <time.h>

#define H_MEDIUM 201
#define H_LONG 202
#define LONGEST 1984
#define SLOTS 64
#define SLOT 4096
#define MOST_GROWTH (64UL << 20)

static uint64_t messages, arrived, sum;
static int pauses, pause_ms;

/* The bytes of message `i` are the pattern of `i`; its length depends on `i` too. */
static size_t length_of(uint64_t i) { return 8 + (size_t)(check_mix(i) % (LONGEST / 8)) / 8 * 8; }

static void taken(uint64_t i, const void *bytes, size_t n) {
    CHECK(n == length_of(i), "message %" PRIu64 " has %lu bytes", i, (unsigned long)n);
    check_same(bytes, n, i, "a message");
    arrived++;
    sum += check_mix(i);
    if (arrived % 4096 == 0) check_alive("flood");
}

static void medium_h(gasnet_token_t token, void *bytes, size_t n, gasnet_handlerarg_t high, gasnet_handlerarg_t low) {
    (void)token;
    taken((uint64_t)(uint32_t)high << 32 | (uint32_t)low, bytes, n);
}

static void long_h(gasnet_token_t token, void *bytes, size_t n, gasnet_handlerarg_t high, gasnet_handlerarg_t low) {
    taken((uint64_t)(uint32_t)high << 32 | (uint32_t)low, bytes, n);
    /* The sender may use this place again. */
    CHECK_OK(gasnet_AMReplyShort0(token, H_MEDIUM + 2));
}

static volatile uint64_t places_back;

static void back_h(gasnet_token_t token) {
    (void)token;
    places_back++;
}

/* Bytes of memory that this process has used at most. */
static size_t peak(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024;
}

static void sender(void) {
    static char bytes[LONGEST];
    uint64_t i, longs = 0;
    for (i = 0; i < messages; i++) {
        size_t n = length_of(i);
        gasnet_handlerarg_t high = (gasnet_handlerarg_t)(i >> 32), low = (gasnet_handlerarg_t)i;
        check_fill(bytes, n, i);
        if (i % 4 == 0) {
            GASNET_BLOCKUNTIL(longs - places_back < SLOTS);
            CHECK_OK(gasnet_AMRequestLong2(1, H_LONG, bytes, n, check_at(1, longs++ % SLOTS * SLOT), high, low));
        } else {
            CHECK_OK(gasnet_AMRequestMedium2(1, H_MEDIUM, bytes, n, high, low));
        }
        if (i % 4 == 1) gasnet_put_nbi(1, check_at(1, (SLOTS + i % SLOTS) * SLOT), bytes, n);
        if (i % 4096 == 0) check_alive("flood");
    }
    gasnet_wait_syncnbi_puts();
    GASNET_BLOCKUNTIL(places_back == longs);
}

/* Each place of implicit puts holds the last one: the last of SLOTS messages went everywhere. */
static void check_puts(void) {
    uint64_t i;
    for (i = messages > SLOTS ? messages - SLOTS : 0; i < messages; i++)
        if (i % 4 == 1) check_same(check_at(1, (SLOTS + i % SLOTS) * SLOT), length_of(i), i, "an implicit put");
}

static void receiver(void) {
    struct timespec time;
    uint64_t i, due = 0;
    int n;
    time.tv_sec = pause_ms / 1000;
    time.tv_nsec = pause_ms % 1000 * 1000000L;
    for (n = 1; n <= pauses; n++) {
        nanosleep(&time, NULL);
        GASNET_BLOCKUNTIL(arrived >= messages / (uint64_t)(pauses + 1) * (uint64_t)n);
    }
    GASNET_BLOCKUNTIL(arrived == messages);
    for (i = 0; i < messages; i++) due += check_mix(i);
    CHECK(sum == due, "other messages arrived than were sent");
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {
        {H_MEDIUM, (void (*)())medium_h}, {H_LONG, (void (*)())long_h}, {H_MEDIUM + 2, (void (*)())back_h}};
    size_t before, grown;
    check_init("deaftarget", &argc, &argv);
    messages = check_arg(argc, argv, 1, 100000);
    pauses = (int)check_arg(argc, argv, 2, 5);
    pause_ms = (int)check_arg(argc, argv, 3, 500);
    if (gasnet_nodes() != 2 || argc > 4) check_usage("[messages] [pauses] [milliseconds]");
    check_attach(table, 3, 2 * SLOTS * SLOT);
    check_barrier();
    before = peak();
    if (gasnet_mynode() == 0)
        sender();
    else
        receiver();
    check_barrier();
    if (gasnet_mynode() == 1) check_puts();
    grown = peak() - before;
    CHECK(grown < MOST_GROWTH, "memory has grown by %lu bytes", (unsigned long)grown);
    printf("deaftarget: rank %d has grown by %lu KB\n", (int)gasnet_mynode(), (unsigned long)grown / 1024);
    check_done();
}
