/* testcore1: Mediums of random length. The target answers with a checksum, which the sender
 * compares. */
/* faults: flip_am flip_arg drop_am */
/* args: 300 */
/* nodes: any */
/* threads: both */
#include "check.h"

#define USAGE "[iterations 1000]"
#define H_DATA 201
#define H_SUM 202
#define H_HELLO 203
#define H_HELLO_BACK 204

static volatile int32_t answered, sum_low, sum_high;
static volatile int greeted;

/* A checksum that depends on the position of every byte (FNV-1a). */
static uint64_t checksum(const void *p, size_t n) {
    const unsigned char *b = (const unsigned char *)p;
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    size_t i;
    for (i = 0; i < n; i++) h = (h ^ b[i]) * UINT64_C(0x100000001b3);
    return h;
}

static void data_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t round) {
    uint64_t sum = checksum(buf, n);
    CHECK((uintptr_t)buf % 8 == 0, "a Medium of %lu bytes is at %p", (unsigned long)n, buf);
    CHECK_OK(gasnet_AMReplyShort3(token, H_SUM, round, (gasnet_handlerarg_t)(sum & 0xffffffff),
                                  (gasnet_handlerarg_t)(sum >> 32)));
}

static void sum_h(gasnet_token_t token, gasnet_handlerarg_t round, gasnet_handlerarg_t low, gasnet_handlerarg_t high) {
    (void)token;
    sum_low = low;
    sum_high = high;
    gasnett_local_wmb();
    answered = round;
}

static void hello_h(gasnet_token_t token) { CHECK_OK(gasnet_AMReplyShort0(token, H_HELLO_BACK)); }

static void hello_back_h(gasnet_token_t token) {
    gasnet_node_t from = (gasnet_node_t)-1;
    CHECK_OK(gasnet_AMGetMsgSource(token, &from));
    CHECK(from == check_peer(), "a reply comes from rank %d instead of %d", (int)from, (int)check_peer());
    greeted = 1;
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {
        {H_DATA, data_h}, {H_SUM, sum_h}, {H_HELLO, hello_h}, {H_HELLO_BACK, hello_back_h}};
    gasnet_node_t peer;
    char *data;
    size_t n, max;
    uint64_t random;
    int i, iters;

    check_init("testcore1", &argc, &argv);
    iters = (int)check_arg(argc, argv, 1, 1000);
    if (argc > 2) check_usage(USAGE);
    check_attach(table, 4, 0);
    peer = check_peer();
    max = gasnet_AMMaxMedium();
    CHECK(max >= 512, "gasnet_AMMaxMedium is %lu", (unsigned long)max);
    data = (char *)malloc(max);
    random = check_mix(gasnet_mynode());

    check_alive("greeting");
    CHECK_OK(gasnet_AMRequestShort0(peer, H_HELLO));
    while (!greeted) gasnet_AMPoll();

    for (i = 1; i <= iters; i++) {
        uint64_t sum;
        if (i % 64 == 1) check_alive("checksums");
        n = i == 1 ? max : check_random(&random, 2) ? check_random(&random, max + 1) : check_random(&random, 600);
        if (n > max) n = max;
        check_fill(data, n, check_mix(random));
        sum = checksum(data, n);
        CHECK_OK(gasnet_AMRequestMedium1(peer, H_DATA, data, n, i));
        memset(data, 0xee, n); /* the source may be reused at once */
        GASNET_BLOCKUNTIL(answered == i);
        CHECK(sum_low == (gasnet_handlerarg_t)(sum & 0xffffffff) && sum_high == (gasnet_handlerarg_t)(sum >> 32),
              "message %d of %lu bytes: checksum %08x%08x instead of %08x%08x", i, (unsigned long)n, (unsigned)sum_high,
              (unsigned)sum_low, (unsigned)(sum >> 32), (unsigned)(sum & 0xffffffff));
    }
    check_done();
}
