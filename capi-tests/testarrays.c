/* testarrays: reductions and scans of block-cyclic arrays with random block sizes, offsets,
 * counts, roots, flags and forms, compared with what one rank computes, element by element. The
 * rest of each area stays as it was. In PAR the ranks have one, two, one, two, ... images. */
/* faults: flip_coll skip_sync */
/* args: 60 1 */
/* nodes: any */
/* threads: both */
#include "images.h"

#define USAGE "[rounds] [seed]\n"

#define COUNT 700
#define OFFSET 90
#define BLANK 0xA5
#define FLIGHT 2

/* One operation, equal in all images. */
struct plan {
    int scan, inclusive, func, in, out, nb, heap, many, single;
    gasnet_image_t root;
    size_t count, src_block, src_offset, dst_block, dst_offset;
};

static size_t rounds, seed, area;
static char *heaps[2];

/* The areas of an image for operation f: in its rank's segment, or on the caller's heap. */
static char *place(gasnet_image_t image, int f, int dst) {
    return check_at(node_of[image], (((size_t)local_of[image] * FLIGHT + (size_t)f) * 2 + (size_t)dst) * area);
}
static char *own(int local, const struct plan *p, int f, int dst) {
    return p->heap ? heaps[local] + ((size_t)f * 2 + (size_t)dst) * area : place(first + (gasnet_image_t)local, f, dst);
}

/* Element i of the whole array is on image i / block mod images. Its place there is found by
 * counting, not by the library's formula. */
static size_t place_of(size_t block, size_t index, gasnet_image_t image) {
    size_t i, before = 0;
    for (i = 0; i < index; i++) before += (gasnet_image_t)(i / block % images) == image;
    return before;
}

static struct map element(size_t round, int f, size_t i) {
    uint64_t x = check_mix(seed * 77777 + round * 5000 + (size_t)f * 1000 + i);
    struct map m;
    m.a = (uint32_t)x | 1;
    m.b = (uint32_t)(x >> 32);
    return m;
}

/* Stores the elements of an array that an image has, without the first `skipped` of the array. */
static void store(const struct map *all, size_t skipped, size_t count, size_t block, size_t offset, gasnet_image_t image,
                  struct map *to) {
    size_t i, at = place_of(block, offset, image);
    for (i = 0; i < count; i++) {
        if ((gasnet_image_t)((offset + i) / block % images) != image) continue;
        if (i >= skipped) to[at] = all[i];
        at++;
    }
}

static void verify(const struct plan *p, size_t round, int f, gasnet_image_t image, const char *at) {
    struct map *want = (struct map *)malloc(area), *all = (struct map *)malloc((p->count + 1) * sizeof *all);
    size_t i, skipped = p->scan && !p->inclusive;
    memset(want, BLANK, area);
    /* all[i + skipped] combines the elements 0 to i. */
    for (i = 0; i < p->count; i++) {
        struct map m = element(round, f, i);
        all[i + skipped] = i ? combined_map(all[i + skipped - 1], m, p->func) : m;
    }
    if (p->scan) store(all, skipped, p->count, p->dst_block, p->dst_offset, image, want);
    else if (image == p->root && p->count) want[0] = all[p->count - 1];
    CHECK(memcmp(at, want, area) == 0,
          "round %lu.%d, %s of %lu elements, function %d: blocks of %lu from %lu to blocks of %lu from %lu: image %d is wrong",
          (unsigned long)round, f, !p->scan ? "reduce" : p->inclusive ? "inclusive scan" : "exclusive scan",
          (unsigned long)p->count, p->func, (unsigned long)p->src_block, (unsigned long)p->src_offset,
          (unsigned long)p->dst_block, (unsigned long)p->dst_offset, (int)image);
    free(want);
    free(all);
}

static void choose(struct plan *p, uint64_t *state) {
    static const size_t few[] = {0, 1, 2, 3, 5, 17, 64, 255};
    memset(p, 0, sizeof *p);
    p->scan = (int)check_random(state, 2);
    p->inclusive = (int)check_random(state, 2);
    p->func = (int)check_random(state, 2);
    p->in = (int)check_random(state, 3);
    p->out = (int)check_random(state, 3);
    p->nb = (int)check_random(state, 2);
    p->heap = check_random(state, 3) == 0;
    p->many = (int)check_random(state, 2);
    /* One address stands for all images only where segments are aligned. */
    p->single = p->many && !p->heap && check_random(state, 2);
    p->root = (gasnet_image_t)check_random(state, images);
    p->count = check_random(state, 2) ? few[check_random(state, 8)] : check_random(state, COUNT + 1);
    p->src_block = check_random(state, 4) ? 1 + check_random(state, 40) : p->count + OFFSET;
    p->dst_block = check_random(state, 4) ? 1 + check_random(state, 40) : p->count + OFFSET;
    p->src_offset = check_random(state, 3) ? check_random(state, OFFSET) : 0;
    p->dst_offset = check_random(state, 3) ? check_random(state, OFFSET) : 0;
}

static gasnet_coll_handle_t start(int local, const struct plan *p, int f) {
    static const int ins[] = {GASNET_COLL_IN_NOSYNC, GASNET_COLL_IN_MYSYNC, GASNET_COLL_IN_ALLSYNC};
    static const int outs[] = {GASNET_COLL_OUT_NOSYNC, GASNET_COLL_OUT_MYSYNC, GASNET_COLL_OUT_ALLSYNC};
    int flags = ins[p->in] | outs[p->out] | (p->single ? GASNET_COLL_SINGLE : GASNET_COLL_LOCAL);
    /* Lists belong to the library until the sync; those of this program live until its end. */
    void **dsts = (void **)malloc(images * sizeof *dsts), **srcs = (void **)malloc(images * sizeof *srcs);
    char *dst = own(local, p, f, 1), *src = own(local, p, f, 0);
    size_t each = sizeof(struct map);
    gasnet_image_t i;
    gasnet_coll_handle_t h = GASNET_COLL_INVALID_HANDLE;
    if (!p->heap) flags |= GASNET_COLL_SRC_IN_SEGMENT | GASNET_COLL_DST_IN_SEGMENT;
    if (p->scan) flags |= p->inclusive ? GASNET_COLL_INCLUSIVE_SCAN : GASNET_COLL_EXCLUSIVE_SCAN;
    for (i = 0; i < (p->single ? images : counts[gasnet_mynode()]); i++) {
        dsts[i] = p->single ? place(i, f, 1) : own((int)i, p, f, 1);
        srcs[i] = p->single ? place(i, f, 0) : own((int)i, p, f, 0);
    }
    if (p->single) dst = place(p->root, f, 1);
#define ELEMENTS each, p->count, p->func, p->func, flags
#define FORMS(NAME, ONE, MANY)                                                            \
    if (p->nb) h = p->many ? gasnet_coll_##NAME##M_nb MANY : gasnet_coll_##NAME##_nb ONE; \
    else if (p->many) gasnet_coll_##NAME##M MANY;                                         \
    else gasnet_coll_##NAME ONE
    if (p->scan) {
        FORMS(scan, (GASNET_TEAM_ALL, dst, p->dst_block, p->dst_offset, src, p->src_block, p->src_offset, ELEMENTS),
              (GASNET_TEAM_ALL, dsts, p->dst_block, p->dst_offset, srcs, p->src_block, p->src_offset, ELEMENTS));
    } else {
        FORMS(reduce, (GASNET_TEAM_ALL, p->root, dst, src, p->src_block, p->src_offset, ELEMENTS),
              (GASNET_TEAM_ALL, p->root, dst, srcs, p->src_block, p->src_offset, ELEMENTS));
    }
    return h;
}

static void one_round(int local, size_t round, uint64_t *state) {
    struct plan plan[FLIGHT];
    gasnet_coll_handle_t h[FLIGHT];
    struct map all[COUNT];
    gasnet_image_t image = first + (gasnet_image_t)local;
    size_t i;
    int f, before = 0, after = 0;
    for (f = 0; f < FLIGHT; f++) {
        struct plan *p = &plan[f];
        choose(p, state);
        memset(own(local, p, f, 0), BLANK, area);
        memset(own(local, p, f, 1), BLANK, area);
        for (i = 0; i < p->count; i++) all[i] = element(round, f, i);
        store(all, 0, p->count, p->src_block, p->src_offset, image, (struct map *)own(local, p, f, 0));
        before |= p->in == 0;
        after |= p->out == 0;
    }
    if (before) images_barrier((int)round);
    for (f = 0; f < FLIGHT; f++) h[f] = start(local, &plan[f], f);
    for (f = FLIGHT - 1; f >= 0; f--) gasnet_coll_wait_sync(h[f]);
    if (after) images_barrier(-1 - (int)round);
    for (f = 0; f < FLIGHT; f++) verify(&plan[f], round, f, image, own(local, &plan[f], f, 1));
    images_barrier((int)round);
}

static void body(int local) {
    uint64_t state = seed;
    size_t round;
    open_image(local);
    for (round = 0; round < rounds; round++) {
        if (local == 0) check_alive("a round");
        one_round(local, round, &state);
    }
}

int main(int argc, char **argv) {
    gasnet_image_t i;
    check_init("testarrays", &argc, &argv);
    rounds = check_arg(argc, argv, 1, 60);
    seed = check_arg(argc, argv, 2, 1);
    if (gasnet_nodes() > RANKS_MOST || argc > 3) check_usage(USAGE);
    lay_out_images();
    area = ((COUNT + 2 * OFFSET) * sizeof(struct map) + 63) / 64 * 64;
    check_attach(NULL, 0, 2 * FLIGHT * 2 * area);
    for (i = 0; i < counts[gasnet_mynode()]; i++) heaps[i] = (char *)malloc(FLIGHT * 2 * area);
    run_images(body);
    check_barrier();
    check_done();
}
