/* testpieces: vector puts and gets, and small implicit ones, of many pieces at once. The numbers
 * of pieces lie around the limits of descriptors, batches and system calls. Pieces are neighbours,
 * apart, empty, or at the borders of pages; local memory ends where the next page is missing. The
 * target or the initiator compares all bytes, those between the pieces included. */
/* faults: flip_put flip_get skip_sync:portals drop_op:portals */
/* args: 64 1 */
/* nodes: any */
/* threads: both */
#include "check.h"

#include <gasnet_vis.h>

#define USAGE "[rounds] [seed]\n"

#define MOST 1500
#define LONGEST 600
#define AREA ((size_t)MOST * (LONGEST + 1))
/* Most pieces at borders of pages: each has two pages. */
#define BORDERED (AREA / (2 * PAGE))
#define PAGE ((size_t)GASNET_PAGESIZE)
#define GAP 0x5b

enum layout { JOINED, APART, BORDERS, LAYOUTS };
enum form { VECTOR, VECTOR_NBI, EACH_NBI, FORMS };

static const size_t counts[] = {1, 2, 3, 15, 16, 17, 33, 64, 255, 256, 257, 1023, 1024, 1025, MOST, 0};
#define COUNTS (sizeof counts / sizeof *counts)
/* The bytes of each piece; 0: of any lengths, and every third is empty. */
static const size_t lengths[] = {8, 100, 256, 257, LONGEST, 0};
#define LENGTHS (sizeof lengths / sizeof *lengths)

/* One side of a transfer. */
struct side {
    gasnet_memvec_t pieces[MOST];
    size_t extent; /* bytes from its first address to the end of its last piece */
};

static struct side local, remote;
static size_t count, total;
static char *stream, *image, *outside;

/* The lengths of the pieces, the same at both ranks. */
static void measure(uint64_t *state) {
    size_t length = lengths[check_random(state, LENGTHS)], i;
    total = 0;
    for (i = 0; i < count; i++) {
        size_t n = length ? length : i % 3 == 1 ? 0 : 1 + check_random(state, LONGEST);
        local.pieces[i].len = remote.pieces[i].len = n;
        total += n;
    }
}

/* Places the pieces from `base` on. */
static void place(struct side *side, enum layout layout, char *base) {
    size_t i, at = 0;
    for (i = 0; i < count; i++) {
        size_t n = side->pieces[i].len;
        if (layout == BORDERS) at = (2 * i + 1) * PAGE - (i % 2 ? n / 2 : n);
        side->pieces[i].addr = base + at;
        at += n;
        if (n) side->extent = at;
        if (layout == APART) at++;
        /* An empty piece may have any address. */
        if (n == 0 && i % 2) side->pieces[i].addr = NULL;
    }
}

/* The memory of a side as it is when its pieces have the bytes of the stream, in `image`. */
static void draw(const struct side *side, const char *base) {
    size_t i, at = 0;
    memset(image, GAP, side->extent);
    for (i = 0; i < count; i++) {
        size_t n = side->pieces[i].len;
        if (n) memcpy(image + ((char *)side->pieces[i].addr - base), stream + at, n);
        at += n;
    }
}

static void compare(const struct side *side, const char *base, const char *what) {
    size_t i;
    draw(side, base);
    if (memcmp(base, image, side->extent) == 0) return;
    for (i = 0; base[i] == image[i];) i++;
    check_error("%s of %lu pieces, %lu bytes: byte %lu of %lu differs: 0x%02x instead of 0x%02x", what,
                (unsigned long)count, (unsigned long)total, (unsigned long)i, (unsigned long)side->extent,
                (unsigned char)base[i], (unsigned char)image[i]);
}

static void transfer(gasnet_node_t peer, int put, enum form form, int one) {
    gasnet_memvec_t whole;
    size_t i, n = count;
    gasnet_memvec_t *far = remote.pieces;
    /* Neighbours may be one piece of the list. */
    if (one) {
        whole.addr = count ? check_at(peer, 0) : NULL;
        whole.len = total;
        far = &whole;
        n = 1;
    }
    switch (form) {
        case VECTOR:
            if (put) gasnet_putv_bulk(peer, n, far, count, local.pieces);
            else gasnet_getv_bulk(count, local.pieces, peer, n, far);
            break;
        case VECTOR_NBI:
            if (put) gasnet_putv_nbi_bulk(peer, n, far, count, local.pieces);
            else gasnet_getv_nbi_bulk(count, local.pieces, peer, n, far);
            break;
        default:
            for (i = 0; i < count; i++) {
                gasnet_memvec_t *l = &local.pieces[i], *r = &remote.pieces[i];
                if (l->len == 0) continue;
                if (put) gasnet_put_nbi_bulk(peer, r->addr, l->addr, l->len);
                else gasnet_get_nbi_bulk(l->addr, peer, r->addr, l->len);
            }
    }
    if (form != VECTOR) gasnet_wait_syncnbi_all();
}

/* A transfer from or to the next rank. */
static void round_of(size_t number, uint64_t seed) {
    gasnet_node_t me = gasnet_mynode(), peer = (me + 1) % gasnet_nodes();
    uint64_t state = check_mix(seed) ^ check_mix(number);
    int put = (int)check_random(&state, 2), one, in_segment;
    enum form form = (enum form)check_random(&state, FORMS);
    enum layout here = (enum layout)check_random(&state, LAYOUTS), there = (enum layout)check_random(&state, LAYOUTS);
    char *mine = check_at(me, 0), *base;
    struct side own;
    count = counts[number % COUNTS];
    if (count > BORDERED) {
        if (here == BORDERS) here = APART;
        if (there == BORDERS) there = JOINED;
    }
    measure(&state);
    one = there == JOINED && form != EACH_NBI && check_random(&state, 2);
    in_segment = (int)check_random(&state, 2);
    local.extent = remote.extent = 0;
    place(&local, here, outside);
    /* Memory outside ends with the last piece: the next page is missing. */
    base = in_segment ? check_at(me, AREA) : outside + check_round(AREA) - local.extent;
    if (here == BORDERS) base = in_segment ? (char *)check_round((size_t)base) : outside;
    place(&local, here, base);
    place(&remote, there, check_at(peer, 0));
    memcpy(own.pieces, remote.pieces, sizeof own.pieces);
    own.extent = remote.extent;
    place(&own, there, mine);
    check_fill(stream, total, check_mix(me) ^ number);
    if (put) {
        memset(mine, GAP, own.extent);
        draw(&local, base);
        memcpy(base, image, local.extent);
    } else {
        draw(&own, mine);
        memcpy(mine, image, own.extent);
        memset(base, GAP, local.extent);
    }
    check_barrier();
    transfer(peer, put, form, one);
    if (!put) {
        check_fill(stream, total, check_mix(peer) ^ number);
        compare(&local, base, form == EACH_NBI ? "gets" : "a get");
    }
    check_barrier();
    if (put) {
        check_fill(stream, total, check_mix((me + gasnet_nodes() - 1) % gasnet_nodes()) ^ number);
        compare(&own, mine, form == EACH_NBI ? "puts" : "a put");
    }
    check_barrier();
}

int main(int argc, char **argv) {
    size_t rounds, seed, i, bytes = check_round(AREA);
    check_init("testpieces", &argc, &argv);
    rounds = check_arg(argc, argv, 1, 200);
    seed = check_arg(argc, argv, 2, 1);
    if (argc > 3) check_usage(USAGE);
    check_attach(NULL, 0, 2 * AREA + PAGE);
    stream = (char *)malloc(AREA);
    image = (char *)malloc(AREA);
    outside = (char *)mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!stream || !image || outside == MAP_FAILED || mprotect(outside + bytes, PAGE, PROT_NONE) != 0)
        check_error("no memory");
    else
        for (i = 0; i < rounds; i++) {
            check_alive("a round");
            round_of(i, seed);
        }
    check_barrier();
    free(stream);
    free(image);
    munmap(outside, bytes + PAGE);
    check_done();
}
