/* testcoll: collectives of random kinds, sizes, roots, flags and forms, several in flight, some
 * blocking in one image and not in another. They are checked byte by byte, with the bytes behind.
 * In PAR the ranks have one, two, one, two, ... images. */
/* faults: flip_coll flip_am drop_am:portals skip_sync */
/* args: 6 1 */
/* nodes: any */
/* threads: both */
#include "images.h"

#define USAGE "[rounds] [seed] [operations, of b s g a e r p]\n"

/* More than have room for their addresses at a time in shared memory. */
#define FLIGHT 16
/* Bytes of the largest block: more than one message carries, or one rank combines alone. */
#define BLOCK 9000
#define MARGIN 64
#define BLANK 0xA5

enum op { BROADCAST, SCATTER, GATHER, GATHER_ALL, EXCHANGE, REDUCE, SCAN, OPS };
static const char letters[] = "bsgaerp";

/* One collective, equal in all images. */
struct plan {
    enum op op;
    gasnet_image_t root;
    size_t n;         /* bytes of a block */
    int in, out;      /* 0 none, 1 my, 2 all */
    int single, many; /* flag; form */
    int nb, aggregate;
    enum { NO_HEAP, ALL_HEAP, ODD_HEAP } heap; /* the images whose memory is outside the segment */
    int mixed;        /* not blocking in every other image */
    int func, inclusive;
};

/* The state of an image. */
struct image {
    gasnet_image_t number;
    int local;
    char *heap;
};

static size_t rounds, seed, area;
static const char *kinds = letters;
static struct image mine[2];
static int aligned; /* the areas of all images have one address */

/* The areas of an image in its rank's segment, or on the caller's heap. */
static char *place(gasnet_image_t image, int f, int dst) {
    return check_at(node_of[image], ((size_t)(local_of[image] * FLIGHT + f) * 2 + (size_t)dst) * area);
}
static char *own(struct image *me, const struct plan *p, int f, int dst) {
    int on_heap = p->heap == ALL_HEAP || (p->heap == ODD_HEAP && me->number % 2);
    return on_heap ? me->heap + ((size_t)f * 2 + (size_t)dst) * area : place(me->number, f, dst);
}

static uint64_t pattern(size_t round, int f, gasnet_image_t from, gasnet_image_t to) {
    return check_mix(seed * 1000003 + round * 64 + (uint64_t)f) ^ ((uint64_t)from << 32) ^ to;
}

/* The numbers of blocks of an image's input and output. */
static size_t inputs(const struct plan *p, gasnet_image_t i) {
    switch (p->op) {
        case BROADCAST: return i == p->root;
        case SCATTER: return i == p->root ? images : 0;
        case EXCHANGE: return images;
        default: return 1;
    }
}
static size_t outputs(const struct plan *p, gasnet_image_t i) {
    switch (p->op) {
        case GATHER: return i == p->root ? images : 0;
        case REDUCE: return i == p->root;
        case SCAN: return p->inclusive || i > 0;
        case GATHER_ALL:
        case EXCHANGE: return images;
        default: return 1;
    }
}

/* The input of image i. */
static void input(const struct plan *p, size_t round, int f, gasnet_image_t i, char *to) {
    size_t k;
    for (k = 0; k < inputs(p, i); k++) check_fill(to + k * p->n, p->n, pattern(round, f, i, (gasnet_image_t)k));
}

/* The combination of the inputs of the images below `end`. */
static void combined(const struct plan *p, size_t round, int f, gasnet_image_t end, char *to) {
    gasnet_image_t i;
    char *next = (char *)malloc(p->n + 1), *all = (char *)malloc(p->n + 1);
    input(p, round, f, 0, to);
    for (i = 1; i < end; i++) {
        size_t count = p->n / sizeof(struct map);
        input(p, round, f, i, next);
        if (count) {
            int flags = p->func == COMPOSE ? GASNET_COLL_NONCOMM : 0;
            combine(all, count, to, count, next, sizeof(struct map), flags, p->func);
        }
        memcpy(to, all, p->n);
    }
    free(next);
    free(all);
}

/* Checks the output of image i. */
static void verify(const struct plan *p, size_t round, int f, gasnet_image_t i, const char *at) {
    char what[100];
    size_t k, n = outputs(p, i);
    snprintf(what, sizeof what, "round %lu.%d, %c of %lu, root %d, image %d", (unsigned long)round, f, letters[p->op],
             (unsigned long)p->n, (int)p->root, (int)i);
    check_constant(at + n * p->n, MARGIN, BLANK, what);
    if (p->op == REDUCE || p->op == SCAN) {
        char *want = (char *)malloc(p->n + 1);
        combined(p, round, f, p->op == REDUCE ? images : p->inclusive ? i + 1 : i ? i : 1, want);
        if (n) CHECK(memcmp(at, want, p->n) == 0, "%s: the result is wrong", what);
        free(want);
        return;
    }
    for (k = 0; k < n; k++) {
        gasnet_image_t from = p->op == BROADCAST || p->op == SCATTER ? p->root : (gasnet_image_t)k;
        gasnet_image_t to = p->op == SCATTER || p->op == EXCHANGE ? i : 0;
        check_same(at + k * p->n, p->n, pattern(round, f, from, to), what);
    }
}

static gasnet_coll_handle_t start(struct image *me, const struct plan *p, int f) {
    static const int ins[] = {GASNET_COLL_IN_NOSYNC, GASNET_COLL_IN_MYSYNC, GASNET_COLL_IN_ALLSYNC};
    static const int outs[] = {GASNET_COLL_OUT_NOSYNC, GASNET_COLL_OUT_MYSYNC, GASNET_COLL_OUT_ALLSYNC};
    int flags = ins[p->in] | outs[p->out] | (p->single ? GASNET_COLL_SINGLE : GASNET_COLL_LOCAL);
    void **dsts = (void **)malloc(images * sizeof *dsts), **srcs = (void **)malloc(images * sizeof *srcs);
    char *dst = own(me, p, f, 1), *src = own(me, p, f, 0);
    size_t n = p->n, each = sizeof(struct map), count = n / each;
    gasnet_image_t i, root = p->root;
    gasnet_coll_handle_t h = GASNET_COLL_INVALID_HANDLE;
    if (p->aggregate) flags |= GASNET_COLL_AGGREGATE;
    if (!p->heap) flags |= GASNET_COLL_SRC_IN_SEGMENT | GASNET_COLL_DST_IN_SEGMENT;
    flags |= p->op != SCAN ? 0 : p->inclusive ? GASNET_COLL_INCLUSIVE_SCAN : GASNET_COLL_EXCLUSIVE_SCAN;
    /* Under SINGLE the addresses of all images, otherwise of this rank's images. */
    if (p->single) {
        for (i = 0; i < images; i++) {
            dsts[i] = place(i, f, 1);
            srcs[i] = place(i, f, 0);
        }
        /* The root's side is one address in the forms for many as well. */
        if (p->op == BROADCAST || p->op == SCATTER) src = place(root, f, 0);
        if (p->op == GATHER || p->op == REDUCE) dst = place(root, f, 1);
    } else {
        for (i = 0; i < counts[gasnet_mynode()]; i++) {
            dsts[i] = own(&mine[i], p, f, 1);
            srcs[i] = own(&mine[i], p, f, 0);
        }
    }
#define FORMS(NAME, ONE, MANY)                                                     \
    if (p->nb) h = p->many ? gasnet_coll_##NAME##M_nb MANY : gasnet_coll_##NAME##_nb ONE; \
    else if (p->many) gasnet_coll_##NAME##M MANY;                                  \
    else gasnet_coll_##NAME ONE
    switch (p->op) {
        case BROADCAST:
            FORMS(broadcast, (GASNET_TEAM_ALL, dst, root, src, n, flags), (GASNET_TEAM_ALL, dsts, root, src, n, flags));
            break;
        case SCATTER:
            FORMS(scatter, (GASNET_TEAM_ALL, dst, root, src, n, flags), (GASNET_TEAM_ALL, dsts, root, src, n, flags));
            break;
        case GATHER:
            FORMS(gather, (GASNET_TEAM_ALL, root, dst, src, n, flags), (GASNET_TEAM_ALL, root, dst, srcs, n, flags));
            break;
        case GATHER_ALL:
            FORMS(gather_all, (GASNET_TEAM_ALL, dst, src, n, flags), (GASNET_TEAM_ALL, dsts, srcs, n, flags));
            break;
        case EXCHANGE:
            FORMS(exchange, (GASNET_TEAM_ALL, dst, src, n, flags), (GASNET_TEAM_ALL, dsts, srcs, n, flags));
            break;
        case REDUCE:
            FORMS(reduce, (GASNET_TEAM_ALL, root, dst, src, 0, 0, each, count, p->func, p->func, flags),
                  (GASNET_TEAM_ALL, root, dst, srcs, 0, 0, each, count, p->func, p->func, flags));
            break;
        default:
            FORMS(scan, (GASNET_TEAM_ALL, dst, 0, 0, src, 0, 0, each, count, p->func, p->func, flags),
                  (GASNET_TEAM_ALL, dsts, 0, 0, srcs, 0, 0, each, count, p->func, p->func, flags));
    }
    /* Lists belong to the library until the sync, like memory; the list of an operation in
     * flight lives until the end of the program. */
    if (!p->nb) {
        free(dsts);
        free(srcs);
    }
    return h;
}

/* Chooses the collectives of a round, equally in all images. */
static void choose(struct plan *p, uint64_t *state) {
    static const size_t sizes[] = {8, 16, 64, 256, 264, 2048, BLOCK};
    int f;
    for (f = 0; f < FLIGHT; f++, p++) {
        memset(p, 0, sizeof *p);
        p->op = (enum op)(strchr(letters, kinds[check_random(state, strlen(kinds))]) - letters);
        p->root = (gasnet_image_t)check_random(state, images);
        p->n = check_random(state, 3) ? sizes[check_random(state, 7)] : 1 + check_random(state, BLOCK);
        /* Some have no elements: their functions are not called. */
        if (p->op == REDUCE || p->op == SCAN) p->n = check_random(state, 16) ? (p->n + 7) / 8 * 8 : 0;
        p->in = (int)check_random(state, 3);
        p->out = (int)check_random(state, 3);
        p->heap = check_random(state, 3) ? NO_HEAP : check_random(state, 2) ? ALL_HEAP : ODD_HEAP;
        p->many = (int)check_random(state, 2);
        p->single = (p->many || aligned) && !p->heap && check_random(state, 2);
        p->nb = check_random(state, 3) != 0;
        p->aggregate = p->nb && f + 1 < FLIGHT && check_random(state, 4) == 0;
        p->mixed = !p->aggregate && check_random(state, 3) == 0;
        p->func = (int)check_random(state, 2);
        p->inclusive = (int)check_random(state, 2);
    }
}

static void finish(gasnet_coll_handle_t *h, int how) {
    int f, rc;
    switch (how) {
        case 0:
            for (f = 0; f < FLIGHT; f++) gasnet_coll_wait_sync(h[f]);
            break;
        case 1: gasnet_coll_wait_sync_all(h, FLIGHT); break;
        case 2:
            for (f = FLIGHT - 1; f >= 0; f--) GASNET_BLOCKUNTIL(gasnet_coll_try_sync(h[f]) == GASNET_OK);
            break;
        case 3:
            do {
                rc = gasnet_coll_try_sync_all(h, FLIGHT);
                CHECK(rc == GASNET_OK || rc == GASNET_ERR_NOT_READY, "try_sync_all returned %d", rc);
            } while (rc != GASNET_OK);
            break;
        default:
            for (f = 0; f < FLIGHT; f++) gasnet_coll_wait_sync_some(h, FLIGHT);
            GASNET_BLOCKUNTIL(gasnet_coll_try_sync_some(h, FLIGHT) == GASNET_OK);
    }
    if (how == 1 || how > 2)
        for (f = 0; f < FLIGHT; f++) CHECK(h[f] == GASNET_COLL_INVALID_HANDLE, "a synced handle of an array stays");
}

static void one_round(struct image *me, size_t round, uint64_t *state) {
    struct plan plan[FLIGHT];
    gasnet_coll_handle_t h[FLIGHT];
    gasnet_image_t next = (me->number + 1) % images;
    int f, barrier_before = 0, barrier_after = 0, how;
    char *copy = (char *)malloc(area);
    choose(plan, state);
    how = (int)check_random(state, 5);
    for (f = 0; f < FLIGHT; f++) {
        struct plan *p = &plan[f];
        if (p->mixed) p->nb = (int)((me->number + (unsigned)f) % 2);
        memset(own(me, p, f, 1), BLANK, area);
        if (p->in != 2 || p->heap) input(p, round, f, me->number, own(me, p, f, 0));
        barrier_before |= p->in == 0;
        barrier_after |= p->out == 0;
    }
    if (barrier_before) images_barrier((int)round);
    for (f = 0; f < FLIGHT; f++) {
        struct plan *p = &plan[f];
        /* Under ALLSYNC, another image may write the input until that image calls. */
        if (p->in == 2 && !p->heap && inputs(p, next)) {
            /* Often, the other one has called by now. */
            if ((round + (unsigned)f + me->number) % 3 == 0) gasnett_sched_yield();
            input(p, round, f, next, copy);
            gasnet_put_bulk(node_of[next], place(next, f, 0), copy, inputs(p, next) * p->n);
        }
        h[f] = start(me, p, f);
    }
    for (f = 0; f < FLIGHT; f++)
        if (plan[f].aggregate) h[f] = GASNET_COLL_INVALID_HANDLE;
    finish(h, how);
    /* After MYSYNC and ALLSYNC an input is the client's again. */
    for (f = 0; f < FLIGHT; f++)
        if (plan[f].out) memset(own(me, &plan[f], f, 0), BLANK, area);
    if (barrier_after) images_barrier(-1 - (int)round);
    for (f = 0; f < FLIGHT; f++) {
        struct plan *p = &plan[f];
        verify(p, round, f, me->number, own(me, p, f, 1));
        if (p->out == 2 && !p->heap) {
            gasnet_get_bulk(copy, node_of[next], place(next, f, 1), outputs(p, next) * p->n + MARGIN);
            verify(p, round, f, next, copy);
        }
    }
    free(copy);
    images_barrier((int)round);
}

static void body(int id) {
    struct image *me = &mine[id];
    uint64_t state = seed;
    size_t round;
    open_image(id);
    for (round = 0; round < rounds; round++) {
        if (id == 0) check_alive("a round");
        one_round(me, round, &state);
    }
}

int main(int argc, char **argv) {
    gasnet_image_t i;
    check_init("testcoll", &argc, &argv);
    rounds = check_arg(argc, argv, 1, 40);
    seed = check_arg(argc, argv, 2, 1);
    if (argc > 3) kinds = argv[3];
    if (gasnet_nodes() > RANKS_MOST || strspn(kinds, letters) != strlen(kinds) || !*kinds || argc > 4) check_usage(USAGE);
    lay_out_images();
    area = (images * BLOCK + MARGIN + 63) / 64 * 64;
    check_attach(NULL, 0, 2 * FLIGHT * 2 * area);
    for (i = 0; i < counts[gasnet_mynode()]; i++) {
        mine[i].number = first + i;
        mine[i].local = (int)i;
        mine[i].heap = (char *)malloc(FLIGHT * 2 * area);
    }
    aligned = 1;
    for (i = 1; i < images; i++) aligned &= place(i, 0, 0) == place(0, 0, 0);
    run_images(body);
    check_barrier();
    check_done();
}
