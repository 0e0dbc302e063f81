/* testword: puts and gets of 1, 2, 4 or 8 bytes, with a size unknown to the compiler, move the
 * word at once. A put stores once: a rank that waits for a word, and clears it when it
 * arrives, finds it cleared afterwards. A get of a changing word returns no mixture. On x86-64
 * a signal handler looks, or changes the word, after every instruction (not under valgrind,
 * which lacks this trap); elsewhere after the operation. */
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

int main(int argc, char **argv) {
    static const volatile size_t sizes[] = {1, 2, 4, 8};
    static uint64_t here;
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
        memset(&here, 7, sizeof here);
        watch(there, take);
        step(1);
        gasnet_put(self, there, &here, n);
        step(0);
        came_once(n, "a put");

        watch(there, take);
        step(1);
        gasnet_wait_syncnb(gasnet_put_nb(self, there, &here, n));
        step(0);
        came_once(n, "a put_nb");

        here = 0;
        watch(there, change);
        step(1);
        gasnet_get(&here, self, there, n);
        step(0);
        is_whole(here, n, "a get");

        here = 0;
        watch(there, change);
        step(1);
        gasnet_get_nbi(&here, self, there, n);
        gasnet_wait_syncnbi_gets();
        step(0);
        is_whole(here, n, "a get_nbi");
    }
    signal(SIGTRAP, SIG_DFL);
    check_done();
}
