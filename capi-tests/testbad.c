/* testbad: wrong calls, one per run, and the library's reaction to each. The reaction is an
 * error code, or one fatal message that names the function, the value and the limit.
 *
 * `testbad -list` prints, without a job, one line per case, with tabs between
 *   its name | both, par or seq | passes or dies | words separated by |
 *
 * A case that passes ends with 0 and the line `testbad: PASS`; a case that dies ends with
 * another code. Each of the words must occur in a line of the output that begins with ***. A
 * word in braces stands for a number known only in the job; there the program prints the words
 * with the numbers, as `testbad: expects: word|word`. */
/* args: init_twice */
/* nodes: any */
/* threads: both */
#define GASNET_DEBUGMALLOC 1
#include "check.h"

#include <gasnet_coll.h>
#include <gasnet_vis.h>
#include <sys/wait.h>

/* The state of the job in which a case runs. */
enum when { BEFORE_INIT, BEFORE_ATTACH, ATTACHED, CHECKED /* attached, with debug checks on */ };

/* The expected end. PASSES: the case checks codes itself. DIES: rank 0 alone runs it, and does
 * not return. */
enum outcome { PASSES, DIES };

struct testcase {
    const char *name, *threads;
    enum when when;
    enum outcome outcome;
    const char *words;
    void (*run)(void);
};

#define H_NOTHING 201
#define H_REQUEST 202
#define H_REPLY_TWICE 203
#define H_KEEP_TOKEN 204
#define H_REPLY 205
#define H_ANSWERING 206
#define H_REQUESTING 207
#define H_LONG_REPLY 208
#define H_RESERVED_REPLY 209
#define H_WAITING 210
#define H_POLLING 211
#define H_LOCKING 212
#define H_REPLY_LOCKED 213
#define H_PUTTING 214
#define H_REGION 215
#define H_NOTIFYING 216
#define H_SWALLOW 217
#define H_NULL_REPLY 218
#define H_LEAVING 219
#define H_NO_HANDLER 249

/* A rank that no job has. */
#define NO_NODE 1000000
#define NO_NODE_WORD "1000000"

static gasnet_token_t kept;
static volatile int came;
static char buffer[256];
static uintptr_t asked;
/* What a case that begins before gasnet_init does once the segments are attached. */
static void (*later)(void);

/* ---- handlers ---- */

static void nothing_h(gasnet_token_t token) { (void)token; }
static void request_h(gasnet_token_t token) {
    (void)token;
    gasnet_AMRequestShort0(0, H_NOTHING);
}
static void reply_twice_h(gasnet_token_t token) {
    gasnet_AMReplyShort0(token, H_NOTHING);
    gasnet_AMReplyShort0(token, H_NOTHING);
}
static void keep_token_h(gasnet_token_t token) {
    kept = token;
    came = 1;
}
static void reply_h(gasnet_token_t token) { gasnet_AMReplyShort0(token, H_ANSWERING); }
static void answering_h(gasnet_token_t token) { gasnet_AMReplyShort0(token, H_NOTHING); }
static void requesting_h(gasnet_token_t token) { gasnet_AMReplyShort0(token, H_REQUEST); }
static void long_reply_h(gasnet_token_t token) {
    gasnet_AMReplyMedium0(token, H_REPLY, malloc(gasnet_AMMaxMedium() + 1), gasnet_AMMaxMedium() + 1);
}

static void reserved_reply_h(gasnet_token_t token) { gasnet_AMReplyShort0(token, 0); }
static void waiting_h(gasnet_token_t token) {
    static volatile int never;
    (void)token;
    GASNET_BLOCKUNTIL(never);
}

static void polling_h(gasnet_token_t token) {
    int round;
    for (round = 0; round < 3; round++) CHECK(gasnet_AMPoll() == GASNET_OK, "gasnet_AMPoll failed in a handler");
    gasnet_AMReplyShort0(token, H_NOTHING);
    came = 1;
}

static gasnet_hsl_t lock = GASNET_HSL_INITIALIZER, inner = GASNET_HSL_INITIALIZER;

static void locking_h(gasnet_token_t token) {
    (void)token;
    gasnet_hsl_lock(&lock);
}
static void reply_locked_h(gasnet_token_t token) {
    gasnet_hsl_lock(&lock);
    gasnet_AMReplyShort0(token, H_NOTHING);
}
static void putting_h(gasnet_token_t token) {
    (void)token;
    gasnet_put_val(0, check_seg[0].addr, 1, 1);
}
static void notifying_h(gasnet_token_t token) {
    (void)token;
    gasnet_barrier_notify(0, 0);
}
static void leaving_h(gasnet_token_t token) {
    (void)token;
#if CHECK_PAR
    pthread_exit(NULL);
#endif
}
static void swallow_h(gasnet_token_t token, void *bytes, size_t n) { (void)token, (void)bytes, (void)n; }
static void null_reply_h(gasnet_token_t token) { gasnet_AMReplyMedium0(token, H_SWALLOW, NULL, 8); }
static void region_h(gasnet_token_t token) {
    (void)token;
    gasnet_begin_nbi_accessregion();
}

static gasnet_handlerentry_t handlers[] = {{H_NOTHING, nothing_h},         {H_REQUEST, request_h},
                                           {H_REPLY_TWICE, reply_twice_h}, {H_KEEP_TOKEN, keep_token_h},
                                           {H_REPLY, reply_h},             {H_ANSWERING, answering_h},
                                           {H_REQUESTING, requesting_h},   {H_LONG_REPLY, long_reply_h},
                                           {H_RESERVED_REPLY, reserved_reply_h},
                                           {H_WAITING, waiting_h},         {H_POLLING, polling_h},
                                           {H_LOCKING, locking_h},         {H_REPLY_LOCKED, reply_locked_h},
                                           {H_PUTTING, putting_h},         {H_REGION, region_h},
                                           {H_NOTIFYING, notifying_h},     {H_SWALLOW, swallow_h},
                                           {H_NULL_REPLY, null_reply_h},
                                           {H_LEAVING, leaving_h}};
#define HANDLERS ((int)(sizeof handlers / sizeof *handlers))

/* The end of rank 0's segment, with `n` bytes inside. */
static char *at_end(size_t n) { return check_at(0, check_seg[0].size - n); }

/* Sends a message to this rank and waits for its handler. */
static void send(gasnet_handler_t handler) {
    gasnet_AMRequestShort0(gasnet_mynode(), handler);
    GASNET_BLOCKUNTIL(came);
}

/* ---- codes ---- */

static void poll_in_handler(void) { send(H_POLLING); }

static void init_twice(void) { CHECK(gasnet_init(NULL, NULL) == GASNET_ERR_NOT_INIT, "gasnet_init was accepted"); }
static void attach_twice(void) {
    CHECK(gasnet_attach(NULL, 0, 0, 0) == GASNET_ERR_NOT_INIT, "gasnet_attach was accepted");
}
static void attach_early(void) {
    CHECK(gasnet_attach(NULL, 0, 0, 0) == GASNET_ERR_NOT_INIT, "gasnet_attach was accepted before gasnet_init");
}

static void refused(gasnet_handlerentry_t *table, int n, uintptr_t bytes) {
    int rc = gasnet_attach(table, n, bytes, 0);
    CHECK(rc == GASNET_ERR_BAD_ARG, "gasnet_attach returned %s", gasnet_ErrorName(rc));
}

static void attach_unaligned(void) { refused(NULL, 0, GASNET_PAGESIZE + 1); }
static void attach_too_large(void) { refused(NULL, 0, asked); }
static void attach_null(void) { refused(NULL, 3, 0); }
static void attach_negative(void) { refused(handlers, -1, 0); }
static void handler_taken(void) {
    gasnet_handlerentry_t table[] = {{H_NOTHING, nothing_h}, {H_NOTHING, request_h}};
    refused(table, 2, 0);
}
static void handler_reserved(void) {
    gasnet_handlerentry_t table[] = {{127, nothing_h}};
    refused(table, 1, 0);
}
static void handler_null(void) {
    gasnet_handlerentry_t table[] = {{H_NOTHING, NULL}};
    refused(table, 1, 0);
}
static void handlers_many(void) {
    gasnet_handlerentry_t table[129];
    int i;
    for (i = 0; i < 129; i++) {
        table[i].index = 0;
        table[i].fnptr = handlers[0].fnptr;
    }
    refused(table, 129, 0);
}
static void waitmode(void) { CHECK(gasnet_set_waitmode(99) == GASNET_ERR_BAD_ARG, "mode 99 was accepted"); }
static void seginfo_negative(void) {
    gasnet_seginfo_t one;
    CHECK(gasnet_getSegmentInfo(&one, -1) == GASNET_ERR_BAD_ARG, "-1 rows were accepted");
    CHECK(gasnet_getSegmentInfo(NULL, 1) == GASNET_ERR_BAD_ARG, "a null table was accepted");
}

/* A forked child that calls the library gets a message, and the job goes on without it. */
static void child(void (*body)(void)) {
    int status = 0;
    pid_t pid;
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        body();
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 1,
          "the child ended with status 0x%x", (unsigned)status);
    check_barrier();
}

static void poll_in_child(void) { gasnet_AMPoll(); }
static void sync_in_child(void) { gasnet_wait_syncnbi_all(); }
static void sync_none_in_child(void) { gasnet_wait_syncnb(GASNET_INVALID_HANDLE); }
static void put_in_child(void) { gasnet_put_val(0, check_at(0, 0), 77, 1); }
static void init_in_child(void) { gasnet_init(NULL, NULL); }
static void exit_in_child(void) { gasnet_exit(1); }
static void child_polls(void) { child(poll_in_child); }
static void child_syncs(void) { child(sync_in_child); }
static void child_syncs_none(void) { child(sync_none_in_child); }
static void child_puts(void) {
    child(put_in_child);
    CHECK(gasnet_mynode() != 0 || *check_at(0, 0) != 77, "the child's put arrived");
}
static void child_inits(void) { child(init_in_child); }
static void child_leaves(void) { child(exit_in_child); }

/* A forked child may end in any manner. */
static void child_exits(void) {
    int status = 0;
    pid_t pid;
    fflush(NULL);
    pid = fork();
    if (pid == 0) exit(7);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7,
          "the child ended with status 0x%x", (unsigned)status);
    check_barrier();
}

/* ---- nodes out of range ---- */

static void put_node(void) { gasnet_put(NO_NODE, buffer, buffer, 8); }
static void get_node(void) { gasnet_get(buffer, NO_NODE, buffer, 8); }
static void put_next_node(void) { gasnet_put(gasnet_nodes(), check_at(0, 0), buffer, 8); }
static void put_nb_node(void) { gasnet_wait_syncnb(gasnet_put_nb_bulk(NO_NODE, buffer, buffer, 8)); }
static void memset_node(void) { gasnet_memset(NO_NODE, buffer, 0, 8); }
static void put_val_node(void) { gasnet_put_val(NO_NODE, buffer, 0, 8); }
static void get_val_node(void) { gasnet_get_val(NO_NODE, buffer, 8); }
static void short_node(void) { gasnet_AMRequestShort0(NO_NODE, H_NOTHING); }
static void medium_node(void) { gasnet_AMRequestMedium0(NO_NODE, H_NOTHING, buffer, 8); }
static void long_node(void) { gasnet_AMRequestLong0(NO_NODE, H_NOTHING, buffer, 8, check_at(0, 0)); }

/* ---- addresses outside the segment ---- */

/* A rank's own variables: the specification does not allow it, but clients do it. */
static void own_memory(void) {
    static char mine[64];
    char back[8];
    const gasnet_node_t me = gasnet_mynode();
    gasnet_memvec_t to[2] = {{check_at(me, 0), 4}, {mine + 24, 4}}, from[1] = {{(char *)"vectored", 8}};
    size_t stride[1] = {16}, local_stride[1] = {4}, count[2] = {4, 2};
    void *into[1] = {back}, *parts[2] = {check_at(me, 0), mine + 24};
    gasnet_put(me, mine, (char *)"putbytes", 8);
    CHECK(!memcmp(mine, "putbytes", 8), "a put to a variable of one's own");
    gasnet_wait_syncnb(gasnet_get_nb_bulk(back, me, mine, 8));
    CHECK(!memcmp(back, "putbytes", 8), "a get from a variable of one's own");
    gasnet_put_nbi_bulk(me, mine + 8, (char *)"implicit", 8);
    gasnet_memset_nbi(me, mine + 16, 7, 8);
    gasnet_wait_syncnbi_all();
    CHECK(!memcmp(mine + 8, "implicit\7\7\7\7\7\7\7\7", 16), "an implicit put and memset to one's own");
    gasnet_put_val(me, mine + 16, 0x5a, 1);
    CHECK(gasnet_get_val(me, mine + 16, 1) == 0x5a, "a value of one's own");
    gasnet_putv_bulk(me, 2, to, 1, from);
    CHECK(!memcmp(check_at(me, 0), "vect", 4) && !memcmp(mine + 24, "ored", 4), "a putv to both");
    gasnet_puts_bulk(me, mine + 32, stride, (char *)"strideds", local_stride, count, 1);
    CHECK(!memcmp(mine + 32, "stri\0\0\0\0\0\0\0\0\0\0\0\0deds", 20), "a puts to one's own");
    gasnet_geti_nbi_bulk(1, into, 8, me, 2, parts, 4);
    gasnet_wait_syncnbi_gets();
    CHECK(!memcmp(back, "vectored", 8), "a geti from both");
}
/* With checks, the specification applies. */
static void own_outside(void) { gasnet_put(gasnet_mynode(), buffer + 8, buffer, 8); }
/* A rank's own variable is not another rank's. */
static void others_memory(void) { gasnet_put_bulk(1, buffer + 8, buffer, 8); }
static void others_putv(void) {
    gasnet_memvec_t to[1] = {{buffer + 8, 8}}, from[1] = {{buffer, 8}};
    gasnet_putv_bulk(1, 1, to, 1, from);
}
static void own_null(void) { gasnet_put_bulk(gasnet_mynode(), NULL, buffer, 8); }

static void put_outside(void) { gasnet_put(0, at_end(4), buffer, 8); }
static void put_before(void) { gasnet_put(0, check_at(0, 0) - 8, buffer, 16); }
static void put_wraps(void) {
    volatile size_t n = ~(size_t)0;
    gasnet_put_bulk(0, check_at(0, 0), buffer, n);
}
static void put_bulk_outside(void) { gasnet_put_bulk(0, at_end(8), buffer, 9); }
static void put_nbi_outside(void) { gasnet_put_nbi(0, at_end(0), buffer, 1); }
static void get_outside(void) { gasnet_get(buffer, 0, at_end(4), 8); }
static void get_nb_outside(void) { gasnet_wait_syncnb(gasnet_get_nb_bulk(buffer, 0, at_end(4), 8)); }
static void memset_outside(void) { gasnet_memset(0, at_end(4), 1, 8); }
static void put_val_outside(void) { gasnet_put_val(0, at_end(4), 1, 8); }
static void get_val_outside(void) { gasnet_get_val(0, at_end(4), 8); }
/* The second of two pieces is outside; the empty third may be outside. */
static void putv_outside(void) {
    gasnet_memvec_t dst[3] = {{at_end(64), 8}, {at_end(4), 8}, {NULL, 0}}, src[1] = {{buffer, 16}};
    gasnet_putv_bulk(0, 3, dst, 1, src);
}
static void geti_outside(void) {
    void *src[2] = {at_end(64), at_end(4)}, *dst[1] = {buffer};
    gasnet_wait_syncnb(gasnet_geti_nb_bulk(1, dst, 16, 0, 2, src, 8));
}
/* Three elements of 8 bytes; the last begins 4 bytes before the end. */
static void puts_outside(void) {
    size_t strides[1] = {16}, count[2] = {8, 3};
    gasnet_puts_nbi_bulk(0, at_end(36), strides, buffer, strides, count, 1);
}
static void gets_too_large(void) {
    size_t strides[2] = {16, (size_t)1 << 62}, count[3] = {8, 3, 9};
    gasnet_gets_bulk(buffer, strides, 0, at_end(64), strides, count, 2);
}
static void puts_levels(void) {
    size_t strides[1] = {16}, count[2] = {8, 3};
    gasnet_puts_bulk(0, at_end(64), strides, buffer, strides, count, (size_t)-1);
}
static void putv_totals(void) {
    gasnet_memvec_t dst[2] = {{at_end(64), 8}, {at_end(32), 8}}, src[2] = {{buffer, 14}, {buffer + 20, 1}};
    gasnet_wait_syncnb(gasnet_putv_nb_bulk(0, 2, dst, 2, src));
}
static void geti_totals(void) {
    void *src[2] = {at_end(64), at_end(32)}, *dst[3] = {buffer, buffer + 8, buffer + 16};
    gasnet_geti_bulk(3, dst, 8, 0, 2, src, 8);
}
static void puts_node(void) {
    size_t count[1] = {8};
    gasnet_puts_bulk(NO_NODE, at_end(8), NULL, buffer, NULL, count, 0);
}
static void long_outside(void) { gasnet_AMRequestLong0(0, H_NOTHING, buffer, 8, at_end(4)); }
static void async_outside(void) { gasnet_AMRequestLongAsync0(0, H_NOTHING, buffer, 8, at_end(4)); }

/* ---- too long ---- */

static void medium_long(void) {
    gasnet_AMRequestMedium0(0, H_NOTHING, malloc(gasnet_AMMaxMedium() + 1), gasnet_AMMaxMedium() + 1);
}
static void reply_long(void) { send(H_LONG_REPLY); }
static void put_val_long(void) { gasnet_put_val(0, check_at(0, 0), 0, 9); }
static void put_val_none(void) { gasnet_put_val(0, check_at(0, 0), 0, 0); }
static void get_val_none(void) { gasnet_get_val(0, check_at(0, 0), 0); }
static void get_val_long(void) { gasnet_get_val(0, check_at(0, 0), 9); }
static void arguments_many(void) { gasnet_AMRequestShort(0, H_NOTHING, 17); }

/* ---- messages where none may be sent ---- */

static void request_in_request(void) { send(H_REQUEST); }
static void request_in_reply(void) { send(H_REQUESTING); }
static void reply_twice(void) { send(H_REPLY_TWICE); }
static void reply_in_reply(void) { send(H_REPLY); }
static void reply_later(void) {
    send(H_KEEP_TOKEN);
    gasnet_AMReplyShort0(kept, H_NOTHING);
}
static void no_handler(void) { send(H_NO_HANDLER); }
static void request_reserved(void) { gasnet_AMRequestShort0(0, 64); }
static void reply_reserved(void) { send(H_RESERVED_REPLY); }
static void wait_in_handler(void) { send(H_WAITING); }

/* ---- too early ---- */

static void early_put(void) { gasnet_put(0, buffer, buffer, 8); }
static void early_get(void) { gasnet_get(buffer, 0, buffer, 8); }
static void early_short(void) { gasnet_AMRequestShort0(0, H_NOTHING); }
static void early_poll(void) { gasnet_AMPoll(); }
static void early_barrier(void) { gasnet_barrier_notify(0, 0); }
static void early_seginfo(void) {
    gasnet_seginfo_t one;
    gasnet_getSegmentInfo(&one, 1);
}
static void very_early_mynode(void) { printf("%d\n", (int)gasnet_mynode()); }
static void very_early_put(void) { gasnet_put(0, buffer, buffer, 8); }
static void very_early_limit(void) { printf("%lu\n", (unsigned long)gasnet_getMaxLocalSegmentSize()); }

/* ---- order of calls ---- */

static void wait_alone(void) { gasnet_barrier_wait(0, 0); }
static void try_alone(void) { gasnet_barrier_try(0, 0); }
static void notify_twice(void) {
    gasnet_barrier_notify(0, 0);
    gasnet_barrier_notify(0, 0);
}
static void notify_in_handler(void) {
    gasnet_barrier_notify(0, 0);
    send(H_NOTIFYING);
}
static void region_twice(void) {
    gasnet_begin_nbi_accessregion();
    gasnet_begin_nbi_accessregion();
}
static void region_end(void) { gasnet_wait_syncnb(gasnet_end_nbi_accessregion()); }
static void sync_in_region(void) {
    gasnet_begin_nbi_accessregion();
    gasnet_wait_syncnbi_puts();
}
static void handle(void) { gasnet_wait_syncnb((gasnet_handle_t)(uintptr_t)0x7654321); }
/* Its bits look like the leaf of an operation. */
static void handle_of_leaf(void) {
    gasnet_handle_t h = (gasnet_handle_t)(uintptr_t)0x55d080004560;
    while (gasnet_try_syncnb(h) != GASNET_OK) continue;
}

/* ---- locks without debug checks ---- */

static void lock_destroy_locked(void) {
    gasnet_hsl_lock(&lock);
    gasnet_hsl_destroy(&lock);
}

/* A lock that is locked before gasnet_init is unlocked after it, in any thread mode. */
static void lock_early_later(void) {
    gasnet_hsl_lock(&inner);
    gasnet_hsl_unlock(&inner);
    gasnet_hsl_unlock(&lock);
    gasnet_hsl_lock(&lock);
    gasnet_hsl_unlock(&lock);
    gasnet_hsl_destroy(&lock);
}
static void lock_early(void) {
    gasnet_hsl_lock(&inner);
    gasnet_hsl_unlock(&inner);
    CHECK_OK(gasnet_hsl_trylock(&lock));
    later = lock_early_later;
}

/* ---- what only debug checks notice ---- */

static void hold_twice(void) {
    gasnet_hold_interrupts();
    gasnet_hold_interrupts();
}
static void resume_alone(void) { gasnet_resume_interrupts(); }
static void hold_poll(void) {
    gasnet_hold_interrupts();
    gasnet_AMPoll();
}
static void lock_init_twice(void) { gasnet_hsl_init(&lock); }
static void lock_init_again(void) {
    static gasnet_hsl_t one;
    gasnet_hsl_init(&one);
    gasnet_hsl_init(&one);
}
static void lock_destroy_twice(void) {
    gasnet_hsl_destroy(&lock);
    gasnet_hsl_destroy(&lock);
}
static void lock_destroy_held(void) {
    gasnet_hsl_lock(&lock);
    gasnet_hsl_destroy(&lock);
}
static void lock_raw(void) {
    static gasnet_hsl_t none;
    gasnet_hsl_lock(&none);
}
static void lock_copy(void) {
    static gasnet_hsl_t one, two;
    gasnet_hsl_init(&one);
    memcpy(&two, &one, sizeof two);
    gasnet_hsl_lock(&two);
}
static void lock_unlocked(void) { gasnet_hsl_unlock(&lock); }
static void lock_order(void) {
    gasnet_hsl_lock(&lock);
    gasnet_hsl_lock(&inner);
    gasnet_hsl_unlock(&lock);
}
static void lock_twice(void) {
    gasnet_hsl_lock(&lock);
    gasnet_hsl_lock(&lock);
}
static void trylock_twice(void) {
    CHECK_OK(gasnet_hsl_trylock(&lock));
    gasnet_hsl_trylock(&lock);
}
static void lock_poll(void) {
    gasnet_hsl_lock(&lock);
    gasnet_AMPoll();
}
static void lock_request(void) {
    gasnet_hsl_lock(&lock);
    gasnet_AMRequestShort0(0, H_NOTHING);
}
static void lock_put(void) {
    gasnet_hsl_lock(&lock);
    gasnet_put(0, check_at(0, 0), buffer, 8);
}
static void lock_barrier(void) {
    gasnet_hsl_lock(&lock);
    gasnet_barrier_notify(0, 0);
}
/* A wait that has nothing to wait for, too. */
static void lock_wait(void) {
    gasnet_hsl_lock(&lock);
    gasnet_wait_syncnb(GASNET_INVALID_HANDLE);
}
static void lock_left(void) { send(H_LOCKING); }
static void lock_reply(void) { send(H_REPLY_LOCKED); }
static void handler_puts(void) { send(H_PUTTING); }
static void handler_region(void) { send(H_REGION); }
static void handler_polls(void) { send(H_POLLING); }

static void sync_twice(void) {
    gasnet_handle_t h = gasnet_put_nb(0, check_at(0, 0), buffer, 8);
    gasnet_wait_syncnb(h);
    gasnet_wait_syncnb(h);
}
static void sync_pair(void) {
    gasnet_handle_t h[2];
    h[0] = h[1] = gasnet_get_nb_bulk(buffer, 0, check_at(0, 0), 100);
    gasnet_wait_syncnb_all(h, 2);
}
static void sync_region_twice(void) {
    gasnet_handle_t h;
    gasnet_begin_nbi_accessregion();
    gasnet_put_nbi(0, check_at(0, 0), buffer, 8);
    h = gasnet_end_nbi_accessregion();
    gasnet_wait_syncnb(h);
    gasnet_try_syncnb(h);
}
static void value_twice(void) {
    gasnet_valget_handle_t h = gasnet_get_nb_val(0, check_at(0, 0), 4);
    gasnet_wait_syncnb_valget(h);
    gasnet_wait_syncnb_valget(h);
}
static void put_unaligned(void) { gasnet_put(0, check_at(0, 4), buffer, 8); }
static void get_unaligned(void) {
    static double to[4];
    gasnet_get_nbi((char *)to + 2, 0, check_at(0, 0), 4);
}
static void val_unaligned(void) { gasnet_put_val(0, check_at(0, 1), 1, 2); }

/* Runs a function in a thread of its own and waits for its end. */
static void *body(void *function) {
    (*(void (**)(void))function)();
    return NULL;
}
static void in_thread(void (*function)(void)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, &function) == 0) pthread_join(thread, NULL);
}
static void poll(void) { gasnet_AMPoll(); }
static void second_thread(void) { in_thread(poll); }
static void unlock(void) { gasnet_hsl_unlock(&lock); }
static void lock_of_other(void) {
    gasnet_hsl_lock(&lock);
    in_thread(unlock);
}
static gasnet_handle_t of_other;
static void sync_other(void) { gasnet_wait_syncnb(of_other); }
static void sync_of_other(void) {
    of_other = gasnet_put_nb_bulk(0, check_at(0, 0), buffer, 8);
    in_thread(sync_other);
}

/* ---- debug malloc ---- */

static void heap_overrun(void) {
    volatile char *p = (char *)gasnett_debug_malloc(24);
    p[24] = 1;
    gasnett_debug_free((void *)p);
}
static void heap_underrun(void) {
    volatile char *p = (char *)gasnett_debug_malloc(24);
    p[-1] = 1;
    gasnett_debug_memcheck_all();
}
static void heap_free_twice(void) {
    volatile char *p = (char *)gasnett_debug_malloc(24);
    gasnett_debug_free((void *)p);
    gasnett_debug_free((void *)p);
}
static void heap_free_inside(void) { gasnett_debug_free((char *)gasnett_debug_malloc(24) + 8); }
static void heap_write_freed(void) {
    char *volatile p;
    setenv("GASNET_MALLOC_SCANFREED", "1", 1);
    p = (char *)gasnett_debug_malloc(24);
    gasnett_debug_free(p);
    p[3] ^= 1;
    gasnett_debug_memcheck_all();
}

/* ---- local addresses that are null ---- */

static gasnet_memvec_t no_piece[1] = {{NULL, 8}};
static void *no_address[1];
static size_t two_rows[2] = {4, 2}, row_stride[1] = {16};

static void put_from_null(void) { gasnet_put_bulk(1, check_at(1, 0), NULL, 8); }
static void get_to_null(void) { gasnet_wait_syncnb(gasnet_get_nb_bulk(NULL, 1, check_at(1, 0), 8)); }
static void medium_from_null(void) { gasnet_AMRequestMedium0(1, H_NOTHING, NULL, 8); }
static void long_from_null(void) { gasnet_AMRequestLong0(1, H_NOTHING, NULL, 8, check_at(1, 0)); }
static void reply_from_null(void) { send(H_NULL_REPLY); }
static void putv_from_null(void) {
    gasnet_memvec_t to[1] = {{check_at(1, 0), 8}};
    gasnet_putv_bulk(1, 1, to, 1, no_piece);
}
static void getv_without_list(void) {
    gasnet_memvec_t from[1] = {{check_at(1, 0), 8}};
    gasnet_getv_bulk(1, NULL, 1, 1, from);
}
static void geti_to_null(void) {
    void *from[1] = {check_at(1, 0)};
    gasnet_geti_nbi_bulk(1, no_address, 8, 1, 1, from, 8);
}
static void puti_without_list(void) {
    void *to[1] = {check_at(1, 0)};
    gasnet_puti_bulk(1, 1, to, 8, 1, NULL, 8);
}
static void puts_from_null(void) {
    gasnet_puts_bulk(1, check_at(1, 0), row_stride, NULL, row_stride, two_rows, 1);
}
static void puts_without_strides(void) {
    gasnet_puts_bulk(1, check_at(1, 0), row_stride, buffer, NULL, two_rows, 1);
}
static void gets_without_counts(void) {
    gasnet_gets_bulk(buffer, row_stride, 1, check_at(1, 0), row_stride, NULL, 1);
}
/* Without bytes an address may be null. */
static void nothing_from_null(void) {
    void *to[1] = {check_at(1, 0)};
    gasnet_put_bulk(1, check_at(1, 0), NULL, 0);
    gasnet_get_bulk(NULL, 1, check_at(1, 0), 0);
    gasnet_putv_bulk(1, 0, NULL, 0, NULL);
    gasnet_puti_bulk(1, 1, to, 0, 1, no_address, 0);
    gasnet_geti_bulk(0, NULL, 8, 1, 0, NULL, 8);
    CHECK_OK(gasnet_AMRequestMedium0(check_peer(), H_SWALLOW, NULL, 0));
    CHECK_OK(gasnet_AMRequestLong0(check_peer(), H_SWALLOW, NULL, 0, check_at(check_peer(), 0)));
    check_barrier();
}

/* Legal calls pass with checks on. They are sections and locks in any legal order, and hold and
 * resume where they have no effect. They are also lists of handles, and bulk forms at any address.
 * A lock may be initialised, destroyed and initialised again. */
static void checks_allow(void) {
    gasnet_handle_t h[3];
    gasnet_seginfo_t first;
    gasnet_hsl_t one;
    int round;
    memset(&one, 0, sizeof one);
    for (round = 0; round < 3; round++) {
        gasnet_hsl_init(&one);
        gasnet_hold_interrupts();
        CHECK_OK(gasnet_getSegmentInfo(&first, 1));
        gasnet_hsl_lock(&one);
        gasnet_hsl_lock(&lock);
        gasnet_hold_interrupts();
        CHECK_OK(gasnet_getSegmentInfo(&first, 1));
        CHECK(gasnet_mynode() < gasnet_nodes(), "wrong answers");
        gasnet_hsl_unlock(&lock);
        gasnet_resume_interrupts();
        gasnet_hsl_unlock(&one);
        gasnet_resume_interrupts();
        gasnet_hsl_destroy(&one);
        h[0] = gasnet_put_nb_bulk(0, check_at(0, 65), buffer, 8);
        h[1] = GASNET_INVALID_HANDLE;
        h[2] = gasnet_get_nb(buffer, 0, check_at(0, 128), 7);
        gasnet_wait_syncnb_some(h, 3);
        gasnet_wait_syncnb_all(h, 3);
        CHECK_OK(gasnet_try_syncnb_all(h, 3));
        gasnet_put_bulk(0, check_at(0, 3), buffer + 1, 8);
        CHECK_OK(gasnet_AMRequestShort0(check_peer(), H_NOTHING));
        check_barrier();
    }
}

#if CHECK_PAR
static pthread_barrier_t meeting;
static void one_of_many(int id) {
    (void)id;
    gasnet_AMPoll();
    pthread_barrier_wait(&meeting);
}
#define TOO_MANY (GASNETT_MAX_THREADS + 4)
static void threads_many(void) {
    pthread_barrier_init(&meeting, NULL, TOO_MANY);
    check_join(check_start(TOO_MANY, 0, one_of_many), TOO_MANY);
}
static void one_that_asks(int id) {
    (void)id;
    CHECK(gasnet_mynode() < gasnet_nodes() && gasnet_AMMaxMedium() >= 512, "wrong answers");
    pthread_barrier_wait(&meeting);
}
static void threads_ask(void) {
    pthread_barrier_init(&meeting, NULL, TOO_MANY);
    check_join(check_start(TOO_MANY, 0, one_that_asks), TOO_MANY);
}
static void one_that_locks(int id) {
    (void)id;
    gasnet_hsl_lock(&lock);
    gasnet_hsl_unlock(&lock);
    pthread_barrier_wait(&meeting);
}
static void threads_lock(void) {
    pthread_barrier_init(&meeting, NULL, TOO_MANY);
    check_join(check_start(TOO_MANY, 0, one_that_locks), TOO_MANY);
}

/* One thread after the other, more than may live at once. */
static void in_turn(void (*body)(int)) {
    int i;
    for (i = 0; i < TOO_MANY; i++) {
        check_alive("threads in turn");
        check_join(check_start(1, i, body), 1);
    }
}
static void one_that_polls(int id) {
    (void)id;
    gasnet_AMPoll();
}

/* The program has all thread-specific keys. */
static void threads_without_keys_later(void) { in_turn(one_that_polls); }
static void threads_without_keys(void) {
    pthread_key_t key;
    int keys = 0;
    while (!pthread_key_create(&key, NULL)) keys++;
    CHECK(keys > 0, "no thread-specific key");
    later = threads_without_keys_later;
}

/* The destructors of a thread call the library, to the last. */
static pthread_key_t end_key;
static void polls_at_end(void *round) {
    gasnet_AMPoll();
    if ((uintptr_t)round < 4) pthread_setspecific(end_key, (char *)round + 1);
}
static void one_that_polls_at_end(int id) {
    one_that_polls(id);
    pthread_setspecific(end_key, (void *)(uintptr_t)1);
}
static void threads_poll_at_end(void) {
    CHECK(!pthread_key_create(&end_key, polls_at_end), "no thread-specific key");
    in_turn(one_that_polls_at_end);
}

/* One thread index, that of the main thread, which sends messages; others put and get, which takes
 * no index where the network moves the bytes at once. */
static volatile int sends;
static void one_that_puts(int id) {
    gasnet_node_t to = gasnet_nodes() - 1;
    gasnet_register_value_t i, value;
    for (i = 0; sends; i++) {
        gasnet_put_val(to, check_at(to, 64 * (size_t)id), i << 8 | (gasnet_register_value_t)id, 8);
        value = gasnet_get_val(to, check_at(to, 64 * (size_t)id), 8);
        CHECK(value == (i << 8 | (gasnet_register_value_t)id), "thread %d: 0x%lx in round %lu", id, (unsigned long)value,
              (unsigned long)i);
    }
}
static void threads_one_index_later(void) {
    if (gasnet_mynode() == 0) {
        static char body[3000];
        struct check_thread *putters;
        int i;
        sends = 1;
        putters = check_start(2, 0, one_that_puts);
        for (i = 0; i < 40000; i++) CHECK_OK(gasnet_AMRequestMedium0(check_peer(), H_SWALLOW, body, (size_t)i * 61 % sizeof body));
        sends = 0;
        check_join(putters, 2);
    }
    check_barrier();
}
static void threads_one_index(void) {
    setenv("GASNET_MAX_THREADS", "1", 1);
    later = threads_one_index_later;
}

/* A section that begins while no thread index is free, and ends when one is. */
static volatile int stage;
static void until_stage(int number) {
    while (stage != number) usleep(1000);
}
static void one_with_the_index(int id) {
    (void)id;
    gasnet_hsl_lock(&lock);
    stage = 1;
    until_stage(2);
    gasnet_hsl_unlock(&lock);
}
static void one_without_index(int id) {
    (void)id;
    until_stage(1);
    gasnet_hold_interrupts();
    stage = 2;
    until_stage(3);
    gasnet_resume_interrupts();
}
static void section_without_index_later(void) {
    struct check_thread *with = check_start(1, 0, one_with_the_index), *without = check_start(1, 1, one_without_index);
    check_join(with, 1);
    stage = 3;
    check_join(without, 1);
}
static void section_without_index(void) {
    setenv("GASNET_MAX_THREADS", "2", 1);
    setenv("GASNET_DEBUG_CHECKS", "1", 1);
    later = section_without_index_later;
}

static void one_that_leaves(int id) {
    (void)id;
    gasnet_AMRequestShort0(0, H_LEAVING);
    for (;;) gasnet_AMPoll();
}
static void thread_leaves_handler(void) {
    check_join(check_start(1, 0, one_that_leaves), 1);
    GASNET_BLOCKUNTIL(came);
}
#else
#define threads_many NULL
#define threads_ask NULL
#define threads_lock NULL
#define threads_without_keys NULL
#define threads_poll_at_end NULL
#define threads_one_index NULL
#define section_without_index NULL
#define thread_leaves_handler NULL
#endif

/* ---- collectives ---- */

#define COLL (GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC | GASNET_COLL_LOCAL)
static void coll_before_init(void) { gasnet_coll_broadcast(GASNET_TEAM_ALL, buffer, 0, buffer, 8, COLL); }
static void coll_root(void) {
    gasnet_coll_init(NULL, 0, NULL, 0, 0);
    gasnet_coll_scatter(GASNET_TEAM_ALL, buffer, NO_NODE, buffer, 8, COLL);
}
static void coll_team(void) {
    gasnet_coll_init(NULL, 0, NULL, 0, 0);
    gasnet_coll_gather_all((gasnet_team_handle_t)77, buffer, buffer, 8, COLL);
}
static void coll_flags(void) {
    gasnet_coll_init(NULL, 0, NULL, 0, 0);
    gasnet_coll_exchange(GASNET_TEAM_ALL, buffer, buffer, 8, GASNET_COLL_IN_MYSYNC | GASNET_COLL_LOCAL);
}
static void coll_function(void) {
    gasnet_coll_init(NULL, 0, NULL, 0, 0);
    gasnet_coll_reduce(GASNET_TEAM_ALL, 0, buffer, buffer, 0, 0, 8, 1, 7, 0, COLL);
}
static void fold(void *to, size_t n, const void *left, size_t m, const void *right, size_t size, int flags, int arg) {
    (void)to, (void)n, (void)left, (void)m, (void)right, (void)size, (void)flags, (void)arg;
}
static void init_with_function(void) {
    gasnet_coll_fn_entry_t table[1];
    table[0].fnptr = fold;
    table[0].flags = 0;
    gasnet_coll_init(NULL, 0, table, 1, 0);
}
static void coll_offset(void) {
    init_with_function();
    gasnet_coll_reduce(GASNET_TEAM_ALL, 0, buffer, buffer, 0, 3, 8, 1, 0, 0, COLL);
}
static void coll_one_block_size(void) {
    init_with_function();
    gasnet_coll_scan(GASNET_TEAM_ALL, buffer, 4, 0, buffer + 8, 0, 0, 8, 1, 0, 0, COLL | GASNET_COLL_INCLUSIVE_SCAN);
}
static void coll_array_beyond_memory(void) {
    init_with_function();
    gasnet_coll_scan(GASNET_TEAM_ALL, buffer, 1, (size_t)-1, buffer + 8, 1, 0, 8, 1, 0, 0,
                     COLL | GASNET_COLL_EXCLUSIVE_SCAN);
}
static void coll_images(void) {
    gasnet_image_t counts[64];
    memset(counts, 0, sizeof counts);
    gasnet_coll_init(counts, 0, NULL, 0, 0);
}
static void images_each(gasnet_image_t my_image, gasnet_image_t each) {
    gasnet_image_t counts[64];
    int i;
    for (i = 0; i < 64; i++) counts[i] = each;
    gasnet_coll_init(counts, my_image, NULL, 0, 0);
}
static void coll_images_seq(void) {
    images_each(0, 1);
    images_each(0, 2);
}
#if CHECK_PAR
static void open_first(int id) {
    (void)id;
    images_each(0, 2);
}
static void coll_image_taken(void) {
    /* The image of a thread that has ended is free, and so is one that its thread has changed. */
    check_join(check_start(1, 0, open_first), 1);
    images_each(0, 2);
    images_each(1, 2);
    check_join(check_start(1, 0, open_first), 1);
    images_each(0, 2);
    check_join(check_start(1, 0, open_first), 1);
}
#else
#define coll_image_taken NULL
#endif
static void coll_wait_alone(void) {
    gasnet_coll_init(NULL, 0, NULL, 0, 0);
    gasnet_coll_barrier_wait(GASNET_TEAM_ALL, 0, 0);
}

static const struct testcase cases[] = {
    {"init_twice", "both", BEFORE_ATTACH, PASSES, "gasnet_init()|before|GASNET_ERR_NOT_INIT", init_twice},
    {"attach_twice", "both", ATTACHED, PASSES, "gasnet_attach()|second call changes nothing|Call it once", attach_twice},
    {"attach_early", "both", BEFORE_INIT, PASSES, "gasnet_attach()|before gasnet_init()|Call gasnet_init", attach_early},
    {"attach_unaligned", "both", BEFORE_ATTACH, PASSES, "gasnet_attach|not a multiple of the page size", attach_unaligned},
    {"attach_too_large", "both", BEFORE_ATTACH, PASSES, "gasnet_attach|{asked}|{limit}|what limits it is",
     attach_too_large},
    {"attach_null", "both", BEFORE_ATTACH, PASSES, "gasnet_attach()|the table is null|number of its rows", attach_null},
    {"attach_negative", "both", BEFORE_ATTACH, PASSES, "gasnet_attach()|numentries is -1|number of its rows", attach_negative},
    {"handler_taken", "both", BEFORE_ATTACH, PASSES, "gasnet_attach|201|twice", handler_taken},
    {"handler_reserved", "both", BEFORE_ATTACH, PASSES, "gasnet_attach|127|128", handler_reserved},
    {"handler_null", "both", BEFORE_ATTACH, PASSES, "gasnet_attach|201", handler_null},
    {"handlers_many", "both", BEFORE_ATTACH, PASSES, "gasnet_attach|128|255", handlers_many},
    {"poll_in_handler", "both", ATTACHED, PASSES, "handler polls|gasnet_AMPoll|never ends", poll_in_handler},
    {"waitmode", "both", ATTACHED, PASSES, "gasnet_set_waitmode()|99|GASNET_WAIT_SPIN", waitmode},
    {"seginfo_negative", "both", ATTACHED, PASSES, "gasnet_getSegmentInfo()|numentries is -1|the table is null|0 rows", seginfo_negative},
    {"threads_ask", "par", ATTACHED, PASSES, "", threads_ask},
    {"threads_lock", "par", CHECKED, PASSES, "", threads_lock},
    {"threads_without_keys", "par", BEFORE_INIT, PASSES, "", threads_without_keys},
    {"threads_poll_at_end", "par", ATTACHED, PASSES, "", threads_poll_at_end},
    {"threads_one_index", "par", BEFORE_INIT, PASSES, "", threads_one_index},
    {"section_without_index", "par", BEFORE_INIT, PASSES, "", section_without_index},
    {"lock_early", "both", BEFORE_INIT, PASSES, "", lock_early},
    {"child_polls", "both", ATTACHED, PASSES, "gasnet_AMPoll()|forked", child_polls},
    {"child_syncs", "both", ATTACHED, PASSES, "gasnet_wait_syncnbi_all()|forked", child_syncs},
    {"child_syncs_none", "both", ATTACHED, PASSES, "gasnet_wait_syncnb()|forked", child_syncs_none},
    {"child_puts", "both", ATTACHED, PASSES, "gasnet_put_val()|forked", child_puts},
    {"child_inits", "both", ATTACHED, PASSES, "gasnet_init()|forked", child_inits},
    {"child_leaves", "both", ATTACHED, PASSES, "gasnet_exit", child_leaves},
    {"child_exits", "both", ATTACHED, PASSES, "", child_exits},

    {"put_node", "both", ATTACHED, DIES, "gasnet_put()|" NO_NODE_WORD "|{nodes}", put_node},
    {"put_next_node", "both", ATTACHED, DIES, "gasnet_put()|{nodes}", put_next_node},
    {"put_nb_node", "both", ATTACHED, DIES, "gasnet_put_nb_bulk()|" NO_NODE_WORD "|{nodes}", put_nb_node},
    {"get_node", "both", ATTACHED, DIES, "gasnet_get()|" NO_NODE_WORD "|{nodes}", get_node},
    {"memset_node", "both", ATTACHED, DIES, "gasnet_memset()|" NO_NODE_WORD "|{nodes}", memset_node},
    {"put_val_node", "both", ATTACHED, DIES, "gasnet_put_val()|" NO_NODE_WORD "|{nodes}", put_val_node},
    {"get_val_node", "both", ATTACHED, DIES, "gasnet_get_val()|" NO_NODE_WORD "|{nodes}", get_val_node},
    {"short_node", "both", ATTACHED, DIES, "gasnet_AMRequestShort0()|" NO_NODE_WORD "|{nodes}", short_node},
    {"medium_node", "both", ATTACHED, DIES, "gasnet_AMRequestMedium0()|" NO_NODE_WORD "|{nodes}", medium_node},
    {"long_node", "both", ATTACHED, DIES, "gasnet_AMRequestLong0()|" NO_NODE_WORD "|{nodes}", long_node},

    {"own_memory", "both", ATTACHED, PASSES, "", own_memory},
    {"own_outside", "both", CHECKED, DIES, "gasnet_put()|segment|{segment}|without debug checks", own_outside},
    {"others_memory", "both", ATTACHED, DIES, "gasnet_put_bulk()|segment of rank 1|{segment}", others_memory},
    {"others_putv", "both", ATTACHED, DIES, "gasnet_putv_bulk()|segment of rank 1|{segment}", others_putv},
    {"own_null", "both", ATTACHED, DIES, "gasnet_put_bulk()|segment|{segment}", own_null},
    {"put_outside", "both", ATTACHED, DIES, "gasnet_put()|segment|{end-4}|{segment}", put_outside},
    {"put_before", "both", ATTACHED, DIES, "gasnet_put()|segment|{begin-8}|{segment}", put_before},
    {"put_wraps", "both", ATTACHED, DIES, "gasnet_put_bulk()|segment|{begin}|{segment}", put_wraps},
    {"put_bulk_outside", "both", ATTACHED, DIES, "gasnet_put_bulk()|segment|{segment}", put_bulk_outside},
    {"put_nbi_outside", "both", ATTACHED, DIES, "gasnet_put_nbi()|segment|{segment}", put_nbi_outside},
    {"get_outside", "both", ATTACHED, DIES, "gasnet_get()|segment|{end-4}|{segment}", get_outside},
    {"get_nb_outside", "both", ATTACHED, DIES, "gasnet_get_nb_bulk()|segment|{end-4}|{segment}", get_nb_outside},
    {"memset_outside", "both", ATTACHED, DIES, "gasnet_memset()|segment|{end-4}|{segment}", memset_outside},
    {"put_val_outside", "both", ATTACHED, DIES, "gasnet_put_val()|segment|{end-4}|{segment}", put_val_outside},
    {"get_val_outside", "both", ATTACHED, DIES, "gasnet_get_val()|segment|{end-4}|{segment}", get_val_outside},
    {"putv_outside", "both", ATTACHED, DIES, "gasnet_putv_bulk()|segment|{end-4}|{segment}", putv_outside},
    {"geti_outside", "both", ATTACHED, DIES, "gasnet_geti_nb_bulk()|segment|{end-4}|{segment}", geti_outside},
    {"puts_outside", "both", ATTACHED, DIES, "gasnet_puts_nbi_bulk()|40 bytes|segment|{segment}", puts_outside},
    {"puts_levels", "both", ATTACHED, DIES, "gasnet_puts_bulk()|18446744073709551615 stride levels|65535", puts_levels},
    {"gets_too_large", "both", ATTACHED, DIES, "gasnet_gets_bulk()|2 levels|64 bits", gets_too_large},
    {"putv_totals", "both", ATTACHED, DIES, "gasnet_putv_nb_bulk()|destination has 16 bytes|source 15", putv_totals},
    {"geti_totals", "both", ATTACHED, DIES, "gasnet_geti_bulk()|destination has 24 bytes|source 16", geti_totals},
    {"puts_node", "both", ATTACHED, DIES, "gasnet_puts_bulk()|" NO_NODE_WORD, puts_node},
    {"long_outside", "both", ATTACHED, DIES, "gasnet_AMRequestLong0()|segment|{end-4}|{segment}", long_outside},
    {"async_outside", "both", ATTACHED, DIES, "gasnet_AMRequestLongAsync0()|segment|{end-4}|{segment}", async_outside},

    {"medium_long", "both", ATTACHED, DIES, "gasnet_AMRequestMedium0()|{medium+1}|{medium}", medium_long},
    {"reply_long", "both", ATTACHED, DIES, "gasnet_AMReplyMedium0()|{medium+1}|{medium}", reply_long},
    {"put_val_long", "both", ATTACHED, DIES, "gasnet_put_val()|9|8", put_val_long},
    {"get_val_long", "both", ATTACHED, DIES, "gasnet_get_val()|9|8", get_val_long},
    {"put_val_none", "both", ATTACHED, DIES, "gasnet_put_val()|1 to 8 bytes, not 0", put_val_none},
    {"get_val_none", "both", ATTACHED, DIES, "gasnet_get_val()|1 to 8 bytes, not 0", get_val_none},
    {"arguments_many", "both", ATTACHED, DIES, "gasnet_AMRequestShort()|17|16", arguments_many},

    {"request_in_request", "both", ATTACHED, DIES, "gasnet_AMRequestShort0()|handler", request_in_request},
    {"request_in_reply", "both", ATTACHED, DIES, "gasnet_AMRequestShort0()|handler", request_in_reply},
    {"reply_twice", "both", ATTACHED, DIES, "gasnet_AMReplyShort0()|replied", reply_twice},
    {"reply_in_reply", "both", ATTACHED, DIES, "gasnet_AMReplyShort0()|reply handler", reply_in_reply},
    {"reply_later", "both", ATTACHED, DIES, "gasnet_AMReplyShort0()|token", reply_later},
    {"no_handler", "both", ATTACHED, DIES, "249|registered", no_handler},

    {"request_reserved", "both", ATTACHED, DIES, "gasnet_AMRequestShort0()|handler 64|128", request_reserved},
    {"reply_reserved", "both", ATTACHED, DIES, "gasnet_AMReplyShort0()|handler 0|128", reply_reserved},
    {"wait_in_handler", "both", ATTACHED, DIES, "handler waits|GASNET_BLOCKUNTIL", wait_in_handler},

    {"early_put", "both", BEFORE_ATTACH, DIES, "gasnet_put()|before gasnet_attach()", early_put},
    {"early_get", "both", BEFORE_ATTACH, DIES, "gasnet_get()|before gasnet_attach()", early_get},
    {"early_short", "both", BEFORE_ATTACH, DIES, "gasnet_AMRequestShort0()|before gasnet_attach()", early_short},
    {"early_poll", "both", BEFORE_ATTACH, DIES, "gasnet_AMPoll()|before gasnet_attach()", early_poll},
    {"early_barrier", "both", BEFORE_ATTACH, DIES, "gasnet_barrier_notify()|before gasnet_attach()", early_barrier},
    {"early_seginfo", "both", BEFORE_ATTACH, DIES, "gasnet_getSegmentInfo()|before gasnet_attach()", early_seginfo},
    {"very_early_mynode", "both", BEFORE_INIT, DIES, "gasnet_mynode()|before gasnet_init()", very_early_mynode},
    {"very_early_put", "both", BEFORE_INIT, DIES, "gasnet_put()|before gasnet_init()", very_early_put},
    {"very_early_limit", "both", BEFORE_INIT, DIES, "gasnet_getMaxLocalSegmentSize()|before gasnet_init()", very_early_limit},

    {"wait_alone", "both", ATTACHED, DIES, "gasnet_barrier_wait()|gasnet_barrier_notify", wait_alone},
    {"try_alone", "both", ATTACHED, DIES, "gasnet_barrier_try()|gasnet_barrier_notify", try_alone},
    {"notify_twice", "both", ATTACHED, DIES, "gasnet_barrier_notify()|gasnet_barrier_wait", notify_twice},
    {"notify_twice_par", "par", ATTACHED, DIES, "gasnet_barrier_notify()|another thread", notify_twice},
    {"notify_in_handler", "both", ATTACHED, DIES, "gasnet_barrier_notify() was called in an active message handler", notify_in_handler},
    {"coll_before_init", "both", ATTACHED, DIES, "gasnet_coll_broadcast()|before gasnet_coll_init()", coll_before_init},
    {"coll_root", "both", ATTACHED, DIES, "gasnet_coll_scatter()|" NO_NODE_WORD, coll_root},
    {"coll_team", "both", ATTACHED, DIES, "gasnet_coll_gather_all()|0x4d|GASNET_TEAM_ALL", coll_team},
    {"coll_flags", "both", ATTACHED, DIES, "gasnet_coll_exchange()|GASNET_COLL_OUT_NOSYNC", coll_flags},
    {"coll_function", "both", ATTACHED, DIES, "gasnet_coll_reduce()|function 7", coll_function},
    {"coll_offset", "both", ATTACHED, DIES, "gasnet_coll_reduce()|offset 3 with block size 0|times the number of the image", coll_offset},
    {"coll_one_block_size", "both", ATTACHED, DIES, "gasnet_coll_scan()|one of dst_blksz and src_blksz is 0|Pass 0 for both", coll_one_block_size},
    {"coll_array_beyond_memory", "both", ATTACHED, DIES, "gasnet_coll_scan()|1 elements of 8 bytes|more than memory", coll_array_beyond_memory},
    {"coll_images", "both", ATTACHED, DIES, "gasnet_coll_init()|rank 0 has no images", coll_images},
    {"coll_images_seq", "seq", ATTACHED, DIES, "gasnet_coll_init()|rank 0 has 2 images|GASNET_SEQ|compile for GASNET_PAR", coll_images_seq},
    {"coll_image_taken", "par", ATTACHED, DIES, "gasnet_coll_init()|another thread of rank 0|image 0|a number of its own", coll_image_taken},
    {"coll_wait_alone", "both", ATTACHED, DIES, "gasnet_coll_barrier_wait()|gasnet_barrier_notify", coll_wait_alone},
    {"region_twice", "both", ATTACHED, DIES, "gasnet_begin_nbi_accessregion()|open", region_twice},
    {"region_end", "both", ATTACHED, DIES, "gasnet_end_nbi_accessregion()|gasnet_begin_nbi_accessregion", region_end},
    {"sync_in_region", "both", ATTACHED, DIES, "gasnet_wait_syncnbi_puts()|region", sync_in_region},
    {"handle", "both", ATTACHED, DIES, "handle|7654321", handle},
    {"handle_of_leaf", "both", ATTACHED, DIES, "handle|0x55d080004560", handle_of_leaf},
    {"lock_destroy_locked", "par", ATTACHED, DIES, "gasnet_hsl_destroy()|a thread holds|when no thread holds it", lock_destroy_locked},
    {"thread_leaves_handler", "par", ATTACHED, DIES, "a thread ended inside an active message handler|Let the handler return", thread_leaves_handler},
    {"threads_many", "par", ATTACHED, DIES, "256|threads|End threads before starting others.", threads_many},

    {"put_from_null", "both", CHECKED, DIES, "gasnet_put_bulk()|src is null|8 bytes", put_from_null},
    {"get_to_null", "both", CHECKED, DIES, "gasnet_get_nb_bulk()|dest is null|8 bytes", get_to_null},
    {"medium_from_null", "both", CHECKED, DIES, "gasnet_AMRequestMedium0()|source_addr is null|8 bytes", medium_from_null},
    {"long_from_null", "both", CHECKED, DIES, "gasnet_AMRequestLong0()|source_addr is null|8 bytes", long_from_null},
    {"reply_from_null", "both", CHECKED, DIES, "gasnet_AMReplyMedium0()|source_addr is null|8 bytes", reply_from_null},
    {"putv_from_null", "both", CHECKED, DIES, "gasnet_putv_bulk()|a local address is null|8 bytes", putv_from_null},
    {"getv_without_list", "both", CHECKED, DIES, "gasnet_getv_bulk()|dstlist is null|1 elements", getv_without_list},
    {"geti_to_null", "both", CHECKED, DIES, "gasnet_geti_nbi_bulk()|a local address is null|8 bytes", geti_to_null},
    {"puti_without_list", "both", CHECKED, DIES, "gasnet_puti_bulk()|srclist is null|1 elements", puti_without_list},
    {"puts_from_null", "both", CHECKED, DIES, "gasnet_puts_bulk()|a local address is null|4 bytes", puts_from_null},
    {"puts_without_strides", "both", CHECKED, DIES, "gasnet_puts_bulk()|srcstrides is null|1 elements", puts_without_strides},
    {"gets_without_counts", "both", CHECKED, DIES, "gasnet_gets_bulk()|count is null|2 elements", gets_without_counts},
    {"nothing_from_null", "both", CHECKED, PASSES, "", nothing_from_null},
    {"checks_allow", "both", CHECKED, PASSES, "", checks_allow},
    {"hold_twice", "both", CHECKED, DIES, "gasnet_hold_interrupts()|nested", hold_twice},
    {"resume_alone", "both", CHECKED, DIES, "gasnet_resume_interrupts()|gasnet_hold_interrupts", resume_alone},
    {"hold_poll", "both", CHECKED, DIES, "gasnet_AMPoll()|no-interrupt section", hold_poll},
    {"lock_init_twice", "both", CHECKED, DIES, "gasnet_hsl_init()|already", lock_init_twice},
    {"lock_init_again", "both", CHECKED, DIES, "gasnet_hsl_init()|already", lock_init_again},
    {"lock_destroy_twice", "both", CHECKED, DIES, "gasnet_hsl_destroy()|was destroyed", lock_destroy_twice},
    {"lock_destroy_held", "both", CHECKED, DIES, "gasnet_hsl_destroy()|holds", lock_destroy_held},
    {"lock_raw", "both", CHECKED, DIES, "gasnet_hsl_lock()|not initialised|GASNET_HSL_INITIALIZER", lock_raw},
    {"lock_copy", "both", CHECKED, DIES, "gasnet_hsl_lock()|not initialised", lock_copy},
    {"lock_unlocked", "both", CHECKED, DIES, "gasnet_hsl_unlock()|not locked", lock_unlocked},
    {"lock_order", "both", CHECKED, DIES, "gasnet_hsl_unlock()|locked later|reverse order", lock_order},
    {"lock_twice", "both", CHECKED, DIES, "gasnet_hsl_lock()|already|recursive", lock_twice},
    {"trylock_twice", "both", CHECKED, DIES, "gasnet_hsl_trylock()|already|recursive", trylock_twice},
    {"lock_poll", "both", CHECKED, DIES, "gasnet_AMPoll()|holds the handler-safe lock", lock_poll},
    {"lock_request", "both", CHECKED, DIES, "gasnet_AMRequestShort0()|holds the handler-safe lock", lock_request},
    {"lock_put", "both", CHECKED, DIES, "gasnet_put()|holds the handler-safe lock", lock_put},
    {"lock_barrier", "both", CHECKED, DIES, "gasnet_barrier_notify()|holds the handler-safe lock", lock_barrier},
    {"lock_wait", "both", CHECKED, DIES, "gasnet_wait_syncnb()|holds the handler-safe lock", lock_wait},
    {"lock_left", "both", CHECKED, DIES, "handler 212 returned|handler-safe lock", lock_left},
    {"lock_reply", "both", CHECKED, DIES, "gasnet_AMReplyShort0()|holds the handler-safe lock", lock_reply},
    {"lock_of_other", "par", CHECKED, DIES, "gasnet_hsl_unlock()|thread 0 holds|thread 1", lock_of_other},
    {"handler_puts", "both", CHECKED, DIES, "gasnet_put_val()|handler", handler_puts},
    {"handler_region", "both", CHECKED, DIES, "gasnet_begin_nbi_accessregion()|handler", handler_region},
    {"handler_polls", "both", CHECKED, DIES, "gasnet_AMPoll()|handler", handler_polls},
    {"sync_twice", "both", CHECKED, DIES, "gasnet_wait_syncnb()|twice", sync_twice},
    {"sync_pair", "both", CHECKED, DIES, "gasnet_wait_syncnb_all()|twice", sync_pair},
    {"sync_region_twice", "both", CHECKED, DIES, "gasnet_try_syncnb()|twice", sync_region_twice},
    {"value_twice", "both", CHECKED, DIES, "gasnet_wait_syncnb_valget()|twice", value_twice},
    {"sync_of_other", "par", CHECKED, DIES, "gasnet_wait_syncnb()|thread 0|thread 1", sync_of_other},
    {"put_unaligned", "both", CHECKED, DIES, "gasnet_put()|remote|8 bytes|bulk", put_unaligned},
    {"get_unaligned", "both", CHECKED, DIES, "gasnet_get_nbi()|local|4 bytes|bulk", get_unaligned},
    {"val_unaligned", "both", CHECKED, DIES, "gasnet_put_val()|remote|2 bytes", val_unaligned},
    {"heap_overrun", "both", ATTACHED, DIES, "gasnett_debug_free|behind it|24 bytes|testbad.c:", heap_overrun},
    {"heap_underrun", "both", ATTACHED, DIES, "gasnett_debug_memcheck_all|in front of it|24 bytes", heap_underrun},
    {"heap_free_twice", "both", ATTACHED, DIES, "gasnett_debug_free()|no object", heap_free_twice},
    {"heap_free_inside", "both", ATTACHED, DIES, "gasnett_debug_free()|8 bytes into", heap_free_inside},
    {"heap_write_freed", "both", ATTACHED, DIES, "after it was freed|freed at|testbad.c:", heap_write_freed},
    {"second_thread", "seq", CHECKED, DIES, "gasnet_AMPoll()|GASNET_SEQ|second thread", second_thread},
};
#define CASES (sizeof cases / sizeof *cases)

/* ---- the words, with their numbers ---- */

/* A number of bytes as messages print it; the part of the text that has the exact number. */
static void bytes_of(char *to, size_t room, unsigned long bytes) {
    static const char *const units[] = {"TB", "GB", "MB", "KB"};
    int i;
    for (i = 0; i < 4; i++) {
        int shift = 40 - 10 * i;
        if (bytes >> shift && !(bytes & ((1ul << shift) - 1))) break;
    }
    if (i < 4 && bytes >> (40 - 10 * i) < 10000)
        snprintf(to, room, "%lu%s", bytes >> (40 - 10 * i), units[i]);
    else
        snprintf(to, room, "%lu bytes", bytes);
}

static void number_of(char *to, size_t room, const char *word, size_t length) {
#define IS(text) (length == strlen(text) && !strncmp(word, text, length))
    unsigned long begin = check_seg ? (unsigned long)(uintptr_t)check_seg[0].addr : 0;
    unsigned long size = check_seg ? (unsigned long)check_seg[0].size : 0;
    if (IS("nodes")) snprintf(to, room, "%lu", (unsigned long)gasnet_nodes());
    else if (IS("medium")) bytes_of(to, room, (unsigned long)gasnet_AMMaxMedium());
    else if (IS("medium+1")) bytes_of(to, room, (unsigned long)gasnet_AMMaxMedium() + 1);
    else if (IS("asked")) bytes_of(to, room, (unsigned long)asked);
    else if (IS("limit")) bytes_of(to, room, (unsigned long)gasnet_getMaxLocalSegmentSize());
    else if (IS("segment")) bytes_of(to, room, size);
    else if (IS("begin")) snprintf(to, room, "0x%lx", begin);
    else if (IS("begin-8")) snprintf(to, room, "0x%lx", begin - 8);
    else if (IS("end-4")) snprintf(to, room, "0x%lx", begin + size - 4);
    else snprintf(to, room, "?");
#undef IS
}

static void say_expected(const char *words) {
    char line[400] = "testbad: expects: ";
    size_t n = strlen(line);
    while (*words && n < sizeof line - 40) {
        const char *end = *words == '{' ? strchr(words, '}') : NULL;
        if (end) {
            number_of(line + n, sizeof line - n, words + 1, (size_t)(end - words - 1));
            n = strlen(line);
            words = end + 1;
        } else {
            line[n++] = *words++;
            line[n] = 0;
        }
    }
    printf("%s\n", line);
    fflush(stdout);
}

static void list(void) {
    size_t i;
    for (i = 0; i < CASES; i++)
        printf("%s\t%s\t%s\t%s\n", cases[i].name, cases[i].threads, cases[i].outcome == DIES ? "dies" : "passes",
               cases[i].words);
}

/* Runs the case, or the end of one that must die. */
static void run(const struct testcase *c) {
    check_alive(c->name);
    if (c->outcome == DIES && c->when != BEFORE_INIT && gasnet_mynode() != 0) {
        static volatile int never;
        if (c->when == BEFORE_ATTACH) pause();
        GASNET_BLOCKUNTIL(never);
    }
    c->run();
    if (c->outcome == PASSES) return;
    printf("testbad: FAIL (%s went on)\n", c->name);
    fflush(stdout);
    _exit(5);
}

int main(int argc, char **argv) {
    const struct testcase *c = NULL;
    size_t i;

    if (argc == 2 && !strcmp(argv[1], "-list")) {
        list();
        return 0;
    }
    check_name = "testbad";
    for (i = 0; i < CASES && argc == 2; i++)
        if (!strcmp(argv[1], cases[i].name)) c = &cases[i];
    if (!c || !c->run) {
        fprintf(stderr, "usage: testbad -list | case\n");
        return 1;
    }
    if (c->when == BEFORE_INIT) {
        if (c->outcome == DIES) say_expected(c->words);
        run(c);
    }
    if (c->when == CHECKED) setenv("GASNET_DEBUG_CHECKS", "1", 1);
    check_init("testbad", &argc, &argv);
    asked = gasnet_getMaxLocalSegmentSize() + (uintptr_t)4096 * GASNET_PAGESIZE;
    if (c->when == BEFORE_ATTACH) {
        if (gasnet_mynode() == 0) say_expected(c->words);
        run(c);
    }
    check_attach(handlers, HANDLERS, GASNET_PAGESIZE);
    if (c->when >= ATTACHED) {
        check_barrier();
        if (gasnet_mynode() == 0) say_expected(c->words);
        run(c);
    }
    if (later) later();
    check_done();
}
