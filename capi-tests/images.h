/* What the test programs of collectives over images share: which images the ranks have, and the
 * functions by which reductions and scans combine. In PAR the ranks have one, two, one, two, ...
 * images, a thread for each. */
#ifndef CAPI_TESTS_IMAGES_H
#define CAPI_TESTS_IMAGES_H

#include "check.h"

#include <gasnet_coll.h>

/* Ranks and images; a rank has two images at most. */
#define RANKS_MOST 72
#define IMAGES_MOST (2 * RANKS_MOST)

/* The functions, by their index. */
#define SUM 0
#define COMPOSE 1

/* An affine map x -> a x + b; composing is associative and not commutative. */
struct map {
    uint32_t a, b;
};

/* The numbers of images of each rank and of all ranks; the first of this rank. */
static gasnet_image_t counts[RANKS_MOST], images, first;
static gasnet_node_t node_of[IMAGES_MOST];
static int local_of[IMAGES_MOST];

static inline void lay_out_images(void) {
    gasnet_node_t node;
    gasnet_image_t i;
    for (node = 0; node < gasnet_nodes(); node++) {
        counts[node] = CHECK_PAR ? 1 + node % 2 : 1;
        if (node == gasnet_mynode()) first = images;
        for (i = 0; i < counts[node]; i++) {
            node_of[images] = node;
            local_of[images++] = (int)i;
        }
    }
}

static inline struct map combined_map(struct map l, struct map r, int func) {
    struct map m;
    m.a = func == COMPOSE ? l.a * r.a : l.a + r.a;
    m.b = func == COMPOSE ? l.b * r.a + r.b : l.b + r.b;
    return m;
}

static inline void combine(void *results, size_t result_count, const void *left, size_t left_count, const void *right,
                           size_t elem_size, int flags, int arg) {
    struct map *to = (struct map *)results;
    const struct map *l = (const struct map *)left, *r = (const struct map *)right;
    size_t i;
    CHECK(result_count == left_count && elem_size == sizeof *to && result_count > 0,
          "a function was called for %lu and %lu of %lu", (unsigned long)result_count, (unsigned long)left_count,
          (unsigned long)elem_size);
    CHECK(((flags & GASNET_COLL_NONCOMM) != 0) == (arg == COMPOSE), "flags %d, argument %d", flags, arg);
    for (i = 0; i < result_count; i++) to[i] = combined_map(l[i], r[i], arg);
}

static inline void images_barrier(int name) {
    alarm(check_stall);
    CHECK_OK(gasnet_coll_barrier(GASNET_TEAM_ALL, name, GASNET_BARRIERFLAG_IMAGES));
}

/* Called by each image of this rank before its first collective. */
static inline void open_image(int local) {
    gasnet_coll_fn_entry_t table[2];
    table[SUM].fnptr = table[COMPOSE].fnptr = combine;
    table[SUM].flags = 0;
    table[COMPOSE].flags = GASNET_COLL_NONCOMM;
    gasnet_coll_init(CHECK_PAR ? counts : NULL, first + (gasnet_image_t)local, table, 2, 0);
    images_barrier(0);
}

/* Runs a function in each image of this rank. */
static inline void run_images(void (*body)(int local)) {
#if CHECK_PAR
    check_join(check_start((int)counts[gasnet_mynode()], 0, body), (int)counts[gasnet_mynode()]);
#else
    body(0);
#endif
}

#endif
