/* testtools: the tools interface: timers, numbers, environment, atomics, locks, thread keys,
 * counting of zeros, signals, the client's own function to print a stack. With GASNET_DEBUG,
 * for debug malloc, assertions about locks and checked calls. */
/* faults: lose_env */
/* args: 2000 */
/* env: GASNET_DUMMY="GASNet dummy value" GASNET_MALLOC_INIT=1 GASNET_MALLOC_INITVAL=0xA5 GASNET_MALLOC_EXTRACHECK=1 */
/* nodes: any */
/* threads: both */
#define GASNET_DEBUG 1
#include "check.h"

#include <sys/wait.h>

#define THREADS 4

/* The client's definition takes precedence over the library's, and the library calls it. */
static int user_stacks;
static int print_stack(int fd) {
    (void)fd;
    user_stacks++;
    return 0;
}
gasnett_backtrace_type_t gasnett_backtrace_user = {"MINE", print_stack, 1};

static size_t rounds;

static void timers(void) {
    /* The day's time encloses the ticks: no harm if the process gets no CPU between two looks. */
    uint64_t day = gasnett_gettimeofday_us(), us, real;
    gasnett_tick_t start = gasnett_ticks_now(), last = start, now;
    CHECK(start > GASNETT_TICK_MIN && start < GASNETT_TICK_MAX, "a tick out of range");
    CHECK(gasnett_tick_granularityus() > 0 && gasnett_tick_overheadus() > 0, "no granularity or overhead");
    do {
        now = gasnett_ticks_now();
        CHECK(now >= last, "the clock went back");
        last = now;
        us = gasnett_ticks_to_us(now - start);
    } while (us < 50000);
    real = gasnett_gettimeofday_us() - day;
    CHECK(real + 10000 > us && real < us + 1000000, "50 ms of ticks are %lu us of the day", (unsigned long)real);
    CHECK(gasnett_ticks_to_ns(now - start) / 1000 == us, "nanoseconds and microseconds differ");
}

static void numbers(void) {
    char text[64];
    int shift, mem;
    for (mem = 0; mem < 2; mem++) {
        for (shift = 0; shift < 62; shift++) {
            int64_t n = (int64_t)1 << shift;
            gasnett_format_number(n, text, sizeof text, mem);
            CHECK(gasnett_parse_int(text, (uint64_t)mem) == n, "2^%d is \"%s\"", shift, text);
            gasnett_format_number(-n, text, sizeof text, mem);
            CHECK(gasnett_parse_int(text, (uint64_t)mem) == -n, "-2^%d is \"%s\"", shift, text);
        }
    }
    CHECK(gasnett_parse_int("2K", 1) == 2048 && gasnett_parse_int("1.5 mb", 1) == 1572864, "suffixes");
    CHECK(gasnett_parse_int("3", 1024) == 3072 && gasnett_parse_int("0x1f", 1) == 31, "unit or hexadecimal");
    gasnett_format_number(4096, text, 3, 1);
    CHECK(!strcmp(text, "4 "), "a short buffer holds \"%s\"", text);
}

static void environment(void) {
    const char *here = gasnett_getenv("GASNET_DUMMY"), *job = gasnet_getenv("GASNET_DUMMY");
    CHECK(here && job && !strcmp(here, job), "GASNET_DUMMY is \"%s\", of the job \"%s\"", here ? here : "(null)",
          job ? job : "(null)");
    gasnett_setenv("GASNET_TEST_A", "yes");
    CHECK(gasnett_getenv_yesno_withdefault("GASNET_TEST_A", 0) == 1, "yes is not 1");
    gasnett_setenv("GASNET_TEST_A", "64KB");
    CHECK(gasnett_getenv_int_withdefault("GASNET_TEST_A", 1, 1) == 65536, "64KB is not 65536");
    gasnett_setenv("GASNET_TEST_A", "1/4");
    CHECK(gasnett_getenv_dbl_withdefault("GASNET_TEST_A", 1) == 0.25, "1/4 is not 0.25");
    gasnett_unsetenv("GASNET_TEST_A");
    CHECK(gasnett_getenv("GASNET_TEST_A") == NULL, "unsetenv left the variable");
    CHECK(!strcmp(gasnett_getenv_withdefault("GASNET_TEST_A", "x"), "x"), "the default is lost");
    CHECK(gasnett_getenv_int_withdefault("GASNET_TEST_A", 7, 0) == 7, "the default number is lost");
}

static void zeros(void) {
    unsigned char from[64], to[64];
    size_t i;
    for (i = 0; i < sizeof from; i++) from[i] = (unsigned char)(i % 3);
    CHECK(gasnett_count0s(from, sizeof from) == 22, "22 of 64 bytes are 0");
    CHECK(gasnett_count0s_copy(to, from, sizeof from) == 22 && !memcmp(from, to, sizeof from), "counted copy");
    CHECK(gasnett_checksum(from, 64) == gasnett_checksum(to, 64), "checksums of equal bytes");
    to[63]++;
    CHECK(gasnett_checksum(from, 64) != gasnett_checksum(to, 64), "checksums of different bytes");
    CHECK(gasnett_count0s_uint32_t(0x00FF0100) == 2, "zeros of 32 bits");
    CHECK(gasnett_count0s_uint64_t(1) == 7 && gasnett_count0s_uintptr_t(0) == sizeof(uintptr_t), "zeros of words");
}

/* Operations of each family, one thread. */
#define FAMILY(fam, val, p) \
    do { \
        gasnett_##fam##_set(p, 5, GASNETT_ATOMIC_REL); \
        CHECK(gasnett_##fam##_read(p, GASNETT_ATOMIC_ACQ) == 5, #fam "_read"); \
        gasnett_##fam##_increment(p, 0); \
        gasnett_##fam##_decrement(p, GASNETT_ATOMIC_MB_PRE | GASNETT_ATOMIC_MB_POST); \
        CHECK(gasnett_##fam##_add(p, 3, 0) == 8, #fam "_add"); \
        CHECK(gasnett_##fam##_subtract(p, 7, 0) == 1, #fam "_subtract"); \
        CHECK(!gasnett_##fam##_compare_and_swap(p, 2, 9, 0), #fam "_compare_and_swap of another value"); \
        CHECK(gasnett_##fam##_compare_and_swap(p, 1, 2, GASNETT_ATOMIC_ACQ_IF_TRUE), #fam "_compare_and_swap"); \
        CHECK(!gasnett_##fam##_decrement_and_test(p, 0), #fam "_decrement_and_test of 2"); \
        CHECK(gasnett_##fam##_decrement_and_test(p, 0), #fam "_decrement_and_test of 1"); \
        CHECK(gasnett_##fam##_swap(p, (val)-1, 0) == 0, #fam "_swap"); \
        CHECK(gasnett_##fam##_read(p, 0) == (val)-1, #fam "_swap stored something else"); \
    } while (0)

static void families(void) {
    struct {
        char pad;
        gasnett_atomic_t a;
        gasnett_atomic32_t b;
        gasnett_atomic64_t c;
        gasnett_strongatomic_t d;
        gasnett_strongatomic32_t e;
        gasnett_strongatomic64_t f;
    } x = {0, gasnett_atomic_init(1), gasnett_atomic32_init(2), gasnett_atomic64_init(3), gasnett_strongatomic_init(4),
           gasnett_strongatomic32_init(5), gasnett_strongatomic64_init(6)};
    double number = 1;
    float half = 1;
    CHECK(gasnett_atomic64_read(&x.c, 0) == 3, "static value");
    FAMILY(atomic, gasnett_atomic_val_t, &x.a);
    FAMILY(atomic32, uint32_t, &x.b);
    FAMILY(atomic64, uint64_t, &x.c);
    FAMILY(strongatomic, gasnett_atomic_val_t, &x.d);
    FAMILY(strongatomic32, uint32_t, &x.e);
    FAMILY(strongatomic64, uint64_t, &x.f);
    gasnett_atomic64_set((gasnett_atomic64_t *)&number, 0, 0);
    gasnett_atomic32_set((gasnett_atomic32_t *)&half, 0, 0);
    CHECK(number == 0 && half == 0, "atomics over floating-point numbers");
}

#if CHECK_PAR
static gasnett_atomic_t sum = gasnett_atomic_init(0);
static gasnett_atomic64_t swaps = gasnett_atomic64_init(0);
static gasnett_mutex_t mutex = GASNETT_MUTEX_INITIALIZER;
static gasnett_cond_t cond = GASNETT_COND_INITIALIZER, done = GASNETT_COND_INITIALIZER;
static gasnett_rwlock_t rwlock = GASNETT_RWLOCK_INITIALIZER;
static gasnet_hsl_t hsl = GASNET_HSL_INITIALIZER;
static volatile long guarded, shared_a, shared_b;
static volatile int arrived, under_hsl, go;
GASNETT_THREADKEY_DECLARE(mine);
GASNETT_THREADKEY_DEFINE(mine);

static void body(int id) {
    size_t i;
    CHECK(gasnett_threadkey_get(mine) == NULL, "a thread key is not null at first");
    gasnett_threadkey_set(mine, (void *)(uintptr_t)(id + 1));
    /* A handler-safe lock's mutex with a condition. */
    gasnet_hsl_lock(&hsl);
    under_hsl++;
    gasnett_cond_broadcast(&cond);
    while (!go) gasnett_cond_wait(&cond, &hsl.lock);
    gasnet_hsl_unlock(&hsl);
    for (i = 0; i < rounds; i++) {
        uint64_t old;
        gasnett_atomic_increment(&sum, 0);
        do {
            old = gasnett_atomic64_read(&swaps, 0);
        } while (!gasnett_atomic64_compare_and_swap(&swaps, old, old + 2, 0));
        gasnett_mutex_lock(&mutex);
        guarded++;
        gasnett_mutex_unlock(&mutex);
        if (i % 16 == 0) {
            gasnett_rwlock_wrlock(&rwlock);
            shared_a++;
            shared_b++;
            gasnett_rwlock_unlock(&rwlock);
        } else {
            gasnett_rwlock_rdlock(&rwlock);
            CHECK(shared_a == shared_b, "a reader among writers");
            gasnett_rwlock_unlock(&rwlock);
        }
        if (i % 64 == 0) gasnett_sched_yield();
    }
    CHECK(gasnett_threadkey_get(mine) == (void *)(uintptr_t)(id + 1), "a thread key of another thread");
    gasnett_mutex_lock(&mutex);
    arrived++;
    gasnett_cond_signal(&done);
    gasnett_mutex_unlock(&mutex);
}

static void threads(void) {
    struct check_thread *t = check_start(THREADS, 0, body);
    gasnet_hsl_lock(&hsl);
    while (under_hsl < THREADS) gasnett_cond_wait(&cond, &hsl.lock);
    go = 1;
    gasnett_cond_broadcast(&cond);
    gasnet_hsl_unlock(&hsl);
    gasnett_mutex_lock(&mutex);
    CHECK(gasnett_mutex_trylock(&mutex) == EBUSY, "trylock of a taken mutex");
    while (arrived < THREADS) gasnett_cond_wait(&done, &mutex);
    gasnett_mutex_unlock(&mutex);
    check_join(t, THREADS);
    CHECK(gasnett_atomic_read(&sum, 0) == THREADS * rounds, "increments are lost");
    CHECK(gasnett_atomic64_read(&swaps, 0) == 2 * THREADS * rounds, "swaps are lost");
    CHECK(guarded == (long)(THREADS * rounds), "the mutex lets two in");
    CHECK(gasnett_rwlock_trywrlock(&rwlock) == 0 && gasnett_rwlock_tryrdlock(&rwlock) == EBUSY, "try of the rwlock");
    gasnett_rwlock_unlock(&rwlock);
}
#endif

static void heap(void) {
    gasnett_heapstats_t before, now;
    char *p, *q;
    size_t i;
    CHECK(gasnett_getheapstats(&before) == 0, "gasnett_getheapstats");
    p = (char *)gasnett_debug_malloc(10);
    for (i = 0; i < 10 && !getenv("GASNET_TEST_FAULT"); i++)
        CHECK(p[i] == (char)0xA5, "byte %d of a new object is 0x%x", (int)i, (unsigned)p[i] & 0xff);
    strcpy(p, "abcdefgh");
    gasnett_debug_memcheck(p);
    p = (char *)gasnett_debug_realloc(p, 1000);
    CHECK(!strcmp(p, "abcdefgh"), "a larger object begins with %.8s", p);
    q = gasnett_debug_strdup(p);
    CHECK(!strcmp(p, q), "the copy of a string is %.8s", q);
    gasnett_debug_free(q);
    q = gasnett_debug_strndup(p, 4);
    CHECK(!strcmp(q, "abcd"), "the copy of 4 bytes is %.8s", q);
    gasnett_debug_memcheck_one();
    gasnett_debug_memcheck_all();
    gasnett_getheapstats(&now);
    CHECK(now.live_objects == before.live_objects + 2 && now.live_bytes == before.live_bytes + 1005, "%d objects of %d bytes",
          (int)(now.live_objects - before.live_objects), (int)(now.live_bytes - before.live_bytes));
    gasnett_debug_free(q);
    gasnett_debug_free(p);
    gasnett_debug_free(NULL);
    p = (char *)gasnett_debug_calloc(8, 16);
    check_constant(p, 128, 0, "zeroed memory");
    gasnett_debug_free(p);
    gasnett_getheapstats(&now);
    CHECK(now.live_bytes == before.live_bytes && now.allocated_objects == before.allocated_objects + 5, "what is left");
}

#if CHECK_PAR
/* Whether a child that does this ends by SIGABRT with that message. */
static void aborts(void (*body)(void), const char *words) {
    char text[2000];
    size_t n = 0;
    ssize_t got;
    int ends[2], status = 0;
    pid_t pid;
    fflush(NULL);
    CHECK(pipe(ends) == 0, "pipe");
    pid = fork();
    if (pid == 0) {
        dup2(ends[1], 2);
        body();
        _exit(0);
    }
    close(ends[1]);
    while (n < sizeof text - 1 && (got = read(ends[0], text + n, sizeof text - 1 - n)) > 0) n += (size_t)got;
    text[n] = 0;
    close(ends[0]);
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(text, words),
          "a child that should abort and say \"%s\" ended with status 0x%x and said: %s", words, (unsigned)status, text);
}

static gasnett_mutex_t debug_mutex = GASNETT_MUTEX_INITIALIZER;
static gasnett_rwlock_t debug_rwlock = GASNETT_RWLOCK_INITIALIZER;
static void assert_locked(void) { gasnett_mutex_assertlocked(&debug_mutex); }
static void assert_unlocked(void) {
    gasnett_mutex_lock(&debug_mutex);
    gasnett_mutex_assertunlocked(&debug_mutex);
}
static void lock_again(void) {
    gasnett_mutex_lock(&debug_mutex);
    gasnett_mutex_lock(&debug_mutex);
}
static void unlock_open(void) {
    gasnett_mutex_t fresh;
    gasnett_mutex_init(&fresh);
    gasnett_mutex_unlock(&fresh);
}
static void assert_taken(void) {
    gasnett_rwlock_rdlock(&debug_rwlock);
    gasnett_rwlock_assertwrlocked(&debug_rwlock);
}
static void assert_shared(void) { gasnett_rwlock_assertrdlocked(&debug_rwlock); }

static void assertions(void) {
    gasnett_mutex_assertunlocked(&debug_mutex);
    gasnett_mutex_lock(&debug_mutex);
    gasnett_mutex_assertlocked(&debug_mutex);
    gasnett_mutex_unlock(&debug_mutex);
    gasnett_rwlock_assertunlocked(&debug_rwlock);
    gasnett_rwlock_rdlock(&debug_rwlock);
    gasnett_rwlock_assertlocked(&debug_rwlock);
    gasnett_rwlock_assertrdlocked(&debug_rwlock);
    gasnett_rwlock_unlock(&debug_rwlock);
    gasnett_rwlock_wrlock(&debug_rwlock);
    gasnett_rwlock_assertlocked(&debug_rwlock);
    gasnett_rwlock_assertwrlocked(&debug_rwlock);
    gasnett_rwlock_unlock(&debug_rwlock);
    aborts(assert_locked, "gasnett_mutex_assertlocked() at ");
    aborts(assert_unlocked, "gasnett_mutex_assertunlocked() at ");
    aborts(lock_again, "gasnett_mutex_lock()");
    aborts(unlock_open, "gasnett_mutex_unlock()");
    aborts(assert_taken, "gasnett_rwlock_assertwrlocked() at ");
    aborts(assert_shared, "gasnett_rwlock_assertrdlocked() at ");
}
#endif

static volatile int signals;
static void count_signal(int sig) {
    (void)sig;
    signals++;
}

/* The place of a call is memory of the caller; lengths and differences have their formats. */
static void places(void) {
    char *here = gasnett_current_loc, line[64];
    sprintf(line, "testtools.c:%d", __LINE__ - 1);
    CHECK(here && !strncmp(here, "places() at ", 12) && strstr(here, line), "the place is %s", here);
    if (here) here[0] = 'P';
    free(here);
    sprintf(line, "%" PRIdPD " %" PRIiPD " %" PRIxPD " %" PRIiSZ, (ptrdiff_t)-7, (ptrdiff_t)8, (ptrdiff_t)255, (ssize_t)-9);
    CHECK(!strcmp(line, "-7 8 ff -9"), "the formats print %s", line);
#if defined(GASNETT_THREAD_SAFE) == defined(GASNET_SEQ) || defined(GASNETT_THREAD_SINGLE) != defined(GASNET_SEQ)
    CHECK(0, "GASNETT_THREAD_SAFE or GASNETT_THREAD_SINGLE is not that of the thread mode");
#endif
}

static void the_system(void) {
    gasnett_sighandlerfn_t old = gasnett_reghandler(SIGUSR1, count_signal);
    char *page = (char *)gasnett_mmap(3 * GASNETT_PAGESIZE), *line = (char *)gasnett_malloc_aligned(256, 100);
    raise(SIGUSR1);
    CHECK(signals == 1, "the handler ran %d times", signals);
    CHECK(gasnett_reghandler(SIGUSR1, old) == count_signal, "the handler before is lost");
    CHECK(!strcmp(gasnett_signame_fromval(SIGSEGV), "SIGSEGV"), "SIGSEGV is %s", gasnett_signame_fromval(SIGSEGV));
    CHECK(!strcmp(gasnett_signame_fromval(16), "a signal") && !strcmp(gasnett_signame_fromval(64), "a signal"), "16, 64");
    CHECK(!strcmp(gasnett_signame_fromval(0), "*unknown*"), "0 is %s", gasnett_signame_fromval(0));
    CHECK(!strcmp(gasnett_signame_fromval(65), "*unknown*") && !strcmp(gasnett_signame_fromval(-1), "*unknown*"), "65, -1");
    CHECK(gasnett_cpu_count() >= 1 && gasnett_getPhysMemSz(1) > 0, "no CPU or no memory");
    CHECK(strlen(gasnett_gethostname()) > 0, "the host has no name");
    CHECK((uintptr_t)page % GASNETT_PAGESIZE == 0 && page[0] == 0 && page[3 * GASNETT_PAGESIZE - 1] == 0, "mmap");
    CHECK((uintptr_t)line % 256 == 0, "malloc_aligned");
    memset(line, 1, 100);
    gasnett_free_aligned(line);
    CHECK(gasnett_print_backtrace(2) == 0 && user_stacks == 1, "the client's stack printer ran %d times", user_stacks);
    gasnett_print_backtrace_ifenabled = print_stack;
    CHECK(gasnett_print_backtrace_ifenabled(2) == 0 && user_stacks == 2, "the assigned stack printer did not run");
    GASNETT_TRACE_PRINTF("%s", "nothing");
    GASNETT_TRACE_SETMASK(GASNETT_TRACE_GETMASK());
}

/* The attach hook and the limit of the segment are data that the client sets; the library must
 * see them. */
uint64_t gasnet_max_segsize = 1 << 20;
static void *hook_addr;
static uintptr_t hook_size;
static void hook(void *addr, uintptr_t size) {
    hook_addr = addr;
    hook_size = size;
}

int main(int argc, char **argv) {
    gasnet_client_attach_hook = hook;
    check_init("testtools", &argc, &argv);
    rounds = check_arg(argc, argv, 1, 10000);
    if (!getenv("GASNET_MAX_SEGSIZE"))
        CHECK(gasnet_getMaxLocalSegmentSize() <= 1 << 20, "gasnet_max_segsize of the client has no effect");
    check_attach(NULL, 0, 1 << 16);
    CHECK(hook_addr == check_seg[gasnet_mynode()].addr && hook_size == 1 << 16, "the attach hook was not called");
    timers();
    numbers();
    environment();
    zeros();
    families();
    heap();
#if CHECK_PAR
    assertions();
    threads();
#endif
    places();
    the_system();
    check_done();
}
