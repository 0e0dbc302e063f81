/* testexvis: vector, indexed and strided transfers of GASNet-EX: random sections with strides
 * of both signs, compared with a copy element by element; lists of pieces; all forms of
 * completion; puts that tell their target. */
/* faults: flip_put flip_get */
/* args: 60 */
/* nodes: any */
/* threads: both */
#include "checkex.h"
#include <gasnet_vis.h>

#define AREA (1 << 16)
#define LEVELS 4
#define H_NOTICE 210
/* Where the puts with a notice go. */
#define NOTICED 4096

static unsigned char local[AREA], image[AREA];

/* A section of a array of bytes: where its first element lies in an area of `AREA` bytes. */
struct section { ptrdiff_t strides[LEVELS]; size_t first; };

/* A dense or padded section of random orientation. */
static void choose(struct section *s, size_t elemsz, const size_t *count, size_t levels, uint64_t *random) {
    ptrdiff_t stride = (ptrdiff_t)elemsz;
    size_t low = 0, i;
    for (i = 0; i < levels; i++) {
        ptrdiff_t step = stride + (ptrdiff_t)check_random(random, 3) * 4;
        s->strides[i] = check_random(random, 2) ? step : -step;
        if (s->strides[i] < 0) low += (size_t)step * (count[i] ? count[i] - 1 : 0);
        stride = step * (ptrdiff_t)(count[i] ? count[i] : 1);
    }
    CHECK((size_t)stride < AREA, "a section of %ld bytes", (long)stride);
    s->first = low;
}

/* Calls f with the offsets of each element on both sides. */
static void walk(const struct section *a, const struct section *b, size_t elemsz, const size_t *count, size_t levels,
                 unsigned char *to, const unsigned char *from) {
    size_t index[LEVELS] = {0}, i;
    for (i = 0; i < levels; i++)
        if (!count[i]) return;
    for (;;) {
        ptrdiff_t x = (ptrdiff_t)a->first, y = (ptrdiff_t)b->first;
        for (i = 0; i < levels; i++) {
            x += a->strides[i] * (ptrdiff_t)index[i];
            y += b->strides[i] * (ptrdiff_t)index[i];
        }
        memcpy(to + x, from + y, elemsz);
        for (i = 0; i < levels && ++index[i] == count[i]; i++) index[i] = 0;
        if (i == levels) return;
    }
}

static void sections(uint64_t seed) {
    uint64_t random = seed * 1000;
    gex_Rank_t peer = check_peer();
    char *area = check_at(peer, 0);
    struct section here, there;
    size_t count[LEVELS], levels = check_random(&random, LEVELS + 1), elemsz = check_random(&random, 9) + 1, i;
    gex_Event_t event;
    for (i = 0; i < levels; i++) count[i] = check_random(&random, 6);
    choose(&here, elemsz, count, levels, &random);
    choose(&there, elemsz, count, levels, &random);
    /* A put. */
    check_fill(local, AREA, seed);
    check_fill(image, AREA, seed + 1);
    CHECK(gex_RMA_PutBlocking(ex_tm, peer, area, image, AREA, 0) == 0, "PutBlocking");
    walk(&there, &here, elemsz, count, levels, image, local);
    switch (seed % 3) {
        case 0:
            event = gex_VIS_StridedPutNB(ex_tm, peer, area + there.first, there.strides, local + here.first, here.strides,
                                         elemsz, count, levels, GEX_FLAG_ENABLE_LEAF_LC);
            gex_Event_Wait(gex_Event_QueryLeaf(event, GEX_EC_LC));
            gex_Event_Wait(event);
            break;
        case 1:
            CHECK(gex_VIS_StridedPutNBI(ex_tm, peer, area + there.first, there.strides, local + here.first, here.strides,
                                        elemsz, count, levels, 0) == 0, "NBI");
            gex_NBI_Wait(GEX_EC_PUT, 0);
            break;
        default:
            CHECK(gex_VIS_StridedPutBlocking(ex_tm, peer, area + there.first, there.strides, local + here.first, here.strides,
                                             elemsz, count, levels, 0) == 0, "Blocking");
    }
    CHECK(gex_RMA_GetBlocking(ex_tm, local, peer, area, AREA, 0) == 0, "GetBlocking");
    CHECK(!memcmp(local, image, AREA), "a strided put of %d levels, elements of %d bytes", (int)levels, (int)elemsz);
    /* A get. */
    check_fill(local, AREA, seed + 2);
    memcpy(image, local, AREA);
    {
        static unsigned char remote[AREA];
        CHECK(gex_RMA_GetBlocking(ex_tm, remote, peer, area, AREA, 0) == 0, "GetBlocking");
        walk(&here, &there, elemsz, count, levels, image, remote);
    }
    switch (seed % 3) {
        case 0:
            gex_Event_Wait(gex_VIS_StridedGetNB(ex_tm, local + here.first, here.strides, peer, area + there.first,
                                                there.strides, elemsz, count, levels, 0));
            break;
        case 1:
            CHECK(gex_VIS_StridedGetNBI(ex_tm, local + here.first, here.strides, peer, area + there.first, there.strides,
                                        elemsz, count, levels, 0) == 0, "NBI");
            gex_NBI_Wait(GEX_EC_GET, 0);
            break;
        default:
            CHECK(gex_VIS_StridedGetBlocking(ex_tm, local + here.first, here.strides, peer, area + there.first, there.strides,
                                             elemsz, count, levels, 0) == 0, "Blocking");
    }
    CHECK(!memcmp(local, image, AREA), "a strided get of %d levels, elements of %d bytes", (int)levels, (int)elemsz);
}

/* Sixteen pieces of 16 bytes there, four of 64 here. */
static void lists(uint64_t seed) {
    gex_Rank_t peer = check_peer();
    gex_Memvec_t there[16], here[4];
    void *addrs[16], *mine[4];
    unsigned char back[256];
    int i;
    check_fill(local, 256, seed);
    for (i = 0; i < 16; i++) {
        there[i].gex_addr = addrs[i] = check_at(peer, (size_t)(16 - i) * 40);
        there[i].gex_len = 16;
    }
    for (i = 0; i < 4; i++) {
        here[i].gex_addr = mine[i] = local + i * 64;
        here[i].gex_len = 64;
    }
    if (seed % 2) {
        gex_Event_Wait(gex_VIS_VectorPutNB(ex_tm, peer, 16, there, 4, here, 0));
        memset(local, 0, 256);
        CHECK(gex_VIS_IndexedGetBlocking(ex_tm, 4, mine, 64, peer, 16, addrs, 16, 0) == 0, "IndexedGet");
    } else {
        CHECK(gex_VIS_IndexedPutNBI(ex_tm, peer, 16, addrs, 16, 4, mine, 64, 0) == 0, "IndexedPut");
        gex_NBI_Wait(GEX_EC_ALL, 0);
        memset(local, 0, 256);
        gex_Event_Wait(gex_VIS_VectorGetNB(ex_tm, 4, here, peer, 16, there, 0));
    }
    check_same(local, 256, seed, "lists");
    CHECK(gex_RMA_GetBlocking(ex_tm, back, peer, addrs[15], 16, 0) == 0 && !memcmp(back, local + 240, 16), "the last piece");
    CHECK(gex_VIS_VectorPutBlocking(ex_tm, peer, 0, NULL, 0, NULL, 0) == 0, "no pieces");
}

/* Sections without bytes: what the specification ignores of them need not be valid. */
static void empty_sections(void) {
    const size_t count[2] = {0, 4};
    const ptrdiff_t strides[2] = {8, 8};
    gex_Event_Wait(gex_VIS_StridedPutNB(ex_tm, GEX_RANK_INVALID, NULL, NULL, NULL, NULL, 0, NULL, ~(size_t)0, 0));
    CHECK(!gex_VIS_StridedGetNBI(GEX_TM_INVALID, NULL, NULL, 0, NULL, NULL, 0, NULL, ~(size_t)0, 0), "no bytes");
    CHECK(!gex_VIS_StridedPutBlocking(GEX_TM_INVALID, GEX_RANK_INVALID, NULL, strides, NULL, strides, 8, count, 2, 0), "no elements");
    gex_Event_Wait(gex_VIS_StridedGetNB(ex_tm, NULL, strides, GEX_RANK_INVALID, NULL, strides, 8, count, 2, 0));
}

/* What a put tells its target: what it has put. */
struct notice {
    uint64_t seed, n;
    unsigned char rest[64];
};
static volatile uint64_t notices;

static void notice_h(gex_Token_t token, void *buf, size_t nbytes) {
    struct notice notice;
    gex_Token_Info_t info;
    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    CHECK(info.gex_srcrank == check_peer() && nbytes == sizeof notice, "a notice of %lu bytes, of rank %d", (unsigned long)nbytes,
          (int)info.gex_srcrank);
    memcpy(&notice, buf, sizeof notice);
    check_same(notice.rest, sizeof notice.rest, notice.seed, "a notice");
    /* The data are there before it. */
    check_same((unsigned char *)check_at(ex_me, NOTICED), notice.n, notice.seed + 1, "data before a notice");
    notices++;
}

/* A put that tells its target of it, also one without bytes. Only the next put does so. */
static void noticed(uint64_t seed) {
    gex_Rank_t peer = check_peer();
    char *there = check_at(peer, NOTICED);
    const ptrdiff_t strides[1] = {16};
    const size_t count[2] = {seed % 8 < 4 ? 16 : 0, 0};
    /* Without bytes neither strides nor other counts are read. */
    const size_t none[2] = {0, (size_t)1 << 62};
    const size_t n = seed % 8 < 4 ? 256 : 0;
    struct notice notice;
    gex_Memvec_t to[16], from;
    void *addrs[16], *mine = local;
    int i;
    notice.seed = seed;
    notice.n = n;
    check_fill(notice.rest, sizeof notice.rest, seed);
    check_fill(local, 256, seed + 1);
    for (i = 0; i < 16; i++) {
        addrs[i] = to[i].gex_addr = there + 16 * i;
        to[i].gex_len = n / 16;
    }
    from.gex_addr = local;
    from.gex_len = n;
    gex_VIS_SetPeerCompletionHandler(H_NOTICE, &notice, 1, 0);
    gex_VIS_SetPeerCompletionHandler(0, NULL, 0, 0);
    gex_VIS_SetPeerCompletionHandler(H_NOTICE, &notice, sizeof notice, 0);
    switch (seed % 5) {
        case 0: gex_Event_Wait(gex_VIS_VectorPutNB(ex_tm, peer, 16, to, 1, &from, 0)); break;
        case 1:
            CHECK(gex_VIS_IndexedPutNBI(ex_tm, peer, 16, addrs, n / 16, 1, &mine, n, 0) == 0, "NBI");
            gex_NBI_Wait(GEX_EC_PUT, 0);
            break;
        case 2:
            if (n) {
                CHECK(gex_VIS_StridedPutBlocking(ex_tm, peer, there, strides, local, strides, 16, count, 1, 0) == 0, "Blocking");
            } else {
                CHECK(gex_VIS_StridedPutBlocking(ex_tm, peer, there, NULL, local, NULL, 16, none, 2, 0) == 0, "nothing");
            }
            break;
        case 3: gex_Event_Wait(gex_VIS_StridedPutNB(ex_tm, peer, there, NULL, local, NULL, n, count, n ? 0 : ~(size_t)0, 0)); break;
        default: gasnet_puti_bulk(peer, 16, addrs, n / 16, 1, &mine, n);
    }
    memset(&notice, 0, sizeof notice);
    CHECK(gex_VIS_StridedPutBlocking(ex_tm, peer, there, strides, local, strides, 16, count, 1, 0) == 0, "the put after it");
    GASNET_BLOCKUNTIL(notices > seed);
    CHECK(notices == seed + 1, "%lu notices of %lu", (unsigned long)notices, (unsigned long)seed + 1);
}

int main(int argc, char **argv) {
    gex_AM_Entry_t table[] = {{H_NOTICE, (gex_AM_Fn_t)notice_h, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, NULL, "notice"}};
    size_t iters, i;
    ex_init("testexvis", &argc, &argv);
    iters = check_arg(argc, argv, 1, 60);
    CHECK_OK(gex_EP_RegisterHandlers(ex_ep, table, 1));
    ex_attach(AREA);
    empty_sections();
    for (i = 0; i < iters; i++) {
        ex_barrier(ex_tm);
        sections(i);
        ex_barrier(ex_tm);
        lists(i);
        ex_barrier(ex_tm);
        noticed(i);
        check_alive("transfers");
    }
    ex_barrier(ex_tm);
    check_done();
}
