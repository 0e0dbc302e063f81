/* Traffic of every kind whose results are checked at once, for jobs whose shared memory is
 * overwritten while they run: without that, an ordinary test.
 *
 * In each step every rank puts, sets and gets memory of its peers, and sends Shorts, Mediums and
 * Longs whose handlers reply in kind. It also passes barriers, and calls collectives. Private
 * buffers lie between canaries. The first deviation ends the job; its exit code says what it is:
 *
 *   10  wrong payload: data that no rank sent
 *   11  lost: data of an earlier step, a message out of its sequence, a result that never came
 *   12  canary: private memory has changed that no operation names
 *
 * Each rank prints a line with its process number once the traffic runs; the runner's family
 * `scribbles` waits for these lines before it overwrites words.
 */
/* args: 40 */
/* faults: flip_put flip_get flip_am flip_coll skip_sync:portals */
#include "check.h"
#include <gasnet_coll.h>

#define SMALL 48
#define MIDDLE 700
#define LARGE 6000
#define SET 200
#define MAX_RANKS 16
#define FENCE 4096
#define ZONE (256 * 1024)
/* Bytes of a block of a collective: through rings, as a Medium, as a large message. */
static const size_t coll_bytes[] = {24, 900, 5000};

enum { WRONG = 10, LOST = 11, CANARY = 12 };
enum { SHORT_H = 201, MEDIUM_H, LONG_H, SHORT_REPLY_H, MEDIUM_REPLY_H, LONG_REPLY_H };
/* What a pattern belongs to. */
enum { OF_WORD = 1, OF_SMALL, OF_MIDDLE, OF_LARGE, OF_MEDIUM, OF_STASH, OF_LONG, OF_REPLY, OF_COLL };

/* What one rank writes in the segment of another. */
struct slot {
    uint64_t word;
    char small[SMALL], middle[MIDDLE], large[LARGE], set[SET], pieces[2048], reply[2048];
};
/* A segment. */
struct layout {
    struct slot from[MAX_RANKS];
    char source[MAX_RANKS * 5000], result[MAX_RANKS * 5000];
};

static gasnet_node_t me, ranks;
static uint32_t step;
static unsigned char zone[ZONE];
/* Requests of each peer by kind, replies to ours. */
static volatile uint32_t requests[4][MAX_RANKS], replies[4][MAX_RANKS];
static volatile sig_atomic_t ending;

/* ---- verdicts ---- */

static const char *verdict_name(int code) { return code == WRONG ? "WRONG" : code == LOST ? "LOST" : "CANARY"; }

static int zone_harmed(void);

/* Ends the job. Memory that no operation names is looked at first: it is the worst. */
GASNETT_FORMAT_PRINTF(verdict, 2, 3, static void verdict(int code, const char *format, ...)) {
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (ending) return;
    ending = 1;
    if (zone_harmed()) code = CANARY;
    printf("testscribble: %s on rank %d in step %u: %s\n", verdict_name(code), (int)me, step, text);
    fflush(stdout);
    gasnet_exit(code);
}

/* ---- private memory ---- */

static unsigned char canary(size_t i) { return (unsigned char)(i * 37 + (i >> 8) + 11); }

struct fenced {
    unsigned char before[FENCE], bytes[MAX_RANKS * 5000], after[FENCE];
};
static struct fenced *fenced[4];
#define BUFFER(i) ((char *)fenced[i]->bytes)

static int all_canaries(const unsigned char *p, size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        if (p[i] != canary(i)) return 0;
    return 1;
}

static void make_canaries(void) {
    size_t i, k;
    for (i = 0; i < ZONE; i++) zone[i] = canary(i);
    for (k = 0; k < 4; k++) {
        fenced[k] = (struct fenced *)calloc(1, sizeof *fenced[k]);
        for (i = 0; i < FENCE; i++) fenced[k]->before[i] = fenced[k]->after[i] = canary(i);
    }
}

static int zone_harmed(void) {
    int k;
    for (k = 0; k < 4; k++)
        if (!fenced[k] || !all_canaries(fenced[k]->before, FENCE) || !all_canaries(fenced[k]->after, FENCE)) return 1;
    return !all_canaries(zone, ZONE);
}

/* The job ends for another reason. */
static void on_quit(int sig) {
    static const char text[] = "testscribble: CANARY, seen at the end\n";
    (void)sig;
    if (zone_harmed() && write(1, text, sizeof text - 1) < 0) _exit(CANARY);
}

/* ---- patterns ---- */

static uint64_t pattern(int what, gasnet_node_t source, uint32_t at_step) {
    return check_mix(((uint64_t)at_step << 16) + ((uint64_t)source << 8) + (uint64_t)what);
}

static int is_pattern(const void *p, size_t n, uint64_t seed) {
    const char *from = (const char *)p;
    size_t i;
    for (i = 0; i < n; i += 8) {
        uint64_t word = check_mix(seed ^ check_mix(i));
        if (memcmp(from + i, &word, n - i < 8 ? n - i : 8)) return 0;
    }
    return 1;
}

static int is_constant(const char *p, size_t n, char value) {
    while (n--)
        if (*p++ != value) return 0;
    return 1;
}

/* Compares with the pattern of this step. That of the step before, or no data at all, is a
 * loss. */
static void expect(const void *p, size_t n, int what, gasnet_node_t source, const char *name) {
    if (is_pattern(p, n, pattern(what, source, step))) return;
    if (is_pattern(p, n, pattern(what, source, step - 1)) || is_constant((const char *)p, n, 0x55))
        verdict(LOST, "%s of rank %d did not arrive", name, (int)source);
    else
        verdict(WRONG, "%s of rank %d", name, (int)source);
}

/* ---- messages ---- */

/* The last argument of a message. It covers the source: a message with an overwritten source is
 * wrong, not lost. */
static gasnet_handlerarg_t checksum_of(gasnet_handlerarg_t number, gasnet_handlerarg_t kind, gasnet_node_t source) {
    return ~(number + kind + 0x10000 * (gasnet_handlerarg_t)source);
}

/* A message that is whole and not the next of its source is one that was lost or doubled. */
static void count(volatile uint32_t counts[4][MAX_RANKS], gasnet_token_t token, gasnet_handlerarg_t number,
                  gasnet_handlerarg_t kind, gasnet_handlerarg_t check, gasnet_handlerarg_t least,
                  gasnet_handlerarg_t most, const char *name) {
    gasnet_node_t source;
    if (gasnet_AMGetMsgSource(token, &source) != GASNET_OK || source >= ranks || kind < least || kind > most ||
        check != checksum_of(number, kind, source)) {
        verdict(WRONG, "arguments of a %s: %d %d %d", name, number, kind, check);
        return;
    }
    if ((uint32_t)number != counts[kind][source] + 1)
        verdict(LOST, "%s %d of rank %d, after %u", name, number, (int)source, counts[kind][source]);
    counts[kind][source] = (uint32_t)number;
}

static gasnet_node_t source_of(gasnet_token_t token) {
    gasnet_node_t source = 0;
    gasnet_AMGetMsgSource(token, &source);
    return source < ranks ? source : 0;
}

/* The payload of a message of the step that its arguments name. */
static void payload(gasnet_token_t token, const void *p, size_t n, gasnet_handlerarg_t number, int what, size_t due,
                    const char *name) {
    gasnet_node_t source = source_of(token);
    if (n != due) verdict(WRONG, "%lu bytes in a %s", (unsigned long)n, name);
    if (!is_pattern(p, n, pattern(what, source, (uint32_t)number)))
        verdict(WRONG, "payload of a %s of rank %d", name, (int)source);
}

/* In a message of a step: in its event, or at the sender, where every second one is large. */
static size_t medium_bytes(gasnet_handlerarg_t kind, gasnet_handlerarg_t at_step) {
    return kind == 1 ? 20 : at_step & 1 ? 1200 : LARGE;
}

static void short_h(gasnet_token_t t, gasnet_handlerarg_t a, gasnet_handlerarg_t b, gasnet_handlerarg_t c) {
    count(requests, t, a, b, c, 0, 0, "Short");
    gasnet_AMReplyShort3(t, SHORT_REPLY_H, a, b, checksum_of(a, b, me));
}

static void medium_h(gasnet_token_t t, void *p, size_t n, gasnet_handlerarg_t a, gasnet_handlerarg_t b,
                     gasnet_handlerarg_t c) {
    char data[LARGE];
    count(requests, t, a, b, c, 1, 2, "Medium");
    payload(t, p, n, a, b == 1 ? OF_MEDIUM : OF_STASH, medium_bytes(b, a), "Medium");
    check_fill(data, medium_bytes(b, a), pattern(OF_REPLY, me, (uint32_t)a));
    gasnet_AMReplyMedium3(t, MEDIUM_REPLY_H, data, medium_bytes(b, a), a, b, checksum_of(a, b, me));
}

static void long_h(gasnet_token_t t, void *p, size_t n, gasnet_handlerarg_t a, gasnet_handlerarg_t b,
                   gasnet_handlerarg_t c) {
    static char data[2048];
    gasnet_node_t source = source_of(t);
    struct layout *there = (struct layout *)check_seg[source].addr;
    count(requests, t, a, b, c, 3, 3, "Long");
    payload(t, p, n, a, OF_LONG, 2048, "Long");
    check_fill(data, sizeof data, pattern(OF_REPLY, me, (uint32_t)a));
    gasnet_AMReplyLong3(t, LONG_REPLY_H, data, sizeof data, there->from[me].reply, a, b, checksum_of(a, b, me));
}

static void short_reply_h(gasnet_token_t t, gasnet_handlerarg_t a, gasnet_handlerarg_t b, gasnet_handlerarg_t c) {
    count(replies, t, a, b, c, 0, 0, "Short reply");
}

static void medium_reply_h(gasnet_token_t t, void *p, size_t n, gasnet_handlerarg_t a, gasnet_handlerarg_t b,
                           gasnet_handlerarg_t c) {
    count(replies, t, a, b, c, 1, 2, "Medium reply");
    payload(t, p, n, a, OF_REPLY, medium_bytes(b, a), "Medium reply");
}

static void long_reply_h(gasnet_token_t t, void *p, size_t n, gasnet_handlerarg_t a, gasnet_handlerarg_t b,
                         gasnet_handlerarg_t c) {
    count(replies, t, a, b, c, 3, 3, "Long reply");
    payload(t, p, n, a, OF_REPLY, 2048, "Long reply");
}

/* ---- a step ---- */

static int all_replied(void) {
    gasnet_node_t peer;
    int kind;
    for (peer = 0; peer < ranks; peer++)
        for (kind = 0; kind < 4; kind++)
            if (replies[kind][peer] != step) return 0;
    return 1;
}

static void messages(gasnet_node_t peer, struct slot *there) {
    char *data = BUFFER(3);
    gasnet_handlerarg_t now = (gasnet_handlerarg_t)step;
    CHECK_OK(gasnet_AMRequestShort3(peer, SHORT_H, now, 0, checksum_of(now, 0, me)));
    check_fill(data, 20, pattern(OF_MEDIUM, me, step));
    CHECK_OK(gasnet_AMRequestMedium3(peer, MEDIUM_H, data, 20, now, 1, checksum_of(now, 1, me)));
    check_fill(data, medium_bytes(2, now), pattern(OF_STASH, me, step));
    CHECK_OK(gasnet_AMRequestMedium3(peer, MEDIUM_H, data, medium_bytes(2, now), now, 2, checksum_of(now, 2, me)));
    check_fill(data, 2048, pattern(OF_LONG, me, step));
    CHECK_OK(gasnet_AMRequestLong3(peer, LONG_H, data, 2048, there->pieces, now, 3, checksum_of(now, 3, me)));
}

static void barrier(int id, int flags) {
    int rc;
    gasnet_barrier_notify(id, flags);
    rc = gasnet_barrier_wait(id, flags);
    if (rc != GASNET_OK) verdict(WRONG, "a barrier returns %s", gasnet_ErrorName(rc));
}

/* Puts to all peers, from private memory that changes only when they are complete. */
static void puts_and_gets(void) {
    uint64_t word = pattern(OF_WORD, me, step);
    gasnet_node_t i;
    char *out = BUFFER(0), *in = BUFFER(1);
    check_fill(out, SMALL, pattern(OF_SMALL, me, step));
    check_fill(out + 64, MIDDLE, pattern(OF_MIDDLE, me, step));
    check_fill(out + 1024, LARGE, pattern(OF_LARGE, me, step));
    for (i = 1; i < ranks; i++) {
        gasnet_node_t peer = (me + i) % ranks;
        struct slot *there = &((struct layout *)check_seg[peer].addr)->from[me];
        gasnet_handle_t h[2];
        h[0] = gasnet_put_nb(peer, there->small, out, SMALL);
        h[1] = gasnet_put_nb_bulk(peer, there->large, out + 1024, LARGE);
        gasnet_put_nbi(peer, there->middle, out + 64, MIDDLE);
        gasnet_put(peer, &there->word, &word, sizeof word);
        gasnet_memset(peer, there->set, (int)(step & 0x7f), SET);
        messages(peer, there);
        gasnet_wait_syncnbi_puts();
        gasnet_wait_syncnb_all(h, 2);
        memset(in, 0x55, MIDDLE + LARGE + 64);
        h[0] = gasnet_get_nb(in, peer, there->middle, MIDDLE);
        gasnet_get_nbi_bulk(in + 1024, peer, there->large, LARGE);
        gasnet_get(in + 704, peer, there->small, SMALL);
        gasnet_wait_syncnbi_gets();
        gasnet_wait_syncnb(h[0]);
        expect(in, MIDDLE, OF_MIDDLE, me, "a get of the put");
        expect(in + 704, SMALL, OF_SMALL, me, "a get of the small put");
        expect(in + 1024, LARGE, OF_LARGE, me, "a get of the large put");
    }
}

static void check_slots(void) {
    struct layout *here = (struct layout *)check_seg[me].addr;
    gasnet_node_t i;
    for (i = 0; i < ranks; i++) {
        struct slot *s = &here->from[i];
        if (i == me) continue;
        if (s->word != pattern(OF_WORD, i, step))
            verdict(s->word == pattern(OF_WORD, i, step - 1) ? LOST : WRONG, "the word of rank %d", (int)i);
        expect(s->small, SMALL, OF_SMALL, i, "a small put");
        expect(s->middle, MIDDLE, OF_MIDDLE, i, "a put");
        expect(s->large, LARGE, OF_LARGE, i, "a large put");
        if (!is_constant(s->set, SET, (char)(step & 0x7f)))
            verdict(is_constant(s->set, SET, (char)((step - 1) & 0x7f)) ? LOST : WRONG, "a memset of rank %d", (int)i);
    }
}

static void collectives(void) {
    struct layout *here = (struct layout *)check_seg[me].addr;
    int all = GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC | GASNET_COLL_LOCAL;
    int mine = GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC | GASNET_COLL_LOCAL;
    gasnet_node_t root = step % ranks, i;
    size_t k;
    for (k = 0; k < 3; k++) {
        size_t n = coll_bytes[k];
        char *src = step & 1 ? here->source : BUFFER(0), *dst = step & 1 ? here->result : BUFFER(2);
        int flags = k == step % 3 ? all : mine;
        check_fill(src, n, pattern(OF_COLL, me, step));
        memset(dst, 0x55, ranks * n);
        gasnet_coll_gather_all(GASNET_TEAM_ALL, dst, src, n, flags);
        for (i = 0; i < ranks; i++) expect(dst + i * n, n, OF_COLL, i, "a gather");
        barrier(0, GASNET_BARRIERFLAG_ANONYMOUS);
        memset(dst, 0x55, n);
        gasnet_coll_broadcast(GASNET_TEAM_ALL, dst, root, src, n, flags);
        expect(dst, n, OF_COLL, root, "a broadcast");
        barrier(0, GASNET_BARRIERFLAG_ANONYMOUS);
    }
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t handlers[] = {
        {SHORT_H, (void (*)())short_h},
        {MEDIUM_H, (void (*)())medium_h},
        {LONG_H, (void (*)())long_h},
        {SHORT_REPLY_H, (void (*)())short_reply_h},
        {MEDIUM_REPLY_H, (void (*)())medium_reply_h},
        {LONG_REPLY_H, (void (*)())long_reply_h},
    };
    gasnet_image_t counts[MAX_RANKS];
    gasnet_node_t i;
    uint32_t steps;
    make_canaries();
    check_init("testscribble", &argc, &argv);
    me = gasnet_mynode();
    ranks = gasnet_nodes();
    steps = (uint32_t)check_arg(argc, argv, 1, 40);
    if (ranks > MAX_RANKS || argc > 2) check_usage("[steps]");
    signal(SIGQUIT, on_quit);
    check_attach(handlers, 6, sizeof(struct layout));
    for (i = 0; i < ranks; i++) counts[i] = 1;
    gasnet_coll_init(CHECK_PAR ? counts : NULL, me, NULL, 0, 0);
    barrier(0, GASNET_BARRIERFLAG_ANONYMOUS);
    for (step = 1; step <= steps; step++) {
        check_alive("a step");
        /* Ourselves: every path of a message that does not leave the process. */
        messages(me, &((struct layout *)check_seg[me].addr)->from[me]);
        puts_and_gets();
        GASNET_BLOCKUNTIL(all_replied());
        barrier((int)step, 0);
        check_slots();
        barrier((int)step, step & 1 ? GASNET_BARRIERFLAG_ANONYMOUS : 0);
        collectives();
        if (zone_harmed()) verdict(CANARY, "after a step");
        if (step == 3) {
            printf("rank %d is process %d\n", (int)me, (int)getpid());
            fflush(stdout);
        }
    }
    check_done();
}
