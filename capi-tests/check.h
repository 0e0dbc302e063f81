/* Shared by the test programs of this folder: start, error counting, patterns, watchdog,
 * verdict. Used by every test*.c.
 *
 * The runner reads these lines from the first comment lines of each test*.c:
 *   / * faults: flip_put skip_lock:par skip_sync:portals * /
 *                              values of GASNET_TEST_FAULT that must make the program fail with 2
 *                              ranks. `:par`: the fault shows only in PAR. `:portals`: it shows
 *                              only with GASNET_SUPERNODE_MAXSIZE=1
 *   / * args: 100 2048 * /     arguments of a quick run; double quotes group an argument
 *   / * nodes: any * /         any, or even (1 or an even number), or 3+ (three or more)
 *   / * threads: both * /      both, par or seq
 *   / * segments: everything * /  compiled with GASNET_SEGMENT_EVERYTHING
 *   / * segments: created * /     each rank creates its own, and maps no other
 *   / * env: NAME="a value" * /  variables that the run needs
 * (without the blanks inside the comment marks). Two programs run one case at a time:
 * testexit, whose codes the runner knows, and testbad, which prints its cases with `-list`,
 * without a job.
 *
 * Invariants: every rank counts its errors, and check_done() combines them, so that rank 0
 * prints one verdict and every rank exits with the same code. A rank without progress for
 * GASNET_TEST_STALL seconds (default 120) fails, so that a lost message is a failure and not a
 * hang. */
#ifndef CAPI_TESTS_CHECK_H
#define CAPI_TESTS_CHECK_H

#include <gasnet.h>
#include <gasnet_tools.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Handler indices of this file. Programs use 130 to 249, or 0. */
#define CHECK_H_AREA 253
#define CHECK_H_REPORT 254
#define CHECK_H_VERDICT 255

/* Errors printed by one rank; further ones are only counted. */
#define CHECK_SHOWN 8

#ifdef GASNET_PAR
#define CHECK_PAR 1
#include <pthread.h>
#else
#define CHECK_PAR 0
#endif

static const char *check_name = "?";
static const char *volatile check_place = "start";
static unsigned check_stall = 120;
static gasnett_atomic_t check_count = gasnett_atomic_init(0);
static gasnett_atomic_t check_total = gasnett_atomic_init(0);
static gasnett_atomic_t check_reports = gasnett_atomic_init(0);
static volatile int check_verdict = -1;
/* By rank: its segment; in EVERYTHING an area of its memory. */
static gasnet_seginfo_t *check_seg;

/* ---- errors ---- */

static inline int check_errors(void) { return (int)gasnett_atomic_read(&check_count, 0); }

/* Counts and prints an error. */
GASNETT_FORMAT_PRINTF(check_error, 1, 2, static void check_error(const char *format, ...)) {
    char text[400];
    va_list args;
    gasnett_atomic_increment(&check_count, 0);
    if (check_errors() > CHECK_SHOWN) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("%s: ERROR on rank %d: %s\n", check_name, (int)gasnet_mynode(), text);
    fflush(stdout);
}

/* Counts an error unless `condition` holds; a printf format and its values follow. */
#define CHECK(condition, ...) \
    do { \
        if (!(condition)) check_error(__VA_ARGS__); \
    } while (0)

/* A GASNet call that must return GASNET_OK. */
#define CHECK_OK(call) \
    do { \
        int check_rc_ = (call); \
        if (check_rc_ != GASNET_OK) \
            check_error("%s returned %s, line %d", #call, gasnet_ErrorName(check_rc_), __LINE__); \
    } while (0)

/* ---- watchdog ---- */

static void check_stalled(int sig) {
    char text[300];
    int n = snprintf(text, sizeof text, "%s: FAIL (no progress for %u s at: %s)\n", check_name, check_stall,
                     check_place);
    (void)sig;
    if (n > 0 && write(1, text, (size_t)n) < 0) _exit(4);
    _exit(3);
}

/* Reports progress; the string `place` must stay valid. */
static inline void check_alive(const char *place) {
    check_place = place;
    alarm(check_stall);
}

/* ---- numbers and patterns ---- */

/* A well mixed value of `x` (the finaliser of splitmix64, Steele et al. 2014). */
static inline uint64_t check_mix(uint64_t x) {
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* The next number of the sequence *state, below `limit`. */
static inline size_t check_random(uint64_t *state, size_t limit) {
    *state += 1;
    return (size_t)(check_mix(*state) % limit);
}

/* Fills `n` bytes with the pattern of `seed`. */
static inline void check_fill(void *to, size_t n, uint64_t seed) {
    unsigned char *p = (unsigned char *)to;
    size_t i;
    for (i = 0; i < n; i += 8) {
        uint64_t word = check_mix(seed ^ check_mix(i));
        memcpy(p + i, &word, n - i < 8 ? n - i : 8);
    }
}

/* Compares `n` bytes with the pattern of `seed`. Returns the number of differing bytes and
 * counts them as one error. */
static inline size_t check_same(const void *from, size_t n, uint64_t seed, const char *what) {
    const unsigned char *p = (const unsigned char *)from;
    size_t i, k, bad = 0, first = 0;
    unsigned char want_first = 0;
    for (i = 0; i < n; i += 8) {
        uint64_t word = check_mix(seed ^ check_mix(i));
        size_t part = n - i < 8 ? n - i : 8;
        if (memcmp(p + i, &word, part) == 0) continue;
        for (k = 0; k < part; k++) {
            unsigned char want;
            memcpy(&want, (const char *)&word + k, 1);
            if (p[i + k] == want) continue;
            if (bad++ == 0) {
                first = i + k;
                want_first = want;
            }
        }
    }
    if (bad)
        check_error("%s: %lu of %lu bytes differ, first at %lu: 0x%02x instead of 0x%02x", what, (unsigned long)bad,
                    (unsigned long)n, (unsigned long)first, p[first], want_first);
    return bad;
}

/* Compares `n` bytes with `value`. Returns the number of differing bytes and counts them as
 * one error. */
static inline size_t check_constant(const void *from, size_t n, int value, const char *what) {
    const unsigned char *p = (const unsigned char *)from;
    size_t i, bad = 0, first = 0;
    for (i = 0; i < n; i++) {
        if (p[i] == (unsigned char)value) continue;
        if (bad++ == 0) first = i;
    }
    if (bad)
        check_error("%s: %lu of %lu bytes differ, first at %lu: 0x%02x instead of 0x%02x", what, (unsigned long)bad,
                    (unsigned long)n, (unsigned long)first, p[first], (unsigned)value & 0xff);
    return bad;
}

/* Nanoseconds since an arbitrary moment. */
static inline double check_now(void) { return (double)gasnett_ticks_to_ns(gasnett_ticks_now()); }

/* ---- start ---- */

static void check_report_h(gasnet_token_t token, gasnet_handlerarg_t count, gasnet_handlerarg_t inverse) {
    (void)token;
    if (count != ~inverse) count = 1;
    gasnett_atomic_add(&check_total, (gasnett_atomic_val_t)count, 0);
    gasnett_atomic_increment(&check_reports, GASNETT_ATOMIC_REL);
}

static void check_verdict_h(gasnet_token_t token, gasnet_handlerarg_t total, gasnet_handlerarg_t inverse) {
    (void)token;
    check_verdict = total == ~inverse ? total : 1;
}

/* Calls gasnet_init and arms the watchdog. */
static inline void check_init(const char *name, int *argc, char ***argv) {
    const char *stall;
    int rc;
    check_name = name;
    rc = gasnet_init(argc, argv);
    if (rc != GASNET_OK) {
        printf("%s: FAIL (gasnet_init returned %s)\n", name, gasnet_ErrorName(rc));
        exit(2);
    }
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    stall = getenv("GASNET_TEST_STALL");
    if (stall && atoi(stall) > 0) check_stall = (unsigned)atoi(stall);
    signal(SIGALRM, check_stalled);
    check_alive("attach");
}

static inline size_t check_round(size_t bytes) {
    return (bytes + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE;
}

#ifdef GASNET_SEGMENT_EVERYTHING
static volatile unsigned check_areas;

/* A rank says where its area is. */
static void check_area_h(gasnet_token_t token, gasnet_handlerarg_t high, gasnet_handlerarg_t low) {
    gasnet_node_t from = 0;
    CHECK_OK(gasnet_AMGetMsgSource(token, &from));
    check_seg[from].addr = (void *)(uintptr_t)((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
    gasnett_local_wmb();
    check_areas++;
}

/* Each rank maps an area of `bytes`, and says to all where it is. */
static inline void check_share_areas(size_t bytes) {
    uint64_t at = (uintptr_t)mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    gasnet_node_t i;
    for (i = 0; i < gasnet_nodes(); i++) {
        CHECK(!check_seg[i].addr && check_seg[i].size == UINTPTR_MAX, "the segment of rank %d is not everything", (int)i);
        check_seg[i].size = bytes;
    }
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    CHECK_OK(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS));
    for (i = 0; i < gasnet_nodes(); i++)
        CHECK_OK(gasnet_AMRequestShort2(i, CHECK_H_AREA, (gasnet_handlerarg_t)(at >> 32), (gasnet_handlerarg_t)at));
    GASNET_BLOCKUNTIL(check_areas == gasnet_nodes());
}
#endif

/* Attaches a segment of at least `bytes` with `n` handlers and those of this file, and reads
 * the segment table. */
static inline void check_attach(gasnet_handlerentry_t *handlers, int n, size_t bytes) {
    gasnet_handlerentry_t own[] = {
        {CHECK_H_REPORT, check_report_h},
        {CHECK_H_VERDICT, check_verdict_h},
#ifdef GASNET_SEGMENT_EVERYTHING
        {CHECK_H_AREA, check_area_h},
#endif
    };
    const int n_own = (int)(sizeof own / sizeof *own);
    gasnet_handlerentry_t *all = (gasnet_handlerentry_t *)calloc((size_t)(n + n_own), sizeof *all);
    int rc;
    if (n) memcpy(all, handlers, (size_t)n * sizeof *all);
    memcpy(all + n, own, sizeof own);
    rc = gasnet_attach(all, n + n_own, check_round(bytes), 0);
    if (rc != GASNET_OK) {
        printf("%s: FAIL (gasnet_attach of %lu bytes returned %s)\n", check_name, (unsigned long)check_round(bytes),
               gasnet_ErrorName(rc));
        gasnet_exit(2);
    }
    if (n) memcpy(handlers, all, (size_t)n * sizeof *all);
    free(all);
    check_seg = (gasnet_seginfo_t *)calloc(gasnet_nodes(), sizeof *check_seg);
    CHECK_OK(gasnet_getSegmentInfo(check_seg, (int)gasnet_nodes()));
#ifdef GASNET_SEGMENT_EVERYTHING
    check_share_areas(check_round(bytes));
#endif
    check_alive("run");
}

/* The address `offset` bytes into the segment of `node`. */
static inline char *check_at(gasnet_node_t node, size_t offset) { return (char *)check_seg[node].addr + offset; }

/* The partner of this rank: 0 and 1, 2 and 3, ...; the last of an odd number is its own
 * partner. */
static inline gasnet_node_t check_peer(void) {
    gasnet_node_t peer = gasnet_mynode() ^ 1;
    return peer < gasnet_nodes() ? peer : gasnet_mynode();
}

/* An anonymous barrier of all ranks. */
static inline void check_barrier(void) {
    alarm(check_stall);
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    CHECK_OK(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS));
}

/* Ends a program that was called with wrong arguments. */
static inline void check_usage(const char *text) {
    if (gasnet_mynode() == 0) fprintf(stderr, "usage: %s %s\n", check_name, text);
    gasnet_exit(1);
}

/* Positional argument `i` as a number with an optional suffix K, M or G, or `otherwise`. */
static inline size_t check_arg(int argc, char **argv, int i, size_t otherwise) {
    return i < argc ? (size_t)gasnett_parse_int(argv[i], 1) : otherwise;
}

/* ---- end ---- */

/* Combines the errors of all ranks, prints the verdict on rank 0 and ends the job. */
GASNETT_NORETURN static inline void check_done(void) {
    gasnet_handlerarg_t mine = check_errors();
    int total, i;
    check_alive("verdict");
    CHECK_OK(gasnet_AMRequestShort2(0, CHECK_H_REPORT, mine, ~mine));
    if (gasnet_mynode() == 0) {
        GASNET_BLOCKUNTIL(gasnett_atomic_read(&check_reports, 0) == gasnet_nodes());
        total = (int)gasnett_atomic_read(&check_total, 0);
        if (total)
            printf("%s: FAIL (%d errors)\n", check_name, total);
        else
            printf("%s: PASS\n", check_name);
        fflush(stdout);
        for (i = 1; i < (int)gasnet_nodes(); i++)
            CHECK_OK(gasnet_AMRequestShort2((gasnet_node_t)i, CHECK_H_VERDICT, total, ~total));
    } else {
        GASNET_BLOCKUNTIL(check_verdict >= 0);
        total = check_verdict;
    }
    gasnet_exit(total ? 1 : 0);
}

/* ---- memory that is locked ---- */

/* A line of /proc/self/status of this process, in bytes; `format` reads its number of kB. */
static inline uintptr_t check_status_bytes(const char *format) {
    FILE *f = fopen("/proc/self/status", "r");
    char line[200];
    unsigned long kib = 0;
    int found = 0;
    while (f && !found && fgets(line, sizeof line, f)) found = sscanf(line, format, &kib) == 1;
    if (f) fclose(f);
    CHECK(found, "/proc/self/status has no line '%s'", format);
    return (uintptr_t)kib * 1024;
}

/* What this rank may lock, and the most that check_locked has found. */
static uintptr_t check_share, check_most_locked;

/* Finds the share: this rank's of GASNET_PHYSMEM_MAX, or `ulimit -l` where that is less. */
static inline void check_find_share(void) {
    const char *all = gasnett_getenv("GASNET_PHYSMEM_MAX");
    struct rlimit limit;
    check_share = (uintptr_t)gasnett_parse_int(all ? all : "1TB", 1) / gasnet_nodes();
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur < check_share) {
        size_t more = (size_t)limit.rlim_cur + 4096;
        void *memory = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mlock(memory, more) != 0) check_share = (uintptr_t)limit.rlim_cur;
        munmap(memory, more);
    }
}

/* Checks that no more is locked than the share. */
static inline void check_locked(const char *where) {
    uintptr_t now = check_status_bytes("VmLck: %lu kB");
    if (now > check_most_locked) check_most_locked = now;
    CHECK(now <= check_share, "%s: %lu bytes are locked, more than %lu", where, (unsigned long)now, (unsigned long)check_share);
}

/* ---- threads, in PAR ---- */

#if CHECK_PAR
struct check_thread {
    pthread_t handle;
    int id;
    void (*body)(int);
};

static inline void *check_thread_main(void *arg) {
    struct check_thread *t = (struct check_thread *)arg;
    t->body(t->id);
    return NULL;
}

/* Starts `n` threads that run body(first), body(first + 1), ... */
static inline struct check_thread *check_start(int n, int first, void (*body)(int)) {
    struct check_thread *t = (struct check_thread *)calloc((size_t)n, sizeof *t);
    pthread_attr_t attr;
    int i, rc;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 256 * 1024);
    for (i = 0; i < n; i++) {
        t[i].id = first + i;
        t[i].body = body;
        rc = pthread_create(&t[i].handle, &attr, check_thread_main, &t[i]);
        if (rc) {
            printf("%s: FAIL (thread %d of %d: %s)\n", check_name, i, n, strerror(rc));
            gasnet_exit(2);
        }
    }
    pthread_attr_destroy(&attr);
    return t;
}

/* Waits for the threads of check_start. */
static inline void check_join(struct check_thread *t, int n) {
    int i;
    for (i = 0; i < n; i++) pthread_join(t[i].handle, NULL);
    free(t);
}
#endif

#endif
