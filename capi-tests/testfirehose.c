/* testfirehose: memory that is registered on demand. Each thread of each rank puts to, and gets
 * from, its own part of the area of every rank, whose sizes are below, at and above what ranks may
 * register; local sides lie anywhere in a large buffer. All ranks then address all others at once.
 * Memory that peers have registered is unmapped and mapped again: new data arrive, and the memory
 * is registered anew. Pages between those that transfers use are replaced meanwhile. What a rank
 * has locked is read all the time: it never exceeds its share of GASNET_PHYSMEM_MAX. With an
 * argument it runs one case alone:
 *   rejected       many puts at once to memory that was mapped again, of many regions
 *   implicit       an implicit put to memory that is registered arrives before it is synced
 *   freed          what was allocated and freed stays mapped (GASNET_DISABLE_MUNMAP)
 *   files          the area is memory of a file; with the fault watch_no_files nothing reports
 *                  that it is unmapped, and it is not kept registered
 *   set REGIONS    random puts to this number of regions of 4 KB of the next rank, for a hit rate
 *   forever RANK   prints a line, then goes on until it is killed; GASNET_TEST_PAUSE applies to
 *                  this rank only */
/* faults: flip_put flip_get */
/* args: 150 */
/* nodes: any */
/* threads: both */
/* segments: everything */
/* env: GASNET_PORTAL_PIN=1 GASNET_PHYSMEM_MAX=12MB */
#include "check.h"
#include <ctype.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

#define LOCAL (2 << 20)
#define LARGEST 150000
#define THREADS (CHECK_PAR ? 3 : 1)
#define ALL_TO_ALL 8

/* What one thread has of its own. */
struct thread {
    int number;
    uint64_t random;
    char *local;
    size_t window;
    int rounds, replace;
};

static size_t area;
/* The area is memory of a file, or of one in memory. */
static int files, is_tmpfs;
static volatile int forever;

/* The part of a thread in the area of a rank, and its bytes. */
static char *part(gasnet_node_t of, int thread) {
    size_t parts = (size_t)gasnet_nodes() * THREADS;
    return check_at(of, area / parts * ((size_t)gasnet_mynode() * THREADS + (size_t)thread));
}

static size_t part_bytes(void) { return area / ((size_t)gasnet_nodes() * THREADS); }

/* One put and one get of the same bytes, in one of their forms. */
static void transfer(struct thread *t) {
    gasnet_node_t to = (gasnet_node_t)check_random(&t->random, gasnet_nodes());
    size_t room = t->window < part_bytes() ? t->window : part_bytes();
    size_t most = check_random(&t->random, 3) == 0 ? LARGEST : 3000;
    size_t n = 1 + check_random(&t->random, most < room ? most : room - 1);
    char *at = part(to, t->number) + check_random(&t->random, room - n + 1);
    char *here = t->local + check_random(&t->random, LOCAL - n), *back;
    uint64_t seed = check_mix(t->random);
    check_fill(here, n, seed);
    switch (check_random(&t->random, 5)) {
    case 0: gasnet_put_bulk(to, at, here, n); break;
    case 1: gasnet_wait_syncnb(gasnet_put_nb_bulk(to, at, here, n)); break;
    case 2: /* The source may be reused. */
        gasnet_put_nbi(to, at, here, n);
        memset(here, 0, n);
        gasnet_wait_syncnbi_puts();
        break;
    case 3:
        gasnet_put_nbi_bulk(to, at, here, n);
        gasnet_wait_syncnbi_puts();
        break;
    default: gasnet_put(to, at, here, n);
    }
    back = t->local + check_random(&t->random, LOCAL - n);
    memset(back, 0, n);
    if (check_random(&t->random, 2)) gasnet_get_bulk(back, to, at, n);
    else gasnet_wait_syncnb(gasnet_get_nb_bulk(back, to, at, n));
    check_same(back, n, seed, "a put");
}

/* Many operations at once, to all ranks. */
static void all_to_all(struct thread *t) {
    size_t n = part_bytes() / ALL_TO_ALL < 5000 ? part_bytes() / ALL_TO_ALL : 5000;
    gasnet_node_t to;
    int i;
    for (i = 0; i < ALL_TO_ALL; i++) {
        char *here = t->local + (size_t)i * LOCAL / ALL_TO_ALL;
        check_fill(here, n, (uint64_t)i);
        for (to = 0; to < gasnet_nodes(); to++)
            gasnet_put_nbi_bulk(to, part(to, t->number) + (size_t)i * part_bytes() / ALL_TO_ALL, here, n);
    }
    gasnet_wait_syncnbi_puts();
    for (to = 0; to < gasnet_nodes(); to++) {
        for (i = 0; i < ALL_TO_ALL; i++) {
            char *here = t->local + (size_t)i * LOCAL / ALL_TO_ALL;
            memset(here, 0, n);
            gasnet_get_nbi_bulk(here, to, part(to, t->number) + (size_t)i * part_bytes() / ALL_TO_ALL, n);
        }
        gasnet_wait_syncnbi_gets();
        for (i = 0; i < ALL_TO_ALL; i++)
            check_same(t->local + (size_t)i * LOCAL / ALL_TO_ALL, n, (uint64_t)i, "all to all");
    }
}

static void replace_pages(struct thread *t);

static void *run(void *of) {
    struct thread *t = (struct thread *)of;
    int i;
    for (i = 0; i < t->rounds || forever; i++) {
        check_alive("transfers");
        if (t->replace) replace_pages(t);
        else transfer(t);
        if (i % 4 == 0) check_locked("a transfer");
        if (i % 50 == 0 && !t->replace) all_to_all(t);
    }
    return NULL;
}

static void run_all(size_t window, int rounds, int replace) {
    static struct thread threads[THREADS];
    int i;
#if CHECK_PAR
    pthread_t ids[THREADS];
#endif
    for (i = 0; i < THREADS; i++) {
        struct thread *t = &threads[i];
        t->number = i;
        t->random = check_mix((uint64_t)gasnet_mynode() * 100 + (uint64_t)i);
        if (!t->local) t->local = (char *)malloc(LOCAL);
        t->window = window;
        t->rounds = rounds;
        t->replace = replace;
#if CHECK_PAR
        CHECK(pthread_create(&ids[i], NULL, run, t) == 0, "pthread_create");
#else
        run(t);
#endif
    }
#if CHECK_PAR
    for (i = 0; i < THREADS; i++) {
        void *unused;
        /* Waiting polls, since peers wait for this rank. */
        while (pthread_tryjoin_np(ids[i], &unused) != 0) {
            gasnet_AMPoll();
            gasnett_sched_yield();
        }
    }
#endif
    check_barrier();
}

/* Maps new memory in place of the area. */
static void map_area(void) {
    char *mine = check_at(gasnet_mynode(), 0);
    struct statfs of;
    FILE *file = files ? tmpfile() : NULL;
    int fd = file ? fileno(file) : -1;
    int flags = MAP_FIXED | (files ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS);
    CHECK(!files || (file && ftruncate(fd, (off_t)area) == 0), "no temporary file");
    CHECK(mmap(mine, area, PROT_READ | PROT_WRITE, flags, fd, 0) == mine, "mmap");
    if (file) {
        is_tmpfs = fstatfs(fd, &of) == 0 && of.f_type == 0x01021994;
        fclose(file);
    }
}

/* Memory that peers have registered is unmapped and mapped again at its address. */
static void map_again(void) {
    gasnet_node_t to = (gasnet_mynode() + 1) % gasnet_nodes(), from = (gasnet_mynode() + gasnet_nodes() - 1) % gasnet_nodes();
    char *mine = check_at(gasnet_mynode(), 0), here[200];
    int round;
    for (round = 0; round < 5; round++) {
        munmap(mine, area);
        map_area();
        check_barrier();
        check_fill(here, sizeof here, (uint64_t)round + 10 * gasnet_mynode());
        gasnet_put(to, check_at(to, area / 2 + 3000), here, sizeof here);
        check_barrier();
        check_same(mine + area / 2 + 3000, sizeof here, (uint64_t)round + 10 * from, "a put to memory mapped again");
        check_locked("memory mapped again");
        check_barrier();
    }
}

/* Whether the library can notice that memory is unmapped. */
static int has_monitor(void) {
    const char *no = gasnett_getenv("GASNET_FIREHOSE_MONITOR");
    long fd = syscall(SYS_userfaultfd, O_CLOEXEC | 1);
    if (fd >= 0) close((int)fd);
    return fd >= 0 && gasnet_nodes() > 1 && gasnett_getenv("GASNET_PORTAL_PIN") && !(no && !strcmp(no, "0"));
}

/* Whether the page of an address is locked. */
static int is_locked(const char *at) {
    char line[4096];
    int here = 0, is = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) here = (unsigned long)at >= start && (unsigned long)at < end;
        if (here && !strncmp(line, "VmFlags:", 8)) is = strstr(line, " lo") != NULL;
    }
    if (maps) fclose(maps);
    return is;
}

/* Memory that is mapped again is registered anew: after the second put its page is locked, unless
 * nothing would notice that it is unmapped. */
static void registered_anew(void) {
    gasnet_node_t to = (gasnet_mynode() + 1) % gasnet_nodes();
    char *mine = check_at(gasnet_mynode(), 0), here[200];
    int round, i, kept = !(files && !is_tmpfs && gasnett_getenv("GASNET_TEST_FAULT"));
    if (gasnet_mynode() == 0 && !has_monitor()) printf("testfirehose: nothing notices that memory is unmapped\n");
    for (round = 0; round < 3; round++) {
        for (i = 0; i < 2; i++) {
            check_fill(here, sizeof here, (uint64_t)round);
            gasnet_put(to, check_at(to, 3000), here, sizeof here);
            check_barrier();
        }
        check_same(mine + 3000, sizeof here, (uint64_t)round, "a put to memory that is registered");
        CHECK(!has_monitor() || is_locked(mine + 3000) == kept, "round %d: what a peer has put to is %sregistered", round, kept ? "not " : "");
        munmap(mine, area);
        map_area();
        CHECK(!is_locked(mine + 3000), "new memory is locked");
        check_barrier();
    }
}

/* Many puts at once, each to a region of its own that its target has mapped again: all are refused
 * there, and sent otherwise. */
static void rejected(void) {
    enum { PUTS = 2000, STEP = 8192 };
    gasnet_node_t to = (gasnet_mynode() + 1) % gasnet_nodes();
    char *mine = check_at(gasnet_mynode(), 0);
    static uint64_t values[PUTS];
    static gasnet_handle_t handles[PUTS];
    int i, round;
    for (round = 1; round <= 2; round++) {
        for (i = 0; i < PUTS; i++) {
            values[i] = check_mix((uint64_t)(i * 3 + round));
            gasnet_put(to, check_at(to, (size_t)i * STEP), &values[i], 8);
        }
        check_barrier();
        map_area();
        check_barrier();
        for (i = 0; i < PUTS; i++) handles[i] = gasnet_put_nb_bulk(to, check_at(to, (size_t)i * STEP + 16), &values[i], 8);
        gasnet_wait_syncnb_all(handles, PUTS);
        check_barrier();
        for (i = 0; i < PUTS; i++) CHECK(!memcmp(mine + (size_t)i * STEP + 16, &values[i], 8), "put %d of round %d was lost", i, round);
        check_alive("puts that are refused");
        check_barrier();
    }
}

/* The put leaves at once: its target waits without a call, and so does this rank. */
static void implicit(void) {
    gasnet_node_t to = (gasnet_mynode() + 1) % gasnet_nodes();
    volatile uint64_t *word = (volatile uint64_t *)(void *)check_at(gasnet_mynode(), 0);
    uint64_t value = 1;
    time_t began;
    gasnet_put(to, check_at(to, 0), &value, 8);
    check_barrier();
    value = 2;
    gasnet_put_nbi(to, check_at(to, 0), &value, 8);
    for (began = time(NULL); *word != 2 && time(NULL) < began + 20;) gasnett_sched_yield();
    CHECK(*word == 2, "an implicit put waits for its sync");
    gasnet_wait_syncnbi_puts();
    check_barrier();
}

/* Transfers between even pages, while the thread replaces the odd pages of the same regions, of
 * which others are in use. */
static void replace_pages(struct thread *t) {
    gasnet_node_t to = (gasnet_node_t)check_random(&t->random, gasnet_nodes());
    size_t pages = (1 << 20) / 8192, each = pages / THREADS;
    size_t n = 8192 * (each * (size_t)t->number + check_random(&t->random, each));
    char *mine = check_at(gasnet_mynode(), 0), *here = mine + (2 << 20) + n, *odd;
    /* The ranks share the even pages of each other. */
    char *there = check_at(to, (size_t)(4 + gasnet_mynode()) << 20) + n;
    uint64_t seed = check_mix(t->random);
    gasnet_handle_t h;
    check_fill(here, 4096, seed);
    h = gasnet_put_nb_bulk(to, there, here, 4096);
    odd = mine + (size_t)((2 + check_random(&t->random, 2 + gasnet_nodes())) << 20) + n + 4096;
    CHECK(mmap(odd, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == odd, "mmap");
    gasnet_wait_syncnb(h);
    memset(here, 0, 4096);
    h = gasnet_get_nb_bulk(here, to, there, 4096);
    CHECK(mmap(here + 4096, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == here + 4096, "mmap");
    gasnet_wait_syncnb(h);
    check_same(here, 4096, seed, "a put between pages that are replaced");
}

/* Checks that pages of large allocations, more than a heap of a thread has, are mapped after they
 * were freed. */
static void *stay_mapped(void *unused) {
    enum { BLOCKS = 20 };
    const size_t bytes = 8 << 20, page = 4096;
    char *blocks[BLOCKS];
    unsigned char resident;
    int i;
    for (i = 0; i < BLOCKS; i++) {
        blocks[i] = (char *)malloc(bytes);
        CHECK(blocks[i] != NULL, "malloc");
        blocks[i][bytes / 2] = 1;
    }
    for (i = 0; i < BLOCKS; i++) free(blocks[i]);
    for (i = 0; i < BLOCKS; i++) {
        uintptr_t at = ((uintptr_t)blocks[i] + bytes / 2) / page * page;
        CHECK(mincore((void *)at, page, &resident) == 0, "block %d of freed memory is unmapped", i);
    }
    return unused;
}

/* Random puts to as many regions of the next rank. */
static void random_set(int regions) {
    gasnet_node_t to = (gasnet_mynode() + 1) % gasnet_nodes();
    uint64_t random = check_mix(gasnet_mynode());
    char here[64];
    int i;
    check_fill(here, sizeof here, 9);
    for (i = 0; i < 1000 * regions; i++) {
        if (i % 1000 == 0) check_alive("random puts");
        gasnet_put(to, check_at(to, 4096 * (size_t)check_random(&random, (uint64_t)regions)), here, sizeof here);
        if (i % 64 == 0) check_locked("a random put");
    }
    check_barrier();
}

/* Uses 2 MB of the stack. */
static int __attribute__((noinline)) deep(int frames) {
    volatile char frame[10240];
    frame[0] = frame[sizeof frame - 1] = (char)frames;
    return frames ? deep(frames - 1) + frame[0] : frame[0];
}

/* Puts from frames of the stack, ever lower, which grows below them afterwards. */
static void __attribute__((noinline)) put_frames(int frames) {
    char frame[4096];
    memset(frame, frames, sizeof frame);
    gasnet_put_bulk((gasnet_node_t)check_peer(), check_at(check_peer(), 0), frame, sizeof frame);
    if (frames) put_frames(frames - 1);
    else deep(200);
    CHECK(frame[0] == (char)frames, "a frame of the stack has changed");
}

int main(int argc, char **argv) {
    int rounds, freed;
    check_init("testfirehose", &argc, &argv);
    freed = argc > 1 && !strcmp(argv[1], "freed");
    files = argc > 1 && !strcmp(argv[1], "files");
    forever = argc > 1 && !strcmp(argv[1], "forever");
    if (forever && argc > 2 && atoi(argv[2]) != (int)gasnet_mynode()) unsetenv("GASNET_TEST_PAUSE");
    rounds = argc > 1 && !isdigit((unsigned char)*argv[1]) ? 20 : (int)check_arg(argc, argv, 1, 150);
    check_find_share();
    area = check_round(16 << 20);
    check_attach(NULL, 0, area);
    check_locked("attach");
    if (freed) {
        stay_mapped(NULL);
#if CHECK_PAR
        {
            pthread_t id;
            CHECK(pthread_create(&id, NULL, stay_mapped, NULL) == 0 && pthread_join(id, NULL) == 0, "a thread");
        }
#endif
        check_done();
    }
    if (argc > 2 && !strcmp(argv[1], "set")) {
        random_set(atoi(argv[2]));
        check_done();
    }
    if (argc > 1 && !strcmp(argv[1], "rejected")) {
        rejected();
        check_done();
    }
    if (argc > 1 && !strcmp(argv[1], "implicit")) {
        implicit();
        check_done();
    }
    if (files) map_area();
    check_barrier();
    if (forever) {
        printf("rank %d is process %d\n", (int)gasnet_mynode(), (int)getpid());
        run_all(area, rounds, 0);
    }
    run_all(20000, rounds, 0);
    run_all(check_share / gasnet_nodes() / THREADS, rounds, 0);
    run_all(area, rounds, 0);
    map_again();
    registered_anew();
    put_frames(50);
    check_locked("a stack that grew");
    check_barrier();
    if (gasnet_nodes() <= 8) run_all(area, rounds, 1);
    run_all(area, rounds / 4, 0);
    CHECK(gasnet_nodes() == 1 || files || check_most_locked > 0 || !gasnett_getenv("GASNET_PORTAL_PIN"), "nothing was ever locked");
    check_barrier();
    check_done();
}
