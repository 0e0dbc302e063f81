/* testhsl: handler-safe locks exclude threads and handlers from each other; trylock,
 * no-interrupt sections, and a condition variable used with the lock's own mutex. */
/* faults: skip_lock:par drop_am */
/* args: */
/* nodes: any */
/* threads: both */
#include "check.h"

#define USAGE "[0 | 14 | 15 | 16]\n" \
    "  0         everything that ends at once\n" \
    "  14 15 16  a lock, a no-interrupt section, or both are held for two seconds while messages come\n"

#define H_ADD 201
#define H_ADDED 202
#define H_SIGNAL 203
#define H_TRY 204
#define H_TRIED 205
#define THREADS 4
#define ADDITIONS 200

static gasnet_hsl_t lock = GASNET_HSL_INITIALIZER;
static gasnet_hsl_t inner;
static gasnet_hsl_t held = GASNET_HSL_INITIALIZER;
static volatile long sum, sum_inner; /* only with the lock */
static gasnett_atomic_t added = gasnett_atomic_init(0), tried = gasnett_atomic_init(0);
static volatile int refused;

/* Adds one so slowly that a missing exclusion destroys the sum. */
static void add(volatile long *to) {
    long old = *to;
    gasnett_sched_yield();
    *to = old + 1;
}

static void add_h(gasnet_token_t token) {
    gasnet_hsl_lock(&lock);
    add(&sum);
    gasnet_hsl_unlock(&lock);
    CHECK_OK(gasnet_AMReplyShort0(token, H_ADDED));
}

static void added_h(gasnet_token_t token) {
    (void)token;
    gasnet_hsl_lock(&lock);
    gasnet_hsl_lock(&inner);
    add(&sum_inner);
    gasnet_hsl_unlock(&inner);
    gasnet_hsl_unlock(&lock);
    gasnett_atomic_increment(&added, 0);
}

static void try_h(gasnet_token_t token) {
    int rc = gasnet_hsl_trylock(&held);
    CHECK(rc == GASNET_OK || rc == GASNET_ERR_NOT_READY, "gasnet_hsl_trylock: %s", gasnet_ErrorName(rc));
    if (rc == GASNET_OK) gasnet_hsl_unlock(&held);
    CHECK_OK(gasnet_AMReplyShort1(token, H_TRIED, rc));
}

static void tried_h(gasnet_token_t token, gasnet_handlerarg_t rc) {
    (void)token;
    if (rc == GASNET_ERR_NOT_READY) refused++;
    gasnett_atomic_increment(&tried, 0);
}

/* ---- the pattern of Legion: a condition of the program, with the mutex inside the lock ---- */

#if CHECK_PAR
static gasnett_cond_t condition = GASNETT_COND_INITIALIZER;
static gasnet_hsl_t guard = GASNET_HSL_INITIALIZER;
static volatile int signals, waiting, woken;
#define SIGNALS 50

static void signal_h(gasnet_token_t token) {
    (void)token;
    gasnet_hsl_lock(&guard);
    signals++;
    gasnett_cond_signal(&condition);
    gasnet_hsl_unlock(&guard);
}

static void waiter(int id) {
    int seen;
    (void)id;
    gasnet_hsl_lock(&guard);
    for (seen = 0; seen < SIGNALS; seen++) {
        waiting = 1;
        while (signals <= seen) gasnett_cond_wait(&condition, &guard.lock);
        woken = seen + 1;
    }
    gasnet_hsl_unlock(&guard);
}

static int locked_read(volatile int *word) {
    int value;
    gasnet_hsl_lock(&guard);
    value = *word;
    gasnet_hsl_unlock(&guard);
    return value;
}

static void condition_variable(void) {
    struct check_thread *t;
    int i;
    check_alive("condition variable with a lock's mutex");
    t = check_start(1, 0, waiter);
    GASNET_BLOCKUNTIL(locked_read(&waiting)); /* free while the other thread waits */
    check_barrier();
    for (i = 1; i <= SIGNALS; i++) {
        CHECK_OK(gasnet_AMRequestShort0(check_peer(), H_SIGNAL));
        if (i % 2) GASNET_BLOCKUNTIL(locked_read(&woken) >= i);
    }
    GASNET_BLOCKUNTIL(locked_read(&woken) == SIGNALS);
    check_join(t, 1);
    check_barrier();
}

/* Threads of this rank take the lock while handlers of others do. */
static void adder(int id) {
    int i;
    (void)id;
    for (i = 0; i < ADDITIONS; i++) {
        gasnet_hsl_lock(&lock);
        add(&sum);
        if (i % 8 == 0) {
            gasnet_hsl_lock(&inner);
            add(&sum_inner);
            gasnet_hsl_unlock(&inner);
        }
        gasnet_hsl_unlock(&lock);
        if (i % 4 == 0) gasnet_AMPoll();
    }
}

/* Only one of several threads obtains a lock by trylock. */
static gasnett_atomic_t owners = gasnett_atomic_init(0);

static void trier(int id) {
    int i;
    (void)id;
    for (i = 0; i < ADDITIONS; i++) {
        if (gasnet_hsl_trylock(&held) == GASNET_OK) {
            CHECK(gasnett_atomic_add(&owners, 1, 0) == 1, "two threads hold a lock that was tried");
            gasnett_sched_yield();
            gasnett_atomic_decrement(&owners, 0);
            gasnet_hsl_unlock(&held);
        }
    }
}
#else
static void signal_h(gasnet_token_t token) { (void)token; }
#endif

static void sums(void) {
    gasnet_node_t peer = check_peer();
    long want = ADDITIONS, want_inner = ADDITIONS;
    int i;
#if CHECK_PAR
    struct check_thread *t;
#endif
    check_alive("sums under locks");
    check_barrier();
#if CHECK_PAR
    t = check_start(THREADS, 0, adder);
    want += (long)THREADS * ADDITIONS;
    want_inner += (long)THREADS * ((ADDITIONS + 7) / 8);
#endif
    for (i = 0; i < ADDITIONS; i++) CHECK_OK(gasnet_AMRequestShort0(peer, H_ADD));
    GASNET_BLOCKUNTIL(gasnett_atomic_read(&added, 0) == ADDITIONS);
#if CHECK_PAR
    check_join(t, THREADS);
    t = check_start(THREADS, 0, trier);
    check_join(t, THREADS);
#endif
    check_barrier();
    gasnet_hsl_lock(&lock);
    CHECK(sum == want, "the sum is %ld instead of %ld", sum, want);
    CHECK(sum_inner == want_inner, "the inner sum is %ld instead of %ld", sum_inner, want_inner);
    gasnet_hsl_unlock(&lock);
}

static void basics(void) {
    gasnet_hsl_t many[8];
    int i, round;
    check_alive("locks one by one");
    for (round = 0; round < 3; round++) {
        for (i = 0; i < 8; i++) gasnet_hsl_init(&many[i]);
        for (i = 0; i < 8; i++) gasnet_hsl_lock(&many[i]);
        for (i = 8; i-- > 0;) gasnet_hsl_unlock(&many[i]);
        for (i = 0; i < 8; i++) CHECK_OK(gasnet_hsl_trylock(&many[i]));
        for (i = 8; i-- > 0;) gasnet_hsl_unlock(&many[i]);
        for (i = 0; i < 8; i++) gasnet_hsl_destroy(&many[i]);
    }
    for (i = 0; i < 3; i++) {
        gasnet_hold_interrupts();
        gasnet_hsl_lock(&lock); /* hold and resume have no effect while a lock is held */
        gasnet_hold_interrupts();
        gasnet_resume_interrupts();
        gasnet_hsl_unlock(&lock);
        gasnet_resume_interrupts();
        gasnet_AMPoll();
    }
}

/* A lock that this thread holds is refused to handlers that another thread runs (PAR; SEQ runs
 * none meanwhile). */
static void trylock_in_handlers(void) {
    gasnet_node_t peer = check_peer();
    check_alive("trylock in handlers");
    CHECK_OK(gasnet_AMRequestShort0(peer, H_TRY));
    GASNET_BLOCKUNTIL(gasnett_atomic_read(&tried, 0) == 1);
    CHECK(refused == 0, "a free lock was refused to a handler");
    check_barrier();
}

static void hold_for_two_seconds(int number) {
    double until;
    check_alive("two seconds");
    CHECK_OK(gasnet_AMRequestShort0(check_peer(), H_ADD));
    if (number != 14) gasnet_hold_interrupts();
    if (number != 15) gasnet_hsl_lock(&held);
    for (until = check_now() + 2e9; check_now() < until;) usleep(10000);
    if (number != 15) gasnet_hsl_unlock(&held);
    if (number != 14) gasnet_resume_interrupts();
    GASNET_BLOCKUNTIL(gasnett_atomic_read(&added, 0) > 0);
    check_barrier();
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {
        {H_ADD, add_h}, {H_ADDED, added_h}, {H_SIGNAL, signal_h}, {H_TRY, try_h}, {H_TRIED, tried_h}};
    int number;

    check_init("testhsl", &argc, &argv);
    number = (int)check_arg(argc, argv, 1, 0);
    if (argc > 2 || (number != 0 && (number < 14 || number > 16))) check_usage(USAGE);
    gasnet_hsl_init(&inner);
    check_attach(table, 5, 0);
    if (number) {
        hold_for_two_seconds(number);
    } else {
        basics();
        trylock_in_handlers();
        sums();
#if CHECK_PAR
        condition_variable();
#endif
    }
    gasnet_hsl_destroy(&inner);
    check_done();
}
