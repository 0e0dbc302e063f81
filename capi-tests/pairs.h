/* Shared by the latency programs testsmall, testlarge, testval, testmemset, testalign and
 * testlogGP: options, partners, checked and timed operations, the table.
 *
 * Segment of every rank: one or more slots of `max` bytes that partners work on, with guards
 * around each. Then the same again follows as local memory for -in. Invariant: an operation
 * is timed only after one of it was checked, byte by byte, with its guards. */
#ifndef CAPI_TESTS_PAIRS_H
#define CAPI_TESTS_PAIRS_H

#include "check.h"

#define PAIRS_GUARD 64
#define PAIRS_COLUMNS 16
#define PAIRS_USAGE \
    "[-in|-out] [-p|-g] [-s] [-m] [-a] [-c] [-f] [iterations] [largest size] [sections, e.g. ABD]\n" \
    "  -in -out  local memory inside or outside the segment (in)\n" \
    "  -p -g     only puts, only gets\n" \
    "  -s        no warm-up\n" \
    "  -m        megabytes per second instead of microseconds\n" \
    "  -a        all processes send, not only every other one\n" \
    "  -c        pairs across the two halves of the job instead of neighbours\n" \
    "  -f        only the first and the last process\n"

enum pairs_kind { PAIRS_PUT, PAIRS_GET, PAIRS_SET };

struct pairs {
    int in, puts, gets, warm, megabytes, all, cross, ends;
    int iters;
    size_t max;
    const char *sections;
    gasnet_node_t peer;
    int sender;
    size_t slot;  /* bytes from one slot to the next */
    char *local;  /* source of puts, destination of gets: first slot */
    char *other;  /* the same; outside the segment if `local` is inside, else inside */
    char *mine;   /* first slot of this segment on which the partner works */
    char *remote; /* the same at the partner */
};

static struct pairs pairs = {1, 1, 1, 1, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 0, NULL, NULL, NULL, NULL};

/* One kind of operation: run(size, n) performs n of them, complete on return. */
struct pairs_op {
    char section;
    enum pairs_kind kind;
    const char *title;
    void (*run)(size_t size, int n);
};

/* Reads options, with these values as defaults, and attaches segments of `slots` slots. Slots
 * are aligned to 64 bytes; at least PAIRS_GUARD bytes lie between them, even if data starts up
 * to 64 bytes into a slot. */
static inline void pairs_start(const char *name, int argc, char **argv, int iters, size_t max, size_t slots) {
    size_t part;
    gasnet_node_t me, n;
    int i;

    check_init(name, &argc, &argv);
    for (i = 1; i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "-in")) pairs.in = 1;
        else if (!strcmp(argv[i], "-out")) pairs.in = 0;
        else if (!strcmp(argv[i], "-p")) pairs.gets = 0;
        else if (!strcmp(argv[i], "-g")) pairs.puts = 0;
        else if (!strcmp(argv[i], "-s")) pairs.warm = 0;
        else if (!strcmp(argv[i], "-m")) pairs.megabytes = 1;
        else if (!strcmp(argv[i], "-a")) pairs.all = 1;
        else if (!strcmp(argv[i], "-c")) pairs.cross = 1;
        else if (!strcmp(argv[i], "-f")) pairs.ends = 1;
        else check_usage(PAIRS_USAGE);
    }
    pairs.iters = (int)check_arg(argc, argv, i, (size_t)iters);
    pairs.max = check_arg(argc, argv, i + 1, max);
    pairs.sections = i + 2 < argc ? argv[i + 2] : NULL;
    if (pairs.iters < 1 || pairs.max < 1 || argc > i + 3) check_usage(PAIRS_USAGE);

    pairs.slot = (pairs.max + 63) / 64 * 64 + 3 * PAIRS_GUARD;
    part = slots * pairs.slot;
    check_attach(NULL, 0, 2 * part);
    me = gasnet_mynode();
    n = gasnet_nodes();
    if (pairs.ends) {
        pairs.peer = me == 0 ? n - 1 : 0;
        pairs.sender = me == 0 || (pairs.all && me == n - 1);
    } else if (pairs.cross && n % 2 == 0) {
        pairs.peer = me < n / 2 ? me + n / 2 : me - n / 2;
        pairs.sender = pairs.all || me < n / 2;
    } else {
        pairs.peer = check_peer();
        pairs.sender = pairs.all || me % 2 == 0;
    }
    pairs.mine = check_at(me, PAIRS_GUARD);
    pairs.remote = check_at(pairs.peer, PAIRS_GUARD);
    pairs.local = check_at(me, part + PAIRS_GUARD);
    pairs.other = (char *)calloc(part, 1) + PAIRS_GUARD;
    if (!pairs.in) {
        char *inside = pairs.local;
        pairs.local = pairs.other;
        pairs.other = inside;
    }
}

/* Whether a rank works on this segment. */
static inline int pairs_target(void) {
    if (pairs.ends) return gasnet_mynode() == gasnet_nodes() - 1 || (pairs.all && gasnet_mynode() == 0);
    if (pairs.cross && gasnet_nodes() % 2 == 0) return pairs.all || gasnet_mynode() >= gasnet_nodes() / 2;
    return pairs.all || pairs.peer == gasnet_mynode() || gasnet_mynode() % 2 == 1;
}

static inline void pairs_guards(const char *p, size_t size, const char *what) {
    check_constant(p - PAIRS_GUARD, PAIRS_GUARD, 0x5a, what);
    check_constant(p + size, PAIRS_GUARD, 0x5a, what);
}

/* The value that a memset of `size` bytes writes. */
static inline int pairs_value(size_t size) { return (int)(size % 251) + 1; }

/* One get into `to`, checked at once, before anything else could complete it. */
static inline void pairs_check_get(const struct pairs_op *op, size_t size, char *to, uint64_t seed, const char *what) {
    char *local = pairs.local;
    memset(to - PAIRS_GUARD, 0x5a, size + 2 * PAIRS_GUARD);
    pairs.local = to;
    op->run(size, 1);
    pairs.local = local;
    check_same(to, size, seed, what);
    pairs_guards(to, size, "memory around a get");
}

/* Checks one operation of `size` bytes, then times pairs.iters of them. Returns microseconds
 * of each; 0 if this rank does not send. */
static inline double pairs_measure(const struct pairs_op *op, size_t size) {
    uint64_t seed = check_mix(size * 100 + (unsigned char)op->section);
    uint64_t from_me = seed + gasnet_mynode(), from_peer = seed + pairs.peer;
    double began, took = 0;
    char *dest = op->kind == PAIRS_GET ? pairs.local : pairs.mine;
    char what[80];

    check_alive(op->title);
    snprintf(what, sizeof what, "%s of %lu bytes", op->title, (unsigned long)size);
    memset(dest - PAIRS_GUARD, 0x5a, size + 2 * PAIRS_GUARD);
    check_fill(op->kind == PAIRS_GET ? pairs.mine : pairs.local, size, from_me);
    check_barrier();
    if (pairs.sender) {
        if (op->kind == PAIRS_GET) {
            pairs_check_get(op, size, pairs.other, from_peer, what);
            pairs_check_get(op, size, pairs.local, from_peer, what);
        } else {
            op->run(size, 1);
        }
        if (pairs.warm) op->run(size, pairs.iters / 10 + 1);
        began = check_now();
        op->run(size, pairs.iters);
        took = (check_now() - began) / pairs.iters / 1000;
    }
    check_barrier();
    if (op->kind == PAIRS_GET) {
        if (pairs.sender) check_same(dest, size, from_peer, what);
    } else if (pairs_target()) {
        if (op->kind == PAIRS_SET)
            check_constant(dest, size, pairs_value(size), what);
        else
            check_same(dest, size, from_peer, what);
        pairs_guards(dest, size, "memory around a put");
    }
    check_barrier();
    return took;
}

static inline int pairs_wanted(const struct pairs_op *op) {
    if (op->kind == PAIRS_GET ? !pairs.gets : !pairs.puts) return 0;
    return !pairs.sections || strchr(pairs.sections, op->section) != NULL;
}

/* Runs all operations over sizes from `first`, each `factor` times the one before, and prints
 * the table. */
static inline void pairs_table(const struct pairs_op *ops, int n, size_t first, size_t factor) {
    size_t size = first;
    int i, last = 0, printer = gasnet_mynode() == 0;
    if (printer) {
        printf("%s: %s per operation, %d ranks, rank 0 with %d, %d iterations, local memory %s the segment\n",
               check_name, pairs.megabytes ? "MB/s" : "us", (int)gasnet_nodes(), (int)pairs.peer, pairs.iters,
               pairs.in ? "in" : "outside");
        printf("%9s", "bytes");
        for (i = 0; i < n; i++)
            if (pairs_wanted(&ops[i])) printf(" %11s", ops[i].title);
        printf("\n");
    }
    if (size > pairs.max) size = pairs.max;
    while (!last) {
        if (printer) printf("%9lu", (unsigned long)size);
        for (i = 0; i < n; i++) {
            double us;
            if (!pairs_wanted(&ops[i])) continue;
            us = pairs_measure(&ops[i], size);
            if (printer) printf(" %11.3f", pairs.megabytes ? (us > 0 ? (double)size / us / 1.048576 : 0) : us);
        }
        if (printer) printf("\n");
        last = size == pairs.max;
        size = size * factor < pairs.max ? size * factor : pairs.max;
    }
}

#endif
