/* testeverything: GASNET_SEGMENT_EVERYTHING. Every rank puts to, gets from and sends Longs to each
 * kind of memory of its neighbour. The kinds are static data, heap, sbrk, mmap, stacks,
 * thread-local variables, data of a library opened by dlopen, and memory mapped again at one
 * address. Also memory next to which other memory changes, and while a forked child exists. Small
 * implicit operations come in great number. With an argument it runs that case alone:
 *   apart    each rank is in a user namespace of its own: no cross-memory attach between them
 *   denied   the neighbour makes its memory its own: a put must end the job
 *   asleep   the neighbour sleeps in the kernel while it is read and written
 *   CASE     unmapped_put, unmapped_get, read_only_put, unmapped_memset, unmapped_long or
 *            unmapped_vector: an operation on memory that does not exist, or may not be written;
 *            it must end the job */
/* faults: flip_put flip_get flip_am skip_memset skip_sync */
/* args: */
/* nodes: any */
/* threads: both */
/* segments: everything */
#include "check.h"

#include <gasnet_vis.h>

#include <dlfcn.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define BYTES 70000
#define H_LONG 200
#define H_REPLY 201
#define H_ADDRESSES 202
#define H_BACK 203

/* Kinds of memory. */
enum kind { STATIC, COMMON, HEAP, SBRK, MAPPED, STACK, LOCAL, LIBRARY, THREAD_STACK, THREAD_LOCAL, KINDS };
static const char *const kinds[KINDS] = {"static data",     "common data",      "heap",
                                         "sbrk",            "mmap",             "stack",
                                         "thread-local",    "data of a library", "stack of a thread",
                                         "thread-local of a thread"};

/* The memory of each kind of a rank, as its neighbours need it; where its reply Longs arrive. */
static struct addresses {
    char *kind[KINDS];
    size_t bytes[KINDS];
    char *answer;
} mine, theirs, senders;

static char static_data[BYTES] = {1}, answer[BYTES];
char common_data[BYTES];
static __thread char local_data[4096];
static gasnet_node_t to, from;
static volatile int longs, replies;
/* 0 until the other thread has filled its memory, 1 while it must stay, 2 when it may end. */
static volatile int thread_stage;

/* The seed of bytes in memory of this kind. Those of round 0 are in the owner's memory from the
 * start. The owner puts those of later rounds into its neighbour's memory. */
static uint64_t seed(gasnet_node_t owner, int kind, int round) {
    return ((uint64_t)owner << 32) + (uint64_t)kind * 100 + (uint64_t)round;
}

static void barrier(const char *place) {
    check_alive(place);
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    CHECK_OK(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS));
}

static void long_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t kind, gasnet_handlerarg_t back) {
    check_same(buf, n, seed(from, kind, 3), kinds[kind]);
    CHECK(buf == mine.kind[kind], "%s: a Long arrived at %p instead of %p", kinds[kind], buf, (void *)mine.kind[kind]);
    longs++;
    /* The answer goes to the same kind of memory of the sender. */
    if (back) {
        size_t most = gasnet_AMMaxLongReply();
        CHECK_OK(gasnet_AMReplyLong1(token, H_BACK, buf, n < most ? n : most, senders.answer, kind));
    }
    else CHECK_OK(gasnet_AMReplyShort0(token, H_REPLY));
}

static void reply_h(gasnet_token_t token) {
    (void)token;
    replies++;
}

static void back_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t kind) {
    (void)token;
    check_same(buf, n, seed(gasnet_mynode(), kind, 3), kinds[kind]);
    CHECK(buf == (void *)answer, "a reply Long arrived at %p instead of %p", buf, (void *)answer);
    replies++;
}

static void scattered(char *at, size_t n, int round, int kind, void *here) {
    gasnet_memvec_t there[3], local[1];
    there[0].addr = at;
    there[0].len = n / 4;
    there[1].addr = at + n / 2;
    there[1].len = n / 8;
    there[2].addr = at + n - n / 8;
    there[2].len = n / 8;
    local[0].addr = here;
    local[0].len = there[0].len + there[1].len + there[2].len;
    check_fill(here, local[0].len, seed(gasnet_mynode(), kind, round));
    gasnet_putv_bulk(to, 3, there, 1, local);
    memset(here, 0, local[0].len);
    gasnet_getv_bulk(1, local, to, 3, there);
    check_same(here, local[0].len, seed(gasnet_mynode(), kind, round), kinds[kind]);
}

/* All forms of puts, gets and memsets on one piece of memory of the neighbour. */
static void transfer(int kind, char *at, size_t n) {
    static char here[BYTES], back[BYTES];
    gasnet_handle_t handle;
    gasnet_register_value_t value;
    size_t i;
    check_alive(kinds[kind]);
    gasnet_get_bulk(here, to, at, n);
    check_same(here, n, seed(to, kind, 0), kinds[kind]);

    check_fill(here, n, seed(gasnet_mynode(), kind, 1));
    gasnet_put_bulk(to, at, here, n);
    handle = gasnet_get_nb_bulk(back, to, at, n);
    gasnet_wait_syncnb(handle);
    check_same(back, n, seed(gasnet_mynode(), kind, 1), kinds[kind]);

    /* Words, in both forms of non-blocking puts. */
    for (i = 0; i + 64 <= 512; i += 64) {
        gasnet_put_nbi(to, at + i, here + i + 8, 8);
        gasnet_put_nbi(to, at + i + 8, here + i + 4, 4);
        gasnet_put_nbi(to, at + i + 16, here + i + 2, 2);
        gasnet_put_nbi(to, at + i + 24, here + i + 1, 1);
        gasnet_put_nbi_bulk(to, at + i + 33, here + i, 17);
    }
    gasnet_wait_syncnbi_puts();
    gasnet_get_nbi_bulk(back, to, at, 512);
    gasnet_wait_syncnbi_gets();
    for (i = 0; i + 64 <= 512; i += 64) {
        CHECK(!memcmp(back + i, here + i + 8, 8) && !memcmp(back + i + 8, here + i + 4, 4) &&
                  !memcmp(back + i + 16, here + i + 2, 2) && back[i + 24] == here[i + 1] &&
                  !memcmp(back + i + 33, here + i, 17) && back[i + 32] == here[i + 32] && back[i + 50] == here[i + 50],
              "%s: words at offset %lu", kinds[kind], (unsigned long)i);
    }

    gasnet_put_val(to, at + 8, (gasnet_register_value_t)0x1234, 2);
    value = gasnet_get_val(to, at + 8, 2);
    CHECK(value == 0x1234, "%s: a value came back as 0x%lx", kinds[kind], (unsigned long)value);
    value = gasnet_wait_syncnb_valget(gasnet_get_nb_val(to, at + 8, 1));
    CHECK(value == 0x34 || value == 0x12, "%s: a byte came back as 0x%lx", kinds[kind], (unsigned long)value);

    gasnet_memset(to, at + 3, 0x5a, n - 7);
    memset(back, 0, n);
    gasnet_get(back, to, at, n);
    check_constant(back + 3, n - 7, 0x5a, kinds[kind]);
    gasnet_wait_syncnb(gasnet_memset_nb(to, at, 0x11, 100));
    gasnet_get(back, to, at, 101);
    check_constant(back, 100, 0x11, kinds[kind]);
    CHECK(back[100] == 0x5a, "%s: a memset went too far", kinds[kind]);

    scattered(at, n, 2, kind, here);

    /* Longs: one that fits into its message, one that does not, and one that is answered. */
    check_fill(here, n, seed(gasnet_mynode(), kind, 3));
    CHECK_OK(gasnet_AMRequestLong2(to, H_LONG, here, 16, at, kind, 0));
    CHECK_OK(gasnet_AMRequestLong2(to, H_LONG, here, 1000, at, kind, 0));
    GASNET_BLOCKUNTIL(replies >= 2);
    CHECK_OK(gasnet_AMRequestLong2(to, H_LONG, here, n, at, kind, 1));
    GASNET_BLOCKUNTIL(replies == 3);
    if (n > gasnet_AMMaxLongReply()) n = gasnet_AMMaxLongReply();
    check_same(answer, n, seed(gasnet_mynode(), kind, 3), "the answer");
    replies = 0;
}

/* A word of the neighbour that is too small for transfer(). */
static void word(char *at) {
    int here;
    gasnet_get(&here, to, at, sizeof here);
    check_same(&here, sizeof here, seed(to, LIBRARY, 0), kinds[LIBRARY]);
    check_fill(&here, sizeof here, seed(gasnet_mynode(), LIBRARY, 3));
    gasnet_put(to, at, &here, sizeof here);
}

/* Not inline: gcc for ARM would add constants to the address of a thread-local variable, beyond
 * what a relocation holds. */
static __attribute__((noinline)) void fill(int kind, char *at, size_t n) {
    mine.kind[kind] = at;
    mine.bytes[kind] = n;
    check_fill(at, n, seed(gasnet_mynode(), kind, 0));
}

#if CHECK_PAR
/* A thread that never calls the library: its memory is a target as any other. */
static void *thread(void *unused) {
    char stack[8192];
    (void)unused;
    fill(THREAD_STACK, stack, sizeof stack);
    fill(THREAD_LOCAL, local_data, sizeof local_data);
    gasnett_local_wmb();
    thread_stage = 1;
    while (thread_stage == 1) usleep(1000);
    return stack[0] ? NULL : unused;
}
#endif

/* Each rank sends its addresses to both neighbours in a Medium. */
static volatile int addresses_came;

static void addresses_h(gasnet_token_t token, void *buf, size_t n) {
    gasnet_node_t source = 0;
    CHECK_OK(gasnet_AMGetMsgSource(token, &source));
    CHECK(n == sizeof theirs && (source == to || source == from), "the addresses of rank %d", (int)source);
    if (source == to) memcpy(&theirs, buf, sizeof theirs);
    if (source == from) memcpy(&senders, buf, sizeof senders);
    addresses_came++;
}

static void exchange_addresses(void) {
    int before = addresses_came;
    barrier("addresses");
    mine.answer = answer;
    CHECK_OK(gasnet_AMRequestMedium0(from, H_ADDRESSES, &mine, sizeof mine));
    CHECK_OK(gasnet_AMRequestMedium0(to, H_ADDRESSES, &mine, sizeof mine));
    GASNET_BLOCKUNTIL(addresses_came == before + 2);
}

/* An address that has other memory than before is a target as well. */
static void map_again(void) {
    char *at = mine.kind[MAPPED];
    int round;
    for (round = 0; round < 4; round++) {
        char here[64];
        munmap(at, BYTES);
        CHECK(mmap(at, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at, "mmap");
        check_fill(at, 64, seed(gasnet_mynode(), MAPPED, 10 + round));
        barrier("mapped again");
        gasnet_get(here, to, theirs.kind[MAPPED], sizeof here);
        check_same(here, sizeof here, seed(to, MAPPED, 10 + round), "memory mapped again");
        check_fill(here, sizeof here, seed(gasnet_mynode(), MAPPED, 20 + round));
        gasnet_put(to, theirs.kind[MAPPED] + 4096, here, sizeof here);
        barrier("mapped again");
        check_same(at + 4096, 64, seed(from, MAPPED, 20 + round), "a put to memory mapped again");
        barrier("mapped again");
    }
}

/* Sources that cross a border of a read-only page, which is between two others; then a word of the
 * page next to it is written. */
static void read_only_page(int behind, size_t n) {
    static char back[BYTES];
    const size_t page = GASNET_PAGESIZE, border = behind ? 2 * page : page, first = border - n / 2;
    const size_t word = behind ? border + 8 : border - 16;
    const int round = behind ? 40 : 50;
    char *at = (char *)mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED && n <= sizeof back, "mmap");
    check_fill(at + first, n, seed(gasnet_mynode(), MAPPED, round));
    CHECK(mprotect(at + page, page, PROT_READ) == 0, "mprotect");
    mine.kind[MAPPED] = at;
    exchange_addresses();
    gasnet_get_bulk(back, to, theirs.kind[MAPPED] + first, n);
    check_same(back, n, seed(to, MAPPED, round), "a get across the border of a read-only page");
    gasnet_put_bulk(to, theirs.kind[STATIC], at + first, n);
    barrier("a read-only page");
    check_same(static_data, n, seed(from, MAPPED, round), "a put from across the border of a read-only page");
    check_fill(back, 8, seed(gasnet_mynode(), MAPPED, round + 1));
    gasnet_put_bulk(to, theirs.kind[MAPPED] + word, back, 8);
    barrier("a read-only page");
    check_same(at + word, 8, seed(from, MAPPED, round + 1), "a put next to a read-only page");
    munmap(at, 3 * page);
}

#if CHECK_PAR
#define AROUND 32

/* Pages that are taken away and mapped again, but for the one in the middle. */
static char *around;
static volatile int they_change;

static void *changer(void *unused) {
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    unsigned n;
    for (n = 0; they_change; n++) {
        char *at = around + n % AROUND * GASNET_PAGESIZE;
        if (n % AROUND == AROUND / 2) continue;
        CHECK(mmap(at, GASNET_PAGESIZE, PROT_NONE, how, -1, 0) == at, "mmap");
        CHECK(mmap(at, GASNET_PAGESIZE, PROT_READ | PROT_WRITE, how, -1, 0) == at, "mmap");
    }
    return unused;
}

/* A thread ends with an access region open, in which a put waits to leave. The next thread syncs
 * what is its own. */
static void *leaves_a_region(void *number) {
    gasnet_begin_nbi_accessregion();
    gasnet_put_nbi(to, theirs.kind[STATIC] + 64, number, sizeof(uint64_t));
    return NULL;
}

static void *syncs_its_own(void *number) {
    uint64_t back = 0;
    gasnet_put_nbi(to, theirs.kind[STATIC] + 128, number, sizeof back);
    gasnet_wait_syncnbi_puts();
    gasnet_get(&back, to, theirs.kind[STATIC] + 128, sizeof back);
    CHECK(back == *(uint64_t *)number, "a put that was synced is not there: %lu", (unsigned long)back);
    back = 0;
    gasnet_get_nbi(&back, to, theirs.kind[STATIC] + 128, sizeof back);
    gasnet_wait_syncnbi_gets();
    CHECK(back == *(uint64_t *)number, "a get that was synced is not here: %lu", (unsigned long)back);
    return NULL;
}

static void region_of_an_ended_thread(void) {
    uint64_t number = 7 + gasnet_mynode();
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, leaves_a_region, &number) == 0, "pthread_create");
    pthread_join(thread, NULL);
    number++;
    CHECK(pthread_create(&thread, NULL, syncs_its_own, &number) == 0, "pthread_create");
    pthread_join(thread, NULL);
    barrier("an ended thread");
}

/* A thread ends while a put waits to leave. It leaves when another thread of the rank polls. */
static void *leaves_a_put(void *number) {
    gasnet_put_nbi(to, theirs.kind[STATIC] + 192, number, sizeof(uint64_t));
    return NULL;
}

static void put_of_an_ended_thread(void) {
    uint64_t number = 70 + gasnet_mynode();
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, leaves_a_put, &number) == 0, "pthread_create");
    pthread_join(thread, NULL);
    check_alive("a put of an ended thread");
    GASNET_BLOCKUNTIL(*(volatile uint64_t *)(static_data + 192) == 70 + (uint64_t)from);
    barrier("a put of an ended thread");
}

/* What a thread does to memory next to that of an operation is no error. */
static void neighbours_change(void) {
    gasnett_tick_t begun = gasnett_ticks_now();
    pthread_t other;
    uint64_t word = 0, back;
    around = (char *)mmap(NULL, AROUND * GASNET_PAGESIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(around != MAP_FAILED, "mmap");
    mine.kind[MAPPED] = around + AROUND / 2 * GASNET_PAGESIZE;
    exchange_addresses();
    they_change = 1;
    CHECK(pthread_create(&other, NULL, changer, NULL) == 0, "pthread_create");
    do {
        word++;
        gasnet_put(to, theirs.kind[MAPPED] + 64, &word, sizeof word);
        gasnet_get(&back, to, theirs.kind[MAPPED] + 64, sizeof back);
        CHECK(back == word, "a word between pages that change");
    } while (gasnett_ticks_to_ns(gasnett_ticks_now() - begun) < 300000000);
    barrier("pages change");
    they_change = 0;
    pthread_join(other, NULL);
}
#endif

/* A forked child keeps what it had; the rank gets the put. */
static void fork_child(void) {
    char here[64];
    int ends[2], status = -1;
    const uint64_t before = seed(gasnet_mynode(), STATIC, 30);
    pid_t child;
    check_fill(static_data, 64, before);
    /* Not by pipe: the C library of today makes a call for it that an older kernel lacks. */
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    barrier("fork");
    child = fork();
    if (child == 0) {
        char go, expected[64];
        close(ends[1]);
        if (read(ends[0], &go, 1) != 1) _exit(2);
        check_fill(expected, 64, before);
        _exit(memcmp(static_data, expected, 64) ? 1 : 0);
    }
    close(ends[0]);
    barrier("fork");
    check_fill(here, sizeof here, seed(gasnet_mynode(), STATIC, 31));
    gasnet_put(to, theirs.kind[STATIC], here, sizeof here);
    barrier("fork");
    check_same(static_data, 64, seed(from, STATIC, 31), "a put while a child exists");
    CHECK(write(ends[1], "x", 1) == 1, "write");
    close(ends[1]);
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the memory of the child has changed: %d", status);
}

/* One neighbour stores words into mine; I read one of the other that changes. No word is ever a
 * mixture of two. */
static void whole_words(void) {
    static volatile uint64_t stored[4], changing;
    static const size_t sizes[4] = {1, 2, 4, 8};
    uint64_t value = 0, got;
    int i, k;
    mine.kind[STATIC] = (char *)stored;
    mine.kind[COMMON] = (char *)&changing;
    exchange_addresses();
    for (i = 0; i < 2000; i++) {
        for (k = 0; k < 4; k++) {
            value = (uint64_t)(i & 0x7f) * UINT64_C(0x0101010101010101);
            gasnet_put_nbi(to, theirs.kind[STATIC] + 8 * k, &value, sizes[k]);
            changing = value;
            got = stored[3];
            CHECK(got == (got & 0xff) * UINT64_C(0x0101010101010101), "a part of a word was stored: 0x%" PRIx64, got);
            got = stored[2];
            CHECK(got == (got & 0xff) * UINT64_C(0x01010101), "a part of 4 bytes was stored: 0x%" PRIx64, got);
            got = stored[1];
            CHECK(got == (got & 0xff) * UINT64_C(0x0101), "a part of 2 bytes was stored: 0x%" PRIx64, got);
            gasnet_get(&got, to, theirs.kind[COMMON], 8);
            CHECK(got == (got & 0xff) * UINT64_C(0x0101010101010101), "a part of a word was read: 0x%" PRIx64, got);
        }
        gasnet_wait_syncnbi_puts();
    }
    barrier("words");
    for (k = 0; k < 4; k++)
        CHECK(!memcmp((const void *)&stored[k], &value, sizes[k]), "the last word of %lu bytes has not arrived", (unsigned long)sizes[k]);
}

/* Many small implicit operations, which may leave together: their sources are used again at once,
 * kinds and ranks change in between, and each way to sync completes them. */
static void trains(void) {
    enum { WORDS = 700, STEP = 24 };
    static char expected[WORDS * STEP], back[WORDS * STEP];
    static uint64_t gotten[WORDS];
    char *at = theirs.kind[HEAP];
    uint64_t value;
    int i, round;
    for (round = 0; round < 6; round++) {
        gasnet_handle_t handle = GASNET_INVALID_HANDLE;
        char piece[WORDS];
        barrier("trains");
        check_fill(expected, sizeof expected, seed(to, HEAP, 40 + round));
        gasnet_put_bulk(to, at, expected, sizeof expected);
        /* One that stays outside of the region. */
        value = 7;
        gasnet_put_nbi(to, at, &value, 8);
        memcpy(expected, &value, 8);
        if (round == 1) gasnet_begin_nbi_accessregion();
        for (i = 1; i < WORDS; i++) {
            size_t n = round == 2 ? (size_t)(i % 16 + 1) : 8;
            value = seed(gasnet_mynode(), i, round) * UINT64_C(0x9e3779b97f4a7c15);
            memset(piece, i, sizeof piece);
            if (round == 2) gasnet_put_nbi_bulk(to, at + STEP * i + 3, memcpy(back + STEP * i, piece, n), n);
            else if (i % 7 == 3) gasnet_put_nbi_val(to, at + STEP * i, (gasnet_register_value_t)value, 8);
            else gasnet_put_nbi(to, at + STEP * i, &value, 8);
            if (round == 2) memcpy(expected + STEP * i + 3, piece, n);
            else memcpy(expected + STEP * i, &value, 8);
            value = 0;
            if (round == 3 && i % 50 == 0) gasnet_get_nbi(&gotten[i], to, at + 8, 8);
            if (round == 4 && i % 90 == 0) gasnet_put_nbi(gasnet_mynode(), gotten, &value, 8);
            if (round == 4 && i % 100 == 0) CHECK_OK(gasnet_AMPoll());
        }
        switch (round) {
        case 1:
            handle = gasnet_end_nbi_accessregion();
            gasnet_wait_syncnb(handle);
            break;
        case 2:
            while (gasnet_try_syncnbi_puts() == GASNET_ERR_NOT_READY) {}
            break;
        default: gasnet_wait_syncnbi_all();
        }
        gasnet_wait_syncnbi_puts();
        for (i = 50; round == 3 && i < WORDS; i += 50)
            CHECK(!memcmp(&gotten[i], expected + 8, 8), "a get among puts returned 0x%" PRIx64, gotten[i]);
        gasnet_get_bulk(back, to, at, sizeof back);
        CHECK(!memcmp(back, expected, sizeof back), "a train of puts did not arrive, round %d", round);
        memset(back, 0, sizeof back);
        for (i = 0; i < WORDS; i++) {
            if (round & 1) gasnet_get_nbi_bulk(back + STEP * i, to, at + STEP * i, STEP);
            else gasnet_get_nbi(&gotten[i], to, at + STEP * i, 8);
        }
        gasnet_wait_syncnbi_gets();
        for (i = 0; i < WORDS; i++)
            CHECK(!memcmp(round & 1 ? (void *)(back + STEP * i) : (void *)&gotten[i], expected + STEP * i, round & 1 ? STEP : 8),
                  "a train of gets did not arrive, round %d, word %d", round, i);
    }
    barrier("trains");
}

/* Odd ranks sleep in the kernel, outside the library, until a byte arrives in a word of theirs. */
static void asleep(void) {
    static volatile uint64_t wake;
    mine.kind[STATIC] = (char *)&wake;
    exchange_addresses();
    if (gasnet_mynode() % 2) {
        while (!wake) usleep(20000);
    } else if (to != gasnet_mynode()) {
        uint64_t one = 1, there = 0;
        int i;
        for (i = 0; i < 100; i++) {
            gasnet_get(&there, to, theirs.kind[STATIC], 8);
            CHECK(there == 0, "it woke early");
        }
        gasnet_memset(to, theirs.kind[STATIC], 0, 8);
        gasnet_put(to, theirs.kind[STATIC], &one, 8);
        /* The put is complete, so a get reads it, though the target calls nothing. */
        gasnet_get(&there, to, theirs.kind[STATIC], 8);
        CHECK(there == 1, "the put has not arrived");
    }
    barrier("asleep");
}

/* An operation on memory that the target does not have. */
static void missing(const char *what) {
    char here[4096];
    char *page = (char *)mmap(NULL, 2 * GASNET_PAGESIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(here, 1, sizeof here);
    memset(page, 2, 2 * GASNET_PAGESIZE);
    if (!strncmp(what, "read_only", 9)) mprotect(page, 2 * GASNET_PAGESIZE, PROT_READ);
    else munmap(page, 2 * GASNET_PAGESIZE);
    mine.kind[MAPPED] = page;
    exchange_addresses();
    if (gasnet_mynode() == 0) {
        char *at = theirs.kind[MAPPED];
        gasnet_memvec_t there[2], local;
        there[0].addr = at;
        there[1].addr = at + 16;
        there[0].len = there[1].len = 8;
        local.addr = here;
        local.len = 16;
        printf("testeverything: rank 0 names %p of rank %d\n", (void *)at, (int)to);
        fflush(stdout);
        if (!strcmp(what, "unmapped_put") || !strcmp(what, "read_only_put")) gasnet_put(to, at, here, 8);
        else if (!strcmp(what, "unmapped_get")) gasnet_get(here, to, at, sizeof here);
        else if (!strcmp(what, "unmapped_memset")) gasnet_memset(to, at, 1, 5000);
        else if (!strcmp(what, "unmapped_long")) CHECK_OK(gasnet_AMRequestLong2(to, H_LONG, here, 64, at, MAPPED, 0));
        else if (!strcmp(what, "unmapped_vector")) gasnet_putv_bulk(to, 2, there, 1, &local);
        else check_usage("[apart | denied | asleep | CASE]");
    }
    barrier("missing");
    check_error("%s went through", what);
}

/* Without the right to access the memory of any process, which root has. */
static void give_up_access(void) {
    struct __user_cap_header_struct head;
    struct __user_cap_data_struct rights[2];
    memset(&head, 0, sizeof head);
    memset(rights, 0, sizeof rights);
    head.version = _LINUX_CAPABILITY_VERSION_3;
    if (syscall(SYS_capget, &head, rights) == 0) {
        rights[0].effective &= ~(1u << CAP_SYS_PTRACE);
        if (syscall(SYS_capset, &head, rights) == 0) return;
    }
    fprintf(stderr, "testeverything: no rights: %s\n", strerror(errno));
    exit(77);
}

/* A put to a rank that denies others its memory since the job runs. */
static void denied(void) {
    uint64_t one = 1;
    mine.kind[STATIC] = static_data;
    exchange_addresses();
    if (gasnet_mynode() == 1) CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "prctl");
    barrier("denied");
    if (gasnet_mynode() == 0) gasnet_put(to, theirs.kind[STATIC], &one, sizeof one);
    barrier("denied");
    check_error("the put went through");
}

/* Into a user namespace of its own. */
static void leave_namespace(void) {
    if (!unshare(CLONE_NEWUSER)) return;
    fprintf(stderr, "testeverything: this machine allows no user namespace: %s\n", strerror(errno));
    exit(77);
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t handlers[] = {{H_LONG, long_h}, {H_REPLY, reply_h}, {H_ADDRESSES, addresses_h}, {H_BACK, back_h}};
    char stack[5000];
    char *brk, *heap;
    void *library;
    int kind;
#if CHECK_PAR
    pthread_t other;
#endif

    if (argc > 1 && !strcmp(argv[1], "apart")) {
        leave_namespace();
        argc = 1;
    }
    if (argc > 1 && !strcmp(argv[1], "denied")) give_up_access();
    check_init("testeverything", &argc, &argv);
    CHECK(gasnet_getMaxLocalSegmentSize() == UINTPTR_MAX && gasnet_getMaxGlobalSegmentSize() == UINTPTR_MAX,
          "a segment is limited");
    check_attach(handlers, 4, 0);
    to = (gasnet_mynode() + 1) % gasnet_nodes();
    from = (gasnet_mynode() + gasnet_nodes() - 1) % gasnet_nodes();
    if (argc > 1) {
        if (!strcmp(argv[1], "asleep")) asleep();
        else if (!strcmp(argv[1], "denied")) denied();
        else missing(argv[1]);
        check_done();
    }

    fill(STATIC, static_data, BYTES);
    fill(COMMON, common_data, BYTES);
    heap = (char *)malloc(BYTES);
    fill(HEAP, heap, BYTES);
    brk = (char *)sbrk(BYTES);
    CHECK(brk != (void *)-1, "sbrk");
    fill(SBRK, brk, BYTES);
    fill(MAPPED, (char *)mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), BYTES);
    fill(STACK, stack, sizeof stack);
    /* A word of a library that nothing here uses. */
    library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
    CHECK(library && dlsym(library, "signgam"), "no data of a library");
    if (library) fill(LIBRARY, (char *)dlsym(library, "signgam"), sizeof(int));
#if CHECK_PAR
    CHECK(pthread_create(&other, NULL, thread, NULL) == 0, "pthread_create");
    while (!thread_stage) usleep(1000);
#else
    fill(LOCAL, local_data, sizeof local_data);
#endif
    exchange_addresses();
    for (kind = 0; kind < KINDS; kind++) {
        if (kind == LIBRARY) word(theirs.kind[kind]);
        else if (theirs.kind[kind]) transfer(kind, theirs.kind[kind], theirs.bytes[kind]);
        barrier(kinds[kind]);
        if (mine.kind[kind]) check_same(mine.kind[kind], mine.bytes[kind], seed(from, kind, 3), kinds[kind]);
    }
    CHECK(longs == (CHECK_PAR ? 3 * 8 : 3 * 7), "%d Longs have arrived", longs);
    trains();
    map_again();
    for (kind = 0; kind < 4; kind++) read_only_page(kind % 2, kind < 2 ? 16 : GASNET_PAGESIZE);
#if CHECK_PAR
    region_of_an_ended_thread();
    put_of_an_ended_thread();
    neighbours_change();
#endif
    fork_child();
    whole_words();
#if CHECK_PAR
    thread_stage = 2;
    pthread_join(other, NULL);
#endif
    check_done();
}
