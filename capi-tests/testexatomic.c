/* testexatomic: remote atomics of GASNet-EX: every operation of every type alone, and all
 * ranks at once on the same numbers. In GASNET_SEGMENT_EVERYTHING with an argument, one operation
 * that must end the job: unmapped_add, unmapped_fetch, read_only_add or misaligned_add. */
/* faults: skip_atomic drop_am:portals */
/* args: 50 */
/* nodes: any */
/* threads: both */
#include "checkex.h"

#include <ctype.h>
#include <sys/mman.h>

#define FLOATS (GEX_OP_SET | GEX_OP_GET | GEX_OP_SWAP | GEX_OP_CAS | GEX_OP_FCAS | GEX_OP_ADD | GEX_OP_SUB | GEX_OP_MULT | \
                GEX_OP_MIN | GEX_OP_MAX | GEX_OP_INC | GEX_OP_DEC | GEX_OP_FADD | GEX_OP_FSUB | GEX_OP_FMULT | GEX_OP_FMIN | \
                GEX_OP_FMAX | GEX_OP_FINC | GEX_OP_FDEC)
#define INTEGERS (FLOATS | GEX_OP_AND | GEX_OP_OR | GEX_OP_XOR | GEX_OP_FAND | GEX_OP_FOR | GEX_OP_FXOR)

/* One operation on a number that no other rank uses: the new value, computed here. */
#define TYPE(name, type, ops, bits) \
    static type next_##name(gex_OP_t op, type old, type a, type b) { \
        switch (op) { \
            case GEX_OP_SET: case GEX_OP_SWAP: return a; \
            case GEX_OP_CAS: case GEX_OP_FCAS: return old == a ? b : old; \
            case GEX_OP_ADD: case GEX_OP_FADD: return (type)(old + a); \
            case GEX_OP_SUB: case GEX_OP_FSUB: return (type)(old - a); \
            case GEX_OP_MULT: case GEX_OP_FMULT: return (type)(old * a); \
            case GEX_OP_MIN: case GEX_OP_FMIN: return old < a ? old : a; \
            case GEX_OP_MAX: case GEX_OP_FMAX: return old > a ? old : a; \
            case GEX_OP_INC: case GEX_OP_FINC: return (type)(old + 1); \
            case GEX_OP_DEC: case GEX_OP_FDEC: return (type)(old - 1); \
            bits(type) \
        } \
        return old; \
    } \
    static void one_by_one_##name(size_t iters) { \
        gex_AD_t ad; \
        gex_Rank_t peer = check_peer(); \
        type *there = (type *)(void *)check_at(peer, 8), value = (type)3, got; \
        gex_Event_t event; \
        size_t i; \
        int bit; \
        gex_AD_Create(&ad, ex_tm, GEX_DT_##name, ops, 0); \
        CHECK(gex_AD_QueryDT(ad) == GEX_DT_##name && gex_AD_QueryOps(ad) == (ops) && gex_AD_QueryTM(ad) == ex_tm, "the domain"); \
        CHECK(gex_AD_QueryCData(ad) == NULL, "a pointer of the domain"); \
        gex_AD_SetCData(ad, &got); \
        CHECK(gex_AD_QueryCData(ad) == &got, "the pointer of the domain was lost"); \
        gex_Event_Wait(gex_AD_OpNB_##name(ad, NULL, peer, there, GEX_OP_SET, value, 0, 0)); \
        for (i = 0; i < iters; i++) { \
            for (bit = 0; bit < 32; bit++) { \
                gex_OP_t op = (gex_OP_t)1 << bit; \
                type a = (type)(int)(i % 3 + 1), b = (type)(int)(i % 5), want; \
                if (!((ops) & op)) continue; \
                if (op == GEX_OP_CAS || op == GEX_OP_FCAS) a = i % 2 ? value : (type)(value + 1); \
                want = next_##name(op, value, a, b); \
                got = (type)77; \
                if (i % 2) { \
                    event = gex_AD_OpNB_##name(ad, bit >= 15 ? &got : NULL, peer, there, op, a, b, GEX_FLAG_AD_REL | GEX_FLAG_AD_ACQ); \
                    gex_Event_Wait(event); \
                } else { \
                    CHECK(gex_AD_OpNBI_##name(ad, bit >= 15 ? &got : NULL, peer, there, op, a, b, GEX_FLAG_RANK_IS_JOBRANK) == 0, "NBI"); \
                    gex_NBI_Wait(op == GEX_OP_SET ? GEX_EC_PUT : op == GEX_OP_GET ? GEX_EC_GET : GEX_EC_RMW, 0); \
                } \
                if (bit >= 15) CHECK(got == value, #name ": operation %d returns %g, not %g", bit, (double)got, (double)value); \
                value = want; \
                gex_Event_Wait(gex_AD_OpNB_##name(ad, &got, peer, there, GEX_OP_GET, 0, 0, 0)); \
                CHECK(got == value, #name ": operation %d gives %g, not %g", bit, (double)got, (double)value); \
                value = got; \
            } \
            value = (type)(int)(i % 50); \
            gex_Event_Wait(gex_AD_OpNB_##name(ad, NULL, peer, there, GEX_OP_SET, value, 0, 0)); \
        } \
        ex_barrier(ex_tm); \
        gex_AD_Destroy(ad); \
    } \
    /* All ranks add to all numbers, and take turns by compare and swap. */ \
    static void together_##name(size_t iters) { \
        gex_AD_t ad; \
        gex_Rank_t r; \
        size_t i; \
        type old, mine; \
        memset(check_at(ex_me, 64), 0, 16); \
        gex_AD_Create(&ad, ex_tm, GEX_DT_##name, ops, GEX_FLAG_AD_FAVOR_REMOTE); \
        ex_barrier(ex_tm); \
        for (i = 0; i < iters; i++) { \
            for (r = 0; r < ex_ranks; r++) { \
                CHECK(gex_AD_OpNBI_##name(ad, NULL, r, check_at(r, 64), i % 2 ? GEX_OP_ADD : GEX_OP_INC, 1, 0, 0) == 0, "NBI"); \
                gex_Event_Wait(gex_AD_OpNB_##name(ad, &old, r, check_at(r, 72), GEX_OP_GET, 0, 0, 0)); \
                for (;;) { \
                    type before = old; \
                    gex_Event_Wait(gex_AD_OpNB_##name(ad, &old, r, check_at(r, 72), GEX_OP_FCAS, before, (type)(before + 1), 0)); \
                    if (old == before) break; \
                } \
            } \
        } \
        gex_NBI_Wait(GEX_EC_RMW, 0); \
        ex_barrier(ex_tm); \
        gex_Event_Wait(gex_AD_OpNB_##name(ad, &mine, ex_me, check_at(ex_me, 64), GEX_OP_GET, 0, 0, 0)); \
        CHECK(mine == (type)(iters * ex_ranks), #name ": %g additions of %d", (double)mine, (int)(iters * ex_ranks)); \
        gex_Event_Wait(gex_AD_OpNB_##name(ad, &mine, ex_me, check_at(ex_me, 72), GEX_OP_GET, 0, 0, 0)); \
        CHECK(mine == (type)(iters * ex_ranks), #name ": %g swaps of %d", (double)mine, (int)(iters * ex_ranks)); \
        ex_barrier(ex_tm); \
        gex_AD_Destroy(ad); \
    }
/* Opcodes that the compiler knows: in mapped memory the headers do these operations. */
#define CONSTANT(name, type, op) \
    do { \
        type want = next_##name(op, value, a, b); \
        got = value; \
        gex_Event_Wait(gex_AD_OpNB_##name(ad, (op) >= GEX_OP_FAND ? &got : NULL, peer, there, op, a, b, GEX_FLAG_AD_REL)); \
        CHECK(got == value, #name ": " #op " returns %g, not %g", (double)got, (double)value); \
        gex_Event_Wait(gex_AD_OpNB_##name(ad, &got, peer, there, GEX_OP_GET, 0, 0, GEX_FLAG_AD_REL | GEX_FLAG_AD_ACQ)); \
        CHECK(got == want, #name ": " #op " gives %g, not %g", (double)got, (double)want); \
        value = want; \
    } while (0)
#define CONSTANT_BITS(name, type) \
        CONSTANT(name, type, GEX_OP_XOR); CONSTANT(name, type, GEX_OP_FXOR); CONSTANT(name, type, GEX_OP_OR); \
        CONSTANT(name, type, GEX_OP_FOR); CONSTANT(name, type, GEX_OP_AND); CONSTANT(name, type, GEX_OP_FAND);
#define NO_CONSTANT_BITS(name, type)
#define CONSTANTS(name, type, ops, bits) \
    static void constants_##name(void) { \
        gex_AD_t ad; \
        gex_Rank_t peer = check_peer(); \
        type *there = (type *)(void *)check_at(peer, 128), value = (type)0x55, got, a = (type)0x33, b = (type)0x77; \
        gex_AD_Create(&ad, ex_tm, GEX_DT_##name, ops, 0); \
        CHECK(gex_AD_OpNBI_##name(ad, NULL, peer, there, GEX_OP_SET, value, 0, 0) == 0, "NBI"); \
        gex_NBI_Wait(GEX_EC_PUT, 0); \
        CONSTANT(name, type, GEX_OP_ADD); CONSTANT(name, type, GEX_OP_FADD); CONSTANT(name, type, GEX_OP_SUB); \
        CONSTANT(name, type, GEX_OP_FSUB); CONSTANT(name, type, GEX_OP_INC); CONSTANT(name, type, GEX_OP_FINC); \
        CONSTANT(name, type, GEX_OP_DEC); CONSTANT(name, type, GEX_OP_FDEC); CONSTANT(name, type, GEX_OP_FMAX); \
        bits(name, type) \
        CONSTANT(name, type, GEX_OP_MIN); CONSTANT(name, type, GEX_OP_FMIN); CONSTANT(name, type, GEX_OP_MAX); \
        a = (type)2; \
        CONSTANT(name, type, GEX_OP_FMIN); CONSTANT(name, type, GEX_OP_FMULT); \
        CONSTANT(name, type, GEX_OP_CAS); CONSTANT(name, type, GEX_OP_FCAS); \
        a = value; \
        CONSTANT(name, type, GEX_OP_FCAS); CONSTANT(name, type, GEX_OP_SWAP); CONSTANT(name, type, GEX_OP_SET); \
        a = value; \
        CONSTANT(name, type, GEX_OP_CAS); CONSTANT(name, type, GEX_OP_MULT); \
        ex_barrier(ex_tm); \
        gex_AD_Destroy(ad); \
    }
#define BITS(type) \
    case GEX_OP_AND: case GEX_OP_FAND: return (type)(old & a); \
    case GEX_OP_OR: case GEX_OP_FOR: return (type)(old | a); \
    case GEX_OP_XOR: case GEX_OP_FXOR: return (type)(old ^ a);
#define NO_BITS(type)
#define ALL(X) X(I32) X(U32) X(I64) X(U64) X(FLT) X(DBL)
#define INTEGER(name, type) TYPE(name, type, INTEGERS, BITS) CONSTANTS(name, type, INTEGERS, CONSTANT_BITS)
#define FLOAT(name, type) TYPE(name, type, FLOATS, NO_BITS) CONSTANTS(name, type, FLOATS, NO_CONSTANT_BITS)
INTEGER(I32, int32_t)
INTEGER(U32, uint32_t)
INTEGER(I64, int64_t)
INTEGER(U64, uint64_t)
FLOAT(FLT, float)
FLOAT(DBL, double)

/* The minimum and the maximum of a number and what is no number are the number, on each side. */
static void no_number(void) {
    gex_AD_t ad;
    gex_Rank_t peer = check_peer();
    double *there = (double *)(void *)check_at(peer, 128), zero = 0, got;
    double nan = zero / zero;
    gex_OP_t ops[] = {GEX_OP_MIN, GEX_OP_MAX};
    int i;
    gex_AD_Create(&ad, ex_tm, GEX_DT_DBL, FLOATS, 0);
    for (i = 0; i < 8; i++) {
        double before = i % 2 ? nan : 5, operand = i % 2 ? 5 : nan;
        gex_Event_Wait(gex_AD_OpNB_DBL(ad, NULL, peer, there, GEX_OP_SET, before, 0, 0));
        if (i >= 4) gex_Event_Wait(gex_AD_OpNB_DBL(ad, NULL, peer, there, ops[i / 2 % 2], operand, 0, 0));
        else if (i >= 2) gex_Event_Wait(gex_AD_OpNB_DBL(ad, NULL, peer, there, GEX_OP_MIN, operand, 0, 0));
        else gex_Event_Wait(gex_AD_OpNB_DBL(ad, NULL, peer, there, GEX_OP_MAX, operand, 0, 0));
        gex_Event_Wait(gex_AD_OpNB_DBL(ad, &got, peer, there, GEX_OP_GET, 0, 0, 0));
        CHECK(got == 5, "case %d: %g", i, got);
    }
    ex_barrier(ex_tm);
    gex_AD_Destroy(ad);
}

/* Each member of a team stores its number at the member after it, by a domain of either type. */
static void in_domain(gex_AD_t ad, int wide) {
    gex_TM_t tm = gex_AD_QueryTM(ad);
    gex_Rank_t me = gex_TM_QueryRank(tm), size = gex_TM_QuerySize(tm), next = (me + 1) % size;
    gex_Rank_t there = gex_TM_TranslateRankToJobrank(tm, next);
    void *at = check_at(there, 96);
    uint64_t got = 99;
    uint32_t narrow = 99;
    ex_barrier(tm);
    if (wide) gex_Event_Wait(gex_AD_OpNB_U64(ad, NULL, next, at, GEX_OP_SET, me, 0, 0));
    else gex_Event_Wait(gex_AD_OpNB_U32(ad, NULL, there, at, GEX_OP_SET, me, 0, GEX_FLAG_RANK_IS_JOBRANK));
    ex_barrier(tm);
    at = check_at(ex_me, 96);
    if (wide) gex_Event_Wait(gex_AD_OpNB_U64(ad, &got, me, at, GEX_OP_GET, 0, 0, 0));
    else {
        gex_Event_Wait(gex_AD_OpNB_U32(ad, &narrow, ex_me, at, GEX_OP_GET, 0, 0, GEX_FLAG_RANK_IS_JOBRANK));
        got = narrow;
    }
    CHECK(got == (me + size - 1) % size, "rank %d of %d was written by %d", (int)me, (int)size, (int)got);
}

/* Many domains at a time, over all ranks, over them in reverse order, and over all but rank 2,
 * which are unevenly spaced from 4 ranks on. */
static void end_domain(gex_AD_t *ad) {
    ex_barrier(gex_AD_QueryTM(*ad));
    gex_AD_Destroy(*ad);
    *ad = GEX_AD_INVALID;
}
static void in_teams(void) {
    enum { DOMAINS = 40 };
    gex_AD_t ads[DOMAINS];
    gex_TM_t tms[3];
    int i, round;
    tms[0] = ex_tm;
    gex_TM_Split(&tms[1], ex_tm, 0, -(int)ex_me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gex_TM_Split(&tms[2], ex_tm, ex_me == 2, (int)ex_me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    for (i = 0; i < DOMAINS; i++) ads[i] = GEX_AD_INVALID;
    for (round = 0; round < 3; round++) {
        for (i = 0; i < DOMAINS; i++) {
            if (ads[i] == GEX_AD_INVALID)
                gex_AD_Create(&ads[i], tms[i % 3], i % 2 ? GEX_DT_U64 : GEX_DT_U32, GEX_OP_SET | GEX_OP_GET, 0);
            in_domain(ads[i], i % 2);
        }
        for (i = round; i < DOMAINS; i += 3 - round) end_domain(&ads[i]);
    }
    for (i = 0; i < DOMAINS; i++)
        if (ads[i] != GEX_AD_INVALID) end_domain(&ads[i]);
    gex_TM_Destroy(tms[1], NULL, 0);
    gex_TM_Destroy(tms[2], NULL, 0);
}

/* Rank 0 operates on a number that rank 1 does not have, or may not write. */
static void missing(const char *what) {
    char *page = check_at(ex_me, 0), *at = check_at(1, 64);
    uint64_t got = 0;
    gex_AD_t ad;
    gex_AD_Create(&ad, ex_tm, GEX_DT_U64, GEX_OP_ADD | GEX_OP_GET, 0);
    if (ex_me == 1 && !strncmp(what, "unmapped", 8)) munmap(page, GASNET_PAGESIZE);
    if (ex_me == 1 && !strncmp(what, "read_only", 9)) mprotect(page, GASNET_PAGESIZE, PROT_READ);
    ex_barrier(ex_tm);
    if (ex_me == 0) {
        if (!strcmp(what, "misaligned_add")) at += 4;
        /* It may be read. */
        if (!strncmp(what, "read_only", 9)) gex_Event_Wait(gex_AD_OpNB_U64(ad, &got, 1, at, GEX_OP_GET, 0, 0, 0));
        printf("testexatomic: rank 0 names %p of rank 1\n", (void *)at);
        fflush(stdout);
        if (!strcmp(what, "unmapped_fetch")) gex_Event_Wait(gex_AD_OpNB_U64(ad, &got, 1, at, GEX_OP_GET, 0, 0, 0));
        else gex_Event_Wait(gex_AD_OpNB_U64(ad, NULL, 1, at, GEX_OP_ADD, 1, 0, 0));
    }
    ex_barrier(ex_tm);
    check_error("%s went through", what);
}

int main(int argc, char **argv) {
    size_t iters;
    ex_init("testexatomic", &argc, &argv);
    iters = argc > 1 && isalpha((unsigned char)*argv[1]) ? 1 : check_arg(argc, argv, 1, 50);
    ex_attach(4096);
    ex_barrier(ex_tm);
    if (argc > 1 && isalpha((unsigned char)*argv[1])) {
        missing(argv[1]);
        check_done();
    }
#define ONE_BY_ONE(name) one_by_one_##name(iters);
    ALL(ONE_BY_ONE)
#define TOGETHER(name) together_##name(iters); check_alive(#name);
    ALL(TOGETHER)
#define KNOWN(name) constants_##name();
    ALL(KNOWN)
    no_number();
    in_teams();
    check_done();
}
