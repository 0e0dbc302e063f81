/* A client with the names of GASNet-EX that Caffeine, a runtime of Fortran's coarrays, uses
 * (ex_names.tsv), for what it uses them: no active messages. Each rank counts its errors; rank 0
 * prints PASS if there are none. */
#include <gasnetex.h>
#include <gasnet_coll.h>
#include <gasnet_ratomic.h>
#include <gasnet_vis.h>
#include <gasnet_portable_platform.h>
#include <gasnet_tools.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

GASNETT_IDENT(caffeine_config, "$CoarrayConfig: " GASNET_CONFIG_STRING " $");
GASNETT_IDENT(caffeine_conduit, "$CoarrayConduit: " _STRINGIFY(GASNET_CONDUIT_NAME) " $");

#if GASNET_PAR
#define MODE "PAR"
#elif GASNET_SEQ
#define MODE "SEQ"
#else
#error a thread mode that Caffeine does not have
#endif

#define SIDE 16
/* Where things lie in the segment of each rank. */
typedef struct {
  int64_t event, word, cas, bits[3], turn;
  int32_t square[SIDE][SIDE];
} image_t;

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t world;
static gex_Segment_t segment;
static gex_AD_t event_domain = GEX_AD_INVALID, atomic_domain = GEX_AD_INVALID;
static gex_Rank_t me, ranks;
static image_t *mine, *there;
static int64_t errors;
static gasnett_mutex_t output = GASNETT_MUTEX_INITIALIZER;

#define CHECK(cond)                                                                                                   \
  do {                                                                                                                \
    if (cond) break;                                                                                                  \
    gasnett_mutex_lock(&output);                                                                                      \
    printf("rank %d, line %d: %s is false\n", (int)me, __LINE__, #cond);                                              \
    gasnett_mutex_unlock(&output);                                                                                    \
    errors++;                                                                                                         \
  } while (0)
#define SAFE(call)                                                                                                    \
  do {                                                                                                                \
    const int code = (call);                                                                                          \
    if (code != GASNET_OK)                                                                                            \
      gasnett_fatalerror(#call " returned %s, %s", gasnet_ErrorName(code), gasnet_ErrorDesc(code));                    \
  } while (0)

static void sync_all(gex_TM_t team) { gex_Event_Wait(gex_Coll_BarrierNB(team, 0)); }

GASNETT_INLINE(remote)
image_t *remote(gex_Rank_t rank) {
  void *base = NULL;
  uintptr_t size = 0;
  gex_Event_Wait(gex_EP_QueryBoundSegmentNB(world, rank, &base, NULL, &size, 0));
  CHECK(size == gex_Segment_QuerySize(segment));
  return (image_t *)base;
}

/* Puts and gets of whole squares, and of a column of one. */
static void coarrays(gex_Rank_t next) {
  int32_t out[SIDE][SIDE], back[SIDE][SIDE], column[SIDE];
  const ptrdiff_t one = (ptrdiff_t)sizeof(int32_t), row = SIDE * one, last = -one;
  const size_t count = SIDE;
  int i, j;
  for (i = 0; i < SIDE; i++)
    for (j = 0; j < SIDE; j++) out[i][j] = (int32_t)(me * 1000 + (unsigned)(i * SIDE + j));
  CHECK(!gex_RMA_PutBlocking(world, next, there->square, out, sizeof out, 0));
  CHECK(!gex_RMA_GetBlocking(world, back, next, there->square, sizeof back, 0));
  CHECK(!memcmp(out, back, sizeof out));
  /* The third column becomes the first one, upside down. */
  for (i = 0; i < SIDE; i++) column[i] = out[SIDE - 1 - i][0];
  CHECK(!gex_VIS_StridedPutBlocking(world, next, &there->square[0][2], &row, &column[0], &one, sizeof(int32_t), &count, 1, 0));
  CHECK(!gex_VIS_StridedGetBlocking(world, &column[SIDE - 1], &last, next, &there->square[0][2], &row, sizeof(int32_t), &count, 1, 0));
  for (i = 0; i < SIDE; i++) CHECK(column[i] == out[i][0]);
  sync_all(world);
  for (i = 0; i < SIDE; i++) {
    const int32_t before = (int32_t)((me + ranks - 1) % ranks * 1000);
    CHECK(mine->square[i][1] == before + i * SIDE + 1);
    CHECK(mine->square[i][2] == before + (SIDE - 1 - i) * SIDE);
  }
  sync_all(world);
}

/* Rank 0 waits for an event that every rank posts. */
static void events(void) {
  int64_t before = -1;
  gex_AD_OpNBI_I64(event_domain, NULL, 0, &there[0].event, GEX_OP_INC, 0, 0, GEX_FLAG_AD_REL);
  gex_NBI_Wait(GEX_EC_RMW, 0);
  if (me != 0) return;
  for (;;) {
    int64_t count = 0;
    gex_Event_Wait(gex_AD_OpNB_I64(event_domain, &count, me, &mine->event, GEX_OP_GET, 0, 0, 0));
    if (count >= (int64_t)ranks) break;
    gasnet_AMPoll();
  }
  gex_Event_Wait(gex_AD_OpNB_I64(event_domain, &before, me, &mine->event, GEX_OP_FSUB, ranks, 0, GEX_FLAG_AD_ACQ));
  CHECK(before == (int64_t)ranks);
  gex_Event_Wait(gex_AD_OpNB_I64(event_domain, &before, me, &mine->event, GEX_OP_GET, 0, 0, 0));
  CHECK(before == 0);
}

/* All ranks change words of rank 0, named by its rank in the job. */
static void atomics(gex_TM_t team, image_t *first) {
  const gex_Flags_t jobrank = GEX_FLAG_RANK_IS_JOBRANK;
  const int64_t bit = INT64_C(1) << (me % 60);
  int64_t old = -1, n;
#define FETCH(op, at, operand)                                                                                        \
  gex_Event_Wait(gex_AD_OpNB_I64(atomic_domain, &old, 0, at, op, operand, 0, jobrank | GEX_FLAG_AD_REL | GEX_FLAG_AD_ACQ))
  if (me == 0) {
    gex_AD_OpNBI_I64(atomic_domain, NULL, 0, &first->word, GEX_OP_SET, 0, 0, jobrank);
    gex_AD_OpNBI_I64(atomic_domain, NULL, 0, &first->bits[0], GEX_OP_SET, -1, 0, jobrank);
    gex_AD_OpNBI_I64(atomic_domain, NULL, 0, &first->bits[1], GEX_OP_SET, 0, 0, jobrank);
    gex_AD_OpNBI_I64(atomic_domain, NULL, 0, &first->bits[2], GEX_OP_SET, 0, 0, jobrank);
    gex_AD_OpNBI_I64(atomic_domain, NULL, 0, &first->cas, GEX_OP_SET, 0, 0, jobrank);
    gex_NBI_Wait(GEX_EC_RMW, 0);
    FETCH(GEX_OP_GET, &first->word, 0);
  }
  sync_all(team);
  gex_AD_OpNBI_I64(atomic_domain, NULL, 0, &first->word, GEX_OP_ADD, me + 1, 0, jobrank);
  gex_NBI_Wait(GEX_EC_RMW, 0);
  FETCH(GEX_OP_FADD, &first->word, me + 1);
  CHECK(old >= 0 && old < (int64_t)ranks * (ranks + 1));
  FETCH(GEX_OP_FAND, &first->bits[0], ~bit);
  CHECK(old & bit || ranks > 60);
  FETCH(GEX_OP_FOR, &first->bits[1], bit);
  FETCH(GEX_OP_FXOR, &first->bits[2], bit);
  gex_AD_OpNBI_I64(atomic_domain, NULL, 0, &first->bits[0], GEX_OP_AND, ~bit, 0, jobrank);
  gex_AD_OpNBI_I64(atomic_domain, NULL, 0, &first->bits[1], GEX_OP_OR, bit, 0, jobrank);
  gex_AD_OpNBI_I64(atomic_domain, NULL, 0, &first->bits[2], GEX_OP_XOR, bit, 0, jobrank);
  gex_NBI_Wait(GEX_EC_RMW, 0);
  /* The ranks take turns. */
  do {
    gex_Event_Wait(gex_AD_OpNB_I64(atomic_domain, &n, 0, &first->cas, GEX_OP_FCAS, me, me + 1, jobrank));
    gasnet_AMPoll();
  } while (n != (int64_t)me);
  sync_all(team);
  FETCH(GEX_OP_GET, &first->word, 0);
  CHECK(old == (int64_t)ranks * (ranks + 1));
  FETCH(GEX_OP_GET, &first->cas, 0);
  CHECK(old == (int64_t)ranks);
  FETCH(GEX_OP_GET, &first->bits[0], 0);
  CHECK(!(old & bit));
  FETCH(GEX_OP_GET, &first->bits[1], 0);
  CHECK(old & bit);
  FETCH(GEX_OP_GET, &first->bits[2], 0);
  CHECK(!(old & bit));
  sync_all(team);
}

/* A rank waits for a word that another puts: SYNC IMAGES. */
static void turns(gex_Rank_t next) {
  const int64_t go = 1;
  if (me == 0 && ranks > 1) SAFE(gex_RMA_PutBlocking(world, next, &there->turn, &go, sizeof go, 0));
  GASNET_BLOCKUNTIL(ranks == 1 || *(volatile int64_t *)&mine->turn == 1);
  if (me != 0) SAFE(gex_RMA_PutBlocking(world, next, &there->turn, &go, sizeof go, 0));
  sync_all(world);
}

typedef struct { double re, im; } pair_t;
static void multiply(const void *a, void *b, size_t n, const void *factor) {
  const pair_t *x = (const pair_t *)a;
  pair_t *y = (pair_t *)b;
  CHECK(*(const int *)factor == 7);
  for (; n--; x++, y++) {
    const pair_t z = {x->re * y->re - x->im * y->im, x->re * y->im + x->im * y->re};
    *y = z;
  }
}

/* Collectives of a team whose members are those of equal parity. */
static void teams(void) {
  gex_TM_t half = world;
  gex_Rank_t k, size, rank;
  gex_Coll_ReduceFn_t function = multiply;
  int factor = 7;
  int32_t i32, least;
  int64_t i64, sum = 0;
  float flt, most = 0;
  double dbl, total = 0, numbers[100];
  pair_t product = {0, 1}, turned = {0, 1};
  gex_TM_Split(&half, world, (int)(me % 2), (int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  size = gex_TM_QuerySize(half);
  rank = gex_TM_QueryRank(half);
  CHECK(size == (ranks + (me % 2 == 0)) / 2 && rank == me / 2);
  CHECK(gex_TM_TranslateRankToJobrank(half, rank) == me && gex_TM_TranslateJobrankToRank(half, me) == rank);
  CHECK((me ^ 1) >= ranks || gex_TM_TranslateJobrankToRank(half, me ^ 1) == GEX_RANK_INVALID);
  i32 = -(int32_t)rank;
  i64 = rank + 1;
  flt = (float)rank;
  dbl = 0.5;
  gex_Event_Wait(gex_Coll_ReduceToAllNB(half, &least, &i32, GEX_DT_I32, sizeof i32, 1, GEX_OP_MIN, NULL, NULL, 0));
  gex_Event_Wait(gex_Coll_ReduceToAllNB(half, &most, &flt, GEX_DT_FLT, sizeof flt, 1, GEX_OP_MAX, NULL, NULL, 0));
  gex_Event_Wait(gex_Coll_ReduceToOneNB(half, size - 1, &sum, &i64, GEX_DT_I64, sizeof i64, 1, GEX_OP_ADD, NULL, NULL, 0));
  gex_Event_Wait(gex_Coll_ReduceToOneNB(half, 0, &total, &dbl, GEX_DT_DBL, sizeof dbl, 1, GEX_OP_ADD, NULL, NULL, 0));
  gex_Event_Wait(gex_Coll_ReduceToAllNB(half, &product, &turned, GEX_DT_USER, sizeof product, 1, GEX_OP_USER, function, &factor, 0));
  CHECK(least == 1 - (int32_t)size && most == (float)(size - 1));
  CHECK(rank != size - 1 || sum == (int64_t)size * (size + 1) / 2);
  CHECK(rank != 0 || total == 0.5 * size);
  CHECK(product.re == (size % 2 ? 0 : (size % 4 ? -1 : 1)) && product.im == (size % 2 ? (size % 4 == 1 ? 1 : -1) : 0));
  for (k = 0; k < size; k++) {
    int i;
    for (i = 0; i < 100; i++) numbers[i] = rank == k ? k + i * 0.25 : -1;
    gex_Event_Wait(gex_Coll_BroadcastNB(half, k, numbers, numbers, sizeof numbers, 0));
    for (i = 0; i < 100; i++) CHECK(numbers[i] == k + i * 0.25);
  }
  sync_all(half);
  if (me % 2 == 0) {
    gex_AD_Create(&atomic_domain, half, GEX_DT_I64,
                  GEX_OP_GET | GEX_OP_SET | GEX_OP_ADD | GEX_OP_FADD | GEX_OP_AND | GEX_OP_FAND | GEX_OP_OR |
                      GEX_OP_FOR | GEX_OP_XOR | GEX_OP_FXOR | GEX_OP_FCAS,
                  GEX_FLAG_AD_FAVOR_MY_RANK);
  }
  sync_all(world);
}

int main(int argc, char **argv) {
  const int64_t pages = gasnett_getenv_int_withdefault("CAFFEINE_PAGES", 16, 0);
  const double scale = gasnett_getenv_dbl_withdefault("CAFFEINE_SCALE", 1.0);
  const gex_DT_t type = GEX_DT_I64;
  const gex_OP_t ops = GEX_OP_GET | GEX_OP_INC | GEX_OP_FSUB;
  const gex_Flags_t favor = GEX_FLAG_AD_FAVOR_MY_RANK;
  gex_Event_t done;
  image_t *first;
  int64_t all = -1;
  SAFE(gex_Client_Init(&client, &ep, &world, "caffeine", &argc, &argv, 0));
  me = gex_TM_QueryRank(world);
  ranks = gex_TM_QuerySize(world);
  if ((uintptr_t)(pages * GASNET_PAGESIZE) > gasnet_getMaxGlobalSegmentSize())
    gasnett_fatalerror_nopos("no room for %d pages", (int)pages);
  SAFE(gex_Segment_Attach(&segment, world, (uintptr_t)(pages * GASNET_PAGESIZE)));
  mine = (image_t *)gex_Segment_QueryAddr(segment);
  memset(mine, 0, sizeof *mine);
  gasnett_local_wmb();
  first = remote(0);
  there = remote((me + 1) % ranks);
  sync_all(world);
  coarrays((me + 1) % ranks);
  turns((me + 1) % ranks);
  gex_AD_Create(&event_domain, world, type, ops, favor);
  CHECK(event_domain != GEX_AD_INVALID && scale == 1.0);
  there = first;
  events();
  sync_all(world);
  teams();
  if (ranks > 1) {
    /* A domain of half the ranks; the other half has none. */
    CHECK((atomic_domain == GEX_AD_INVALID) == (me % 2));
    atomic_domain = GEX_AD_INVALID;
  }
  gex_AD_Create(&atomic_domain, world, GEX_DT_I64,
                GEX_OP_GET | GEX_OP_SET | GEX_OP_ADD | GEX_OP_FADD | GEX_OP_AND | GEX_OP_FAND | GEX_OP_OR | GEX_OP_FOR |
                    GEX_OP_XOR | GEX_OP_FXOR | GEX_OP_FCAS,
                0);
  atomics(world, first);
  gasnett_nsleep(1000);
  gasnett_local_mb();
  done = gex_Coll_ReduceToAllNB(world, &all, &errors, GEX_DT_I64, sizeof all, 1, GEX_OP_ADD, NULL, NULL, 0);
  gex_Event_Wait(done);
  if (me == 0) printf("caffeine " MODE ", %d ranks: %s\n", (int)ranks, all ? "FAIL" : "PASS");
  gasnett_flush_streams();
  gasnet_exit(all != 0);
  return 1;
}
