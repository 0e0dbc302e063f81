/* What the test programs of GASNet-EX (testex*.c) share beyond check.h: the start of a job by
 * gex_Client_Init and its segment. They are hybrids: check.h counts errors and ends the job by
 * calls of GASNet-1. */
#ifndef CAPI_TESTS_CHECKEX_H
#define CAPI_TESTS_CHECKEX_H

#include <gasnetex.h>

#include "check.h"

static gex_Client_t ex_client;
static gex_EP_t ex_ep;
static gex_TM_t ex_tm;
static gex_Segment_t ex_segment;
static gex_Rank_t ex_me, ex_ranks;

/* Bytes of this process in memory; 0 if the system does not say. */
static inline long ex_resident(void) {
    long all, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f) return 0;
    if (fscanf(f, "%ld %ld", &all, &pages) != 2) pages = 0;
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

/* Starts the job; handlers of check.h are registered, nothing is attached. */
static inline void ex_init(const char *name, int *argc, char ***argv) {
    gex_AM_Entry_t own[] = {
        {CHECK_H_REPORT, (gex_AM_Fn_t)check_report_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, "report"},
        {CHECK_H_VERDICT, (gex_AM_Fn_t)check_verdict_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, "verdict"},
#ifdef GASNET_SEGMENT_EVERYTHING
        {CHECK_H_AREA, (gex_AM_Fn_t)check_area_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, "area"},
#endif
    };
    const char *stall;
    int rc;
    check_name = name;
    rc = gex_Client_Init(&ex_client, &ex_ep, &ex_tm, "TEST", argc, argv, GEX_FLAG_USES_GASNET1);
    if (rc != GASNET_OK) {
        printf("%s: FAIL (gex_Client_Init returned %s)\n", name, gasnet_ErrorName(rc));
        exit(2);
    }
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    stall = getenv("GASNET_TEST_STALL");
    if (stall && atoi(stall) > 0) check_stall = (unsigned)atoi(stall);
    signal(SIGALRM, check_stalled);
    check_alive("before attach");
    ex_me = gex_System_QueryJobRank();
    ex_ranks = gex_System_QueryJobSize();
    CHECK_OK(gex_EP_RegisterHandlers(ex_ep, own, sizeof own / sizeof *own));
}

/* Makes a segment, of memory that the library maps or of our own at an odd address, and binds and
 * publishes it. */
static inline int ex_create(size_t bytes, int own) {
    char *memory = own ? (char *)calloc(1, bytes + 64) + 24 : NULL;
    int rc = gex_Segment_Create(&ex_segment, ex_client, memory, bytes, GEX_MK_HOST, 0);
    if (rc == GASNET_OK) rc = gex_EP_BindSegment(ex_ep, ex_segment, 0);
    if (rc == GASNET_OK) rc = gex_EP_PublishBoundSegment(ex_tm, &ex_ep, 1, 0);
    return rc;
}

static inline void ex_read_segments(void) {
    gex_Rank_t i;
    check_seg = (gasnet_seginfo_t *)calloc(ex_ranks, sizeof *check_seg);
    for (i = 0; i < ex_ranks; i++)
        gex_Event_Wait(gex_EP_QueryBoundSegmentNB(ex_tm, i, &check_seg[i].addr, NULL, &check_seg[i].size, 0));
}

/* Attaches a segment of at least `bytes`, and reads the segment table. With
 * GASNET_TEST_SEGMENT=own or =mapped each rank creates one instead; with =mixed, odd ranks make
 * one of their own memory. In EVERYTHING all memory is exposed before, and there is no segment. */
static inline void ex_attach(size_t bytes) {
    const char *kind = getenv("GASNET_TEST_SEGMENT");
    int rc;
#ifdef GASNET_SEGMENT_EVERYTHING
    uint64_t sent = ex_me, got = ~sent;
    char *there;
    ex_read_segments();
    check_share_areas(check_round(bytes));
    there = (char *)check_seg[(ex_me + 1) % ex_ranks].addr;
    CHECK(!gex_RMA_PutBlocking(ex_tm, (ex_me + 1) % ex_ranks, there, &sent, sizeof sent, 0), "a put was refused");
    CHECK(!gex_RMA_GetBlocking(ex_tm, &got, (ex_me + 1) % ex_ranks, there, sizeof got, 0), "a get was refused");
    CHECK(got == ex_me, "%lu was read before gex_Segment_Attach", (unsigned long)got);
#endif
    rc = kind ? ex_create(check_round(bytes), strcmp(kind, "mixed") ? !strcmp(kind, "own") : ex_me % 2)
              : gex_Segment_Attach(&ex_segment, ex_tm, check_round(bytes));
    if (rc != GASNET_OK) {
        printf("%s: FAIL (gex_Segment_Attach of %lu bytes returned %s)\n", check_name, (unsigned long)check_round(bytes),
               gasnet_ErrorName(rc));
        gasnet_exit(2);
    }
#ifdef GASNET_SEGMENT_EVERYTHING
    CHECK(ex_segment == GEX_SEGMENT_INVALID, "a segment in EVERYTHING");
    memset(check_seg[ex_me].addr, 0, sizeof sent);
#else
    ex_read_segments();
#endif
    check_alive("run");
}

/* A barrier of a team. */
static inline void ex_barrier(gex_TM_t tm) {
    alarm(check_stall);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
}

#endif
