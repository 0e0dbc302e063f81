/* testword: puts and gets of 1, 2, 4 or 8 bytes, with a size unknown to the compiler, move the
 * word at once. A put stores once: a rank that waits for a word, and clears it when it
 * arrives, finds it cleared afterwards. A get of a changing word returns no mixture. On x86-64
 * a signal handler looks, or changes the word, after every instruction (not under valgrind,
 * which lacks this trap); elsewhere after the operation. Between ranks, the target looks at the
 * word that another puts to, and changes the one that it gets. */
/* faults: flip_put flip_get */
/* args: */
/* nodes: any */
/* threads: both */
#include "check.h"

static volatile uint64_t *watched;
static volatile uint64_t seen;
static volatile int arrivals;

static void take(int signal) {
    (void)signal;
    if (*watched == 0) return;
    seen = *watched;
    *watched = 0;
    arrivals++;
}

/* Another word each time, whose bytes are all equal. */
static void change(int signal) {
    (void)signal;
    *watched = ((*watched + 1) & 0xff) * UINT64_C(0x0101010101010101);
}

/* Switches the trap after every instruction on or off. Bytes below the stack pointer may be in
 * use by the caller. */
static inline void step(int on) {
#ifdef __x86_64__
    if (on)
        __asm__ __volatile__("lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::: "memory", "cc");
    else
        __asm__ __volatile__("lea -128(%%rsp), %%rsp\n pushfq\n andq $-257, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::: "memory", "cc");
#else
    if (!on) raise(SIGTRAP);
#endif
}

static void watch(volatile uint64_t *word, void (*handler)(int)) {
    *word = 0;
    watched = word;
    seen = 0;
    arrivals = 0;
    signal(SIGTRAP, handler);
}

static void came_once(size_t n, const char *what) {
    uint64_t want = 0;
    memset(&want, 7, n);
    CHECK(arrivals == 1 && seen == want && *watched == 0,
          "%s of %lu bytes: %d arrivals, the last 0x%" PRIx64 ", then 0x%" PRIx64, what, (unsigned long)n, arrivals, seen, *watched);
}

/* The first n bytes of `word` are those of the changing word at one moment. */
static void is_whole(uint64_t word, size_t n, const char *what) {
    const unsigned char *bytes = (const unsigned char *)&word;
    size_t i;
    for (i = 1; i < n && bytes[i] == bytes[0]; i++) {}
    CHECK(i == n, "%s of %lu bytes brought 0x%" PRIx64, what, (unsigned long)n, word);
}

/* One rank puts to the next, which looks at the word all the time, and then gets the word, which
 * that changes all the time. */
static void between_ranks(gasnet_node_t from, size_t n) {
    gasnet_node_t me = gasnet_mynode(), to = (from + 1) % gasnet_nodes();
    volatile uint64_t *word = check_seg[to].addr, *stage = word + 1;
    uint64_t here;
    int i;
    if (me == to) *word = *stage = 0;
    check_barrier();
    if (me == from) {
        for (i = 0; i < 300; i++) {
            memset(&here, i & 0xff, sizeof here);
            gasnet_put(to, (void *)word, &here, n);
        }
        gasnet_put_val(to, (void *)stage, 1, sizeof *stage);
        for (i = 0; i < 300; i++) {
            here = 0;
            gasnet_get(&here, to, (void *)word, n);
            is_whole(here, n, "a get from another rank");
        }
        gasnet_put_val(to, (void *)stage, 2, sizeof *stage);
    } else if (me == to) {
        while (*stage == 0) {
            is_whole(*word, n, "a put of another rank");
            gasnet_AMPoll();
        }
        watched = word;
        while (*stage == 1) {
            change(0);
            gasnet_AMPoll();
        }
    }
    check_barrier();
}

int main(int argc, char **argv) {
    static const volatile size_t sizes[] = {1, 2, 4, 8};
    static uint64_t here[2];
    uint64_t *there;
    gasnet_node_t self;
    unsigned i;

    check_init("testword", &argc, &argv);
    if (argc > 1) check_usage("(no arguments)");
    check_attach(NULL, 0, sizeof here);
    self = gasnet_mynode();
    there = (uint64_t *)check_seg[self].addr;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t n = sizes[i];
        memset(here, 7, sizeof here);
        watch(there, take);
        step(1);
        gasnet_put(self, there, here, n);
        step(0);
        came_once(n, "a put");

        watch(there, take);
        step(1);
        gasnet_wait_syncnb(gasnet_put_nb(self, there, here, n));
        step(0);
        came_once(n, "a put_nb");

        here[0] = 0;
        watch(there, change);
        step(1);
        gasnet_get(here, self, there, n);
        step(0);
        is_whole(here[0], n, "a get");

        here[0] = 0;
        watch(there, change);
        step(1);
        gasnet_get_nbi(here, self, there, n);
        gasnet_wait_syncnbi_gets();
        step(0);
        is_whole(here[0], n, "a get_nbi");
    }
    signal(SIGTRAP, SIG_DFL);
    for (i = 0; gasnet_nodes() > 1 && i < sizeof sizes / sizeof *sizes; i++) {
        between_ranks(0, sizes[i]);
        between_ranks(1, sizes[i]);
    }
    check_done();
}
