// A client with the names of GASNet-EX that UPC++ uses (ex_names.tsv): eager messages and
// rendezvous, puts with an event for their source, atomics of all types, vector, indexed and
// strided copies with leaves, and teams with scratch memory. Each rank counts its errors; rank 0
// prints PASS if there are none. Like UPC++ it includes gasnet.h, and expects that of GASNet-EX:
// it is compiled with GASNET_WITH_EX.
#include <gasnet_fwd.h>

#include <gasnet.h>
#include <gasnet_coll.h>
#include <gasnet_ratomic.h>
#include <gasnet_vis.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#if GASNET_RELEASE_VERSION_MAJOR < 2000
#error UPC++ needs GASNet-EX
#endif
static_assert(sizeof(gex_TM_t) == sizeof(uintptr_t) && sizeof(gex_Event_t) == sizeof(uintptr_t), "objects are words");
static_assert(sizeof(gex_AM_SrcDesc_t) <= sizeof(uintptr_t), "objects are words");
static_assert(sizeof(gex_RMA_Value_t) == 8, "values have 8 bytes");

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t world, pair;
static gex_Segment_t segment;
static gex_Rank_t me, ranks, next;
static char *base, *there;
static int64_t errors;
static gasnett_atomic_t arrived = gasnett_atomic_init(0), acknowledged = gasnett_atomic_init(0);

#define CHECK(cond)                                                                                                   \
  do {                                                                                                                \
    if (cond) break;                                                                                                  \
    std::printf("rank %d, line %d: %s is false\n", (int)me, __LINE__, #cond);                                         \
    errors++;                                                                                                         \
  } while (0)
#define SAFE(call)                                                                                                    \
  do {                                                                                                                \
    const int code = (call);                                                                                          \
    if (code == GASNET_OK) break;                                                                                     \
    gasnett_fatalerror("%s returned %s, %s", #call, gasnet_ErrorName(code), gasnet_ErrorDesc(code));                   \
  } while (0)

// Offsets in the segment of each rank.
enum { SCRATCH = 0, WORDS = 65536, LONGS = 2 * 65536, MATRIX = 3 * 65536, SIZE = 4 * 65536 };

static void barrier(gex_TM_t tm) { gex_Event_Wait(gex_Coll_BarrierNB(tm, 0)); }

// ---- messages ----

enum { EAGER_1 = 248, EAGER_3, EAGER_4, LONG_5, LONG_16, ACK };

static gex_Rank_t source(gex_Token_t token) {
  gex_Token_Info_t info;
  const gex_TI_t known = gex_Token_Info(token, &info, GEX_TI_SRCRANK);
  CHECK(known & GEX_TI_SRCRANK);
  return info.gex_srcrank;
}

static void check_text(const void *buf, size_t n, gex_AM_Arg_t length) {
  CHECK(n == (size_t)length);
  for (size_t i = 0; i < n; i++) {
    if (((const unsigned char *)buf)[i] == (unsigned char)(i * 5 + 1)) continue;
    CHECK(!"the payload is another");
    break;
  }
}

static void eager_1(gex_Token_t token, void *buf, size_t n, gex_AM_Arg_t length) {
  source(token);
  check_text(buf, n, length);
  gasnett_atomic_increment(&arrived, GASNETT_ATOMIC_REL);
}
static void eager_3(gex_Token_t token, void *buf, size_t n, gex_AM_Arg_t length, gex_AM_Arg_t hi, gex_AM_Arg_t lo) {
  check_text(buf, n, length);
  CHECK(hi == 7 && lo == (gex_AM_Arg_t)source(token));
  gasnett_atomic_increment(&arrived, GASNETT_ATOMIC_REL);
}
static void eager_4(gex_Token_t token, void *buf, size_t n, gex_AM_Arg_t length, gex_AM_Arg_t hi, gex_AM_Arg_t lo,
                    gex_AM_Arg_t rank) {
  check_text(buf, n, length);
  CHECK(hi == 8 && lo == -1 && rank == (gex_AM_Arg_t)source(token));
  gasnett_atomic_increment(&arrived, GASNETT_ATOMIC_REL);
}
static void long_5(gex_Token_t token, void *buf, size_t n, gex_AM_Arg_t a, gex_AM_Arg_t b, gex_AM_Arg_t c, gex_AM_Arg_t d,
                   gex_AM_Arg_t e) {
  CHECK(buf == base + LONGS && a == 1 && b == 2 && c == 3 && d == 4);
  check_text(buf, n, e);
  gex_AM_ReplyShort2(token, ACK, 0, (gex_AM_Arg_t)me, e);
}
static void long_16(gex_Token_t token, void *buf, size_t n, gex_AM_Arg_t a, gex_AM_Arg_t b, gex_AM_Arg_t c, gex_AM_Arg_t d,
                    gex_AM_Arg_t e, gex_AM_Arg_t f, gex_AM_Arg_t g, gex_AM_Arg_t h, gex_AM_Arg_t i, gex_AM_Arg_t j,
                    gex_AM_Arg_t k, gex_AM_Arg_t l, gex_AM_Arg_t m, gex_AM_Arg_t o, gex_AM_Arg_t p, gex_AM_Arg_t q) {
  const gex_AM_Arg_t all[] = {a, b, c, d, e, f, g, h, i, j, k, l, m, o, p};
  for (int x = 0; x < 15; x++) CHECK(all[x] == x + 1);
  CHECK(buf == base + LONGS + 32768);
  check_text(buf, n, q);
  gex_AM_ReplyShort2(token, ACK, 0, (gex_AM_Arg_t)me, q);
}
static void ack(gex_Token_t token, gex_AM_Arg_t rank, gex_AM_Arg_t) {
  CHECK((gex_Rank_t)rank == source(token));
  gasnett_atomic_increment(&acknowledged, GASNETT_ATOMIC_REL);
}

static void messages() {
  std::vector<unsigned char> text(20000);
  for (size_t i = 0; i < text.size(); i++) text[i] = (unsigned char)(i * 5 + 1);
  const size_t medium = gex_AM_MaxRequestMedium(world, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 4);
  const size_t least = gex_AM_MaxRequestMedium(world, next, NULL, GEX_FLAG_AM_PREPARE_LEAST_ALLOC, 3);
  CHECK(medium >= 256 && least >= 256 && gex_AM_LUBRequestMedium() <= medium);
  CHECK(gex_AM_MaxRequestLong(world, next, GEX_EVENT_NOW, 0, 16) >= text.size());
  const gex_AM_Arg_t n = 200;
  gex_AM_RequestMedium1(world, next, EAGER_1, text.data(), n, GEX_EVENT_NOW, 0, n);
  gex_AM_RequestMedium3(pair, next, EAGER_3, text.data(), n, GEX_EVENT_NOW, 0, n, 7, (gex_AM_Arg_t)me);
  gex_AM_RequestMedium4(world, next, EAGER_4, text.data(), n, GEX_EVENT_NOW, 0, n, 8, -1, (gex_AM_Arg_t)me);
  gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(world, next, NULL, n, least, NULL, 0, 1);
  CHECK(gex_AM_SrcDescSize(sd) >= (size_t)n);
  std::memcpy(gex_AM_SrcDescAddr(sd), text.data(), n);
  gex_AM_CommitRequestMedium1(sd, EAGER_1, n, n);
  sd = gex_AM_PrepareRequestMedium(pair, next, text.data(), n, n, GEX_EVENT_NOW, 0, 3);
  gex_AM_CommitRequestMedium3(sd, EAGER_3, n, n, 7, (gex_AM_Arg_t)me);
  gex_Event_t local = GEX_EVENT_INVALID;
  gex_AM_RequestLong5(world, next, LONG_5, text.data(), text.size(), there + LONGS, &local, 0, 1, 2, 3, 4,
                      (gex_AM_Arg_t)text.size());
  gex_Event_Wait(local);
  gex_AM_RequestLong16(pair, next, LONG_16, text.data(), text.size(), there + LONGS + 32768, GEX_EVENT_GROUP, 0, 1, 2, 3, 4,
                       5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, (gex_AM_Arg_t)text.size());
  gex_NBI_Wait(GEX_EC_AM, 0);
  while (gasnett_atomic_read(&arrived, GASNETT_ATOMIC_ACQ) < 5 || gasnett_atomic_read(&acknowledged, 0) < 2) gasnet_AMPoll();
  barrier(world);
}

// ---- puts and gets ----

static void transfers() {
  std::vector<int> out(5000), back(out.size());
  for (size_t i = 0; i < out.size(); i++) out[i] = (int)(me * 10000 + i);
  const size_t bytes = out.size() * sizeof(int);
  gex_Event_t local = GEX_EVENT_INVALID;
  // The source is free after the leaf; the data are there after the root.
  gex_Event_t done = gex_RMA_PutNB(world, next, there + WORDS, out.data(), bytes, &local, 0);
  while (gex_Event_Test(local) != GASNET_OK) gasnet_AMPoll();
  const std::vector<int> sent = out;
  std::memset(out.data(), 0, bytes);
  gex_Event_Wait(done);
  SAFE(gex_RMA_GetBlocking(world, back.data(), next, there + WORDS, bytes, 0));
  CHECK(back == sent);
  done = gex_RMA_PutNB(pair, next, there + WORDS, sent.data(), bytes, GEX_EVENT_NOW, 0);
  gex_Event_Wait(done);
  done = gex_RMA_PutNB(world, next, there + WORDS + bytes, sent.data(), bytes, GEX_EVENT_DEFER, 0);
  gex_Event_Wait(gex_Event_QueryLeaf(done, GEX_EC_LC));
  gex_Event_Wait(done);
  std::memset(back.data(), 0, bytes);
  done = gex_RMA_GetNB(world, back.data(), next, there + WORDS + bytes, bytes, 0);
  gex_Event_Wait(done);
  CHECK(back == sent && !gex_RMA_PutBlocking(world, next, there + WORDS, sent.data(), 64, 0));
  barrier(world);
  const gex_Rank_t before = (me + ranks - 1) % ranks;
  const int *here = (const int *)(base + WORDS);
  for (size_t i = 0; i < out.size(); i++) CHECK(here[i] == (int)(before * 10000 + i) && here[i + out.size()] == here[i]);
  barrier(world);
}

// A matrix of doubles is put in pieces, in three ways; each is got back in another.
static void irregular() {
  enum { N = 24 };
  static double out[N][N], back[N][N];
  double(*far)[N] = (double(*)[N])(there + MATRIX);
  const gex_Flags_t leaf = GEX_FLAG_ENABLE_LEAF_LC;
  gex_Memvec_t from[N], to[N];
  void *addr_from[N], *addr_to[N];
  for (int way = 0; way < 3; way++) {
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++) out[i][j] = me * 1e6 + way * 1e4 + i * N + j;
    std::memset(back, 0, sizeof back);
    for (int i = 0; i < N; i++) {
      // The rows, last first.
      from[i].gex_addr = addr_from[i] = out[N - 1 - i];
      to[i].gex_addr = addr_to[i] = far[N - 1 - i];
      from[i].gex_len = to[i].gex_len = sizeof out[0];
    }
    const ptrdiff_t by_column[] = {sizeof out[0], sizeof out[0][0]}, by_row[] = {sizeof out[0][0], sizeof out[0]};
    const size_t counts[] = {N, N};
    gex_Event_t done;
    switch (way) {
      case 0: done = gex_VIS_VectorPutNB(world, next, N, to, N, from, leaf); break;
      case 1: done = gex_VIS_IndexedPutNB(world, next, N, addr_to, sizeof out[0], N, addr_from, sizeof out[0], leaf); break;
      default: // transposed
        done = gex_VIS_StridedPutNB(world, next, far, by_row, out, by_column, sizeof(double), counts, 2, leaf);
    }
    gex_Event_Wait(gex_Event_QueryLeaf(done, GEX_EC_LC));
    double was[N][N];
    std::memcpy(was, out, sizeof out);
    std::memset(out, 0, sizeof out);
    gex_Event_Wait(done);
    for (int i = 0; i < N; i++) {
      from[i].gex_addr = addr_from[i] = far[i];
      to[i].gex_addr = addr_to[i] = back[i];
    }
    switch (way) {
      case 0: done = gex_VIS_IndexedGetNB(world, N, addr_to, sizeof out[0], next, N, addr_from, sizeof out[0], 0); break;
      case 1: done = gex_VIS_VectorGetNB(world, N, to, next, N, from, 0); break;
      default: done = gex_VIS_StridedGetNB(world, back, by_column, next, far, by_row, sizeof(double), counts, 2, 0);
    }
    gex_Event_Wait(done);
    CHECK(!std::memcmp(was, back, sizeof was));
    barrier(world);
  }
}

// ---- atomics ----

// All ranks add 1 to n times to a number of rank 0; the last values are checked.
#define ATOMICS(T, type)                                                                                              \
  static void atomics_##T(gex_DT_t dt, type *word) {                                                                  \
    gex_AD_t ad;                                                                                                      \
    const int integer = dt != GEX_DT_FLT && dt != GEX_DT_DBL;                                                         \
    const gex_OP_t ops = GEX_OP_ADD | GEX_OP_FADD | GEX_OP_SUB | GEX_OP_FSUB | GEX_OP_MULT | GEX_OP_FMULT | GEX_OP_MIN |  \
                         GEX_OP_FMIN | GEX_OP_MAX | GEX_OP_FMAX | GEX_OP_INC | GEX_OP_FINC | GEX_OP_DEC | GEX_OP_FDEC | \
                         GEX_OP_GET | GEX_OP_SET | GEX_OP_FCAS;                                                       \
    const gex_OP_t bits = GEX_OP_AND | GEX_OP_FAND | GEX_OP_OR | GEX_OP_FOR | GEX_OP_XOR | GEX_OP_FXOR;               \
    gex_AD_Create(&ad, world, dt, integer ? ops | bits : ops, 0);                                                     \
    type old = 0;                                                                                                     \
    auto apply = [&](gex_OP_t op, type first, type second) {                                                          \
      gex_Event_Wait(gex_AD_OpNB_##T(ad, &old, 0, word, op, first, second, GEX_FLAG_AD_REL | GEX_FLAG_AD_ACQ));       \
      return old;                                                                                                     \
    };                                                                                                                \
    if (me == 0) apply(GEX_OP_SET, 10, 0);                                                                            \
    barrier(world);                                                                                                   \
    apply(GEX_OP_ADD, 2, 0);                                                                                          \
    CHECK(apply(GEX_OP_FADD, 3, 0) >= 12);                                                                            \
    apply(GEX_OP_SUB, 1, 0);                                                                                          \
    apply(GEX_OP_FSUB, 1, 0);                                                                                         \
    apply(GEX_OP_INC, 0, 0);                                                                                          \
    apply(GEX_OP_FINC, 0, 0);                                                                                         \
    apply(GEX_OP_DEC, 0, 0);                                                                                          \
    apply(GEX_OP_FDEC, 0, 0);                                                                                         \
    barrier(world);                                                                                                   \
    CHECK(apply(GEX_OP_GET, 0, 0) == (type)(10 + 3 * ranks));                                                         \
    barrier(world);                                                                                                   \
    apply(GEX_OP_MAX, (type)(1000 + me), 0);                                                                          \
    apply(GEX_OP_FMAX, 1, 0);                                                                                         \
    barrier(world);                                                                                                   \
    CHECK(apply(GEX_OP_GET, 0, 0) == (type)(1000 + ranks - 1));                                                       \
    barrier(world);                                                                                                   \
    apply(GEX_OP_MIN, (type)(5 + me), 0);                                                                             \
    apply(GEX_OP_FMIN, 100, 0);                                                                                       \
    barrier(world);                                                                                                   \
    CHECK(apply(GEX_OP_FCAS, 4, 9) == 5);                                                                             \
    barrier(world);                                                                                                   \
    if (me == 0) {                                                                                                    \
      apply(GEX_OP_MULT, 4, 0);                                                                                       \
      CHECK(apply(GEX_OP_FMULT, 2, 0) == 20 && apply(GEX_OP_FCAS, 40, 6) == 40 && apply(GEX_OP_GET, 0, 0) == 6);      \
      if (integer) {                                                                                                  \
        apply(GEX_OP_AND, 3, 0);                                                                                      \
        apply(GEX_OP_OR, 8, 0);                                                                                       \
        apply(GEX_OP_XOR, 1, 0);                                                                                      \
        CHECK(apply(GEX_OP_FAND, 9, 0) == 11 && apply(GEX_OP_FOR, 2, 0) == 9 && apply(GEX_OP_FXOR, 3, 0) == 11);      \
      }                                                                                                               \
    }                                                                                                                 \
    barrier(world);                                                                                                   \
    gex_AD_Destroy(ad);                                                                                               \
  }
ATOMICS(I32, int32_t)
ATOMICS(U32, uint32_t)
ATOMICS(I64, int64_t)
ATOMICS(U64, uint64_t)
ATOMICS(FLT, float)
ATOMICS(DBL, double)

static void atomics(char *first) {
  atomics_I32(GEX_DT_I32, (int32_t *)(first + WORDS));
  atomics_U32(GEX_DT_U32, (uint32_t *)(first + WORDS + 8));
  atomics_I64(GEX_DT_I64, (int64_t *)(first + WORDS + 16));
  atomics_U64(GEX_DT_U64, (uint64_t *)(first + WORDS + 24));
  atomics_FLT(GEX_DT_FLT, (float *)(first + WORDS + 32));
  atomics_DBL(GEX_DT_DBL, (double *)(first + WORDS + 40));
}

// ---- teams and collectives ----

static void longest(const void *a, void *b, size_t n, const void *) {
  for (size_t i = 0; i < n; i++)
    if (std::strlen((const char *)a + 16 * i) > std::strlen((char *)b + 16 * i))
      std::memcpy((char *)b + 16 * i, (const char *)a + 16 * i, 16);
}

static void collectives(gex_TM_t tm) {
  const gex_Rank_t size = gex_TM_QuerySize(tm), rank = gex_TM_QueryRank(tm);
  uint64_t one = rank + 1, sum = 0;
  char word[16] = "", most[16] = "";
  std::memset(word, 'x', rank % 15);
  gex_Event_t sums = gex_Coll_ReduceToOneNB(tm, 0, &sum, &one, GEX_DT_U64, 8, 1, GEX_OP_ADD, NULL, NULL, 0);
  gex_Event_t words = gex_Coll_ReduceToAllNB(tm, most, word, GEX_DT_USER, 16, 1, GEX_OP_USER, longest, NULL, 0);
  gex_Event_Wait(words);
  gex_Event_Wait(sums);
  CHECK(rank != 0 || sum == (uint64_t)size * (size + 1) / 2);
  CHECK(std::strlen(most) == (size > 15 ? 14u : size - 1));
  std::vector<char> data(3000, rank == size - 1 ? 'd' : '-');
  gex_Event_Wait(gex_Coll_BroadcastNB(tm, size - 1, data.data(), data.data(), data.size(), 0));
  CHECK(data[0] == 'd' && data[2999] == 'd');
  barrier(tm);
}

static void teams() {
  static int data;
  const gex_Flags_t size_only = GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED;
  gex_TM_t half = GEX_TM_INVALID, alone = GEX_TM_INVALID;
  const size_t wanted = gex_TM_Split(&half, world, (int)(me % 2), (int)me, NULL, 0, size_only);
  CHECK(wanted > 0 && wanted <= WORDS);
  gex_TM_Split(&half, world, (int)(me % 2), (int)me, base + SCRATCH, wanted, 0);
  gex_TM_SetCData(half, &data);
  CHECK(gex_TM_QueryCData(half) == &data && gex_TM_QueryEP(half) == ep && gex_EP_QueryIndex(ep) == 0);
  CHECK(gex_TM_TranslateRankToJobrank(half, me / 2) == me && gex_TM_TranslateJobrankToRank(half, me) == me / 2);
  CHECK((me ^ 1) >= ranks || gex_TM_TranslateJobrankToRank(half, me ^ 1) == GEX_RANK_INVALID);
  collectives(half);
  // A team of this rank alone, named by its number in the job.
  gex_EP_Location_t self;
  self.gex_rank = me;
  self.gex_ep_index = 0;
  const gex_Flags_t flags = GEX_FLAG_TM_LOCAL_SCRATCH | GEX_FLAG_RANK_IS_JOBRANK;
  const size_t small = gex_TM_Create(&alone, 1, half, &self, 1, NULL, 0, flags | size_only);
  CHECK(small > 0 && small <= WORDS - wanted);
  gex_Addr_t scratch = base + SCRATCH + wanted;
  gex_TM_Create(&alone, 1, half, &self, 1, &scratch, small, flags);
  collectives(alone);
  gex_Memvec_t memory;
  CHECK(gex_TM_Destroy(alone, &memory, 0) && memory.gex_addr == scratch && memory.gex_len == small);
  barrier(world);
  CHECK(gex_TM_Destroy(half, &memory, GEX_FLAG_GLOBALLY_QUIESCED) && memory.gex_addr == base + SCRATCH);
  collectives(world);
}

int main(int argc, char **argv) {
  typedef void (*handler_t)();
  static gex_AM_Entry_t table[] = {
      {EAGER_1, (handler_t)eager_1, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, nullptr, "eager_1"},
      {EAGER_3, (handler_t)eager_3, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 3, nullptr, "eager_3"},
      {EAGER_4, (handler_t)eager_4, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 4, nullptr, "eager_4"},
      {LONG_5, (handler_t)long_5, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 5, nullptr, "long_5"},
      {LONG_16, (handler_t)long_16, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 16, nullptr, "long_16"},
      {ACK, (handler_t)ack, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 2, nullptr, "ack"}};
  (void)argc, (void)argv;
  SAFE(gex_Client_Init(&client, &ep, &world, "upcxx", NULL, NULL, 0));
  me = gex_TM_QueryRank(world);
  ranks = gex_TM_QuerySize(world);
  next = (me + 1) % ranks;
  pair = gex_TM_Pair(ep, 0);
  CHECK(gex_System_QueryJobRank() == me && gex_System_QueryJobSize() == ranks);
  CHECK(SIZE <= gasnet_getMaxLocalSegmentSize() && SIZE % GASNET_PAGESIZE == 0);
  SAFE(gex_Segment_Attach(&segment, world, SIZE));
  SAFE(gex_EP_RegisterHandlers(ep, table, sizeof table / sizeof *table));
  SAFE(gasnet_set_waitmode(GASNET_WAIT_SPINBLOCK));
  gex_RankInfo_t *near, *host;
  gex_Rank_t nears, hosts, mine;
  gex_System_QueryNbrhdInfo(&near, &nears, &mine);
  gex_System_QueryHostInfo(&host, &hosts, nullptr);
  CHECK(near[mine].gex_jobrank == me && nears <= hosts);
  void *own = nullptr, *first = nullptr, *remote = nullptr;
  uintptr_t size = 0;
  gex_Segment_QueryBound(world, me, &own, nullptr, &size);
  CHECK(size == SIZE && own == gex_Segment_QueryAddr(segment));
  gex_Event_Wait(gex_EP_QueryBoundSegmentNB(world, 0, &first, nullptr, &size, 0));
  gex_Event_Wait(gex_EP_QueryBoundSegmentNB(world, next, &remote, nullptr, nullptr, 0));
  CHECK(gex_EP_QueryBoundSegmentNB(world, me, &own, nullptr, &size, GEX_FLAG_IMMEDIATE) == GEX_EVENT_INVALID);
  base = (char *)own;
  there = (char *)remote;
  barrier(world);
  messages();
  transfers();
  irregular();
  atomics((char *)first);
  teams();
  int64_t all = 0;
  gex_Event_Wait(gex_Coll_ReduceToAllNB(world, &all, &errors, GEX_DT_I64, sizeof all, 1, GEX_OP_ADD, NULL, NULL, 0));
  if (me == 0) std::printf("upcxx, %d ranks: %s\n", (int)ranks, all ? "FAIL" : "PASS");
  std::fflush(stdout);
  barrier(world);
  gasnet_exit(all != 0);
}
