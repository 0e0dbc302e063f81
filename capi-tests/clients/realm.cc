// A client with the names of GASNet-EX that Realm, the runtime of Legion, uses (ex_names.tsv): its
// active messages of up to 16 arguments, pairs for every put and get, a thread that polls, and
// several broadcasts at a time. Each rank counts its errors; rank 0 prints PASS if there are none.
#include <gasnetex.h>
#include <gasnet_coll.h>
#include <gasnet_mk.h>
#include <gasnet_tools.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#if defined(GASNET_SEQ) || !defined(GASNET_PAR)
#error Realm is for PAR only
#endif
#if GEX_SPEC_VERSION_MAJOR == 0 && GEX_SPEC_VERSION_MINOR < 12
#error a specification that Realm does not take
#endif
#if GASNET_RELEASE_VERSION_MAJOR == 2020 && GASNET_RELEASE_VERSION_MINOR == 11 && GASNET_RELEASE_VERSION_PATCH == 0
#error a release that Realm does not take
#endif
#ifdef GASNET_CONDUIT_SMP
#error this library is no smp-conduit
#endif

// What Realm takes for granted of sizes and values.
static_assert(sizeof(gex_Client_t) == sizeof(void *) && sizeof(gex_EP_t) == sizeof(void *), "objects");
static_assert(sizeof(gex_TM_t) == sizeof(void *) && sizeof(gex_Segment_t) == sizeof(void *), "objects");
static_assert(sizeof(gex_MK_t) == sizeof(void *) && sizeof(gex_Event_t) == sizeof(void *), "objects");
static_assert(sizeof(gex_AM_SrcDesc_t) == sizeof(void *) && sizeof(gex_Addr_t) == sizeof(void *), "objects");
static_assert(sizeof(gex_Rank_t) == 4 && sizeof(gex_EP_Index_t) == 2 && sizeof(gex_Flags_t) == 4, "numbers");
static_assert(sizeof(gex_AM_Arg_t) == 4 && sizeof(gex_DT_t) == 4 && sizeof(gex_OP_t) == 4, "numbers");
static_assert(sizeof(gex_EP_Capabilities_t) == 4, "numbers");
static_assert(GEX_FLAG_IMMEDIATE == 1 && GEX_DT_U64 == 8 && GEX_OP_ADD == 8 && GEX_EP_CAPABILITY_RMA == 1, "values");
static_assert(GEX_FLAG_AM_PREPARE_LEAST_CLIENT == 1 << 11 && GEX_FLAG_AM_PREPARE_LEAST_ALLOC == 1 << 12, "values");
static_assert(GASNET_OK == 0 && GASNET_ERR_NOT_READY == 10004, "values");

static gex_Rank_t me, ranks;
static std::atomic<uint64_t> errors(0), requests(0), replies(0);
static std::atomic<bool> stop(false);

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
    std::fprintf(stderr, "%s: %s, %s\n", #call, gasnet_ErrorName(code), gasnet_ErrorDesc(code));                      \
    std::abort();                                                                                                     \
  } while (0)

struct Runtime {
  gex_Client_t client;
  gex_EP_t ep;
  gex_TM_t all;
  gex_Segment_t segment;
  char *base;
};
static Runtime *runtime;

enum { SHORT = GEX_AM_INDEX_BASE, MEDIUM, LONG, REPLY, SPARE };
static const size_t PIECE = 1024, AREA = 17 * PIECE; // of each sender; a piece for each number of arguments

// Arguments are numbers from the first on; the first says how many follow.
template <typename... More> static void check_args(int n, gex_AM_Arg_t first, More... more) {
  const gex_AM_Arg_t args[] = {first, more...};
  CHECK((int)(sizeof args / sizeof *args) == n);
  for (int i = 1; i < n; i++) CHECK(args[i] == first + i);
}

static gex_Rank_t source(gex_Token_t token) {
  gex_Token_Info_t info;
  gex_Token_Info(token, &info, GEX_TI_SRCRANK | GEX_TI_EP);
  CHECK(gex_EP_QueryCData(info.gex_ep) == runtime);
  return info.gex_srcrank;
}

static void fill(char *to, size_t n, int seed) {
  for (size_t i = 0; i < n; i++) to[i] = (char)(seed * 7 + (int)i);
}
static void check_bytes(const void *at, size_t n, int seed) {
  const char *bytes = (const char *)at;
  for (size_t i = 0; i < n; i++)
    if (bytes[i] != (char)(seed * 7 + (int)i)) {
      CHECK(!"the payload is another");
      return;
    }
}

// A Medium in memory of the library, which is the faster one where the library says so; else copied
// to it, as Realm does with data that it makes later.
static gex_AM_SrcDesc_t prepare(gex_TM_t pair, gex_Rank_t to, const char *from, size_t size, unsigned n) {
#ifdef GASNET_NATIVE_NP_ALLOC_REQ_MEDIUM
  const size_t most = PIECE;
#else
  const size_t most = size;
#endif
  const gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(pair, to, NULL, size, most, NULL, 0, n);
  CHECK(sd != GEX_AM_SRCDESC_NO_OP && gex_AM_SrcDescSize(sd) >= size);
  std::memcpy(gex_AM_SrcDescAddr(sd), from, size);
  return sd;
}

// Parameters and arguments of a message with n arguments.
#define P1 gex_AM_Arg_t a1
#define P2 P1, gex_AM_Arg_t a2
#define P3 P2, gex_AM_Arg_t a3
#define P4 P3, gex_AM_Arg_t a4
#define P5 P4, gex_AM_Arg_t a5
#define P6 P5, gex_AM_Arg_t a6
#define P7 P6, gex_AM_Arg_t a7
#define P8 P7, gex_AM_Arg_t a8
#define P9 P8, gex_AM_Arg_t a9
#define P10 P9, gex_AM_Arg_t a10
#define P11 P10, gex_AM_Arg_t a11
#define P12 P11, gex_AM_Arg_t a12
#define P13 P12, gex_AM_Arg_t a13
#define P14 P13, gex_AM_Arg_t a14
#define P15 P14, gex_AM_Arg_t a15
#define P16 P15, gex_AM_Arg_t a16
#define A1 a1
#define A2 A1, a2
#define A3 A2, a3
#define A4 A3, a4
#define A5 A4, a5
#define A6 A5, a6
#define A7 A6, a7
#define A8 A7, a8
#define A9 A8, a9
#define A10 A9, a10
#define A11 A10, a11
#define A12 A11, a12
#define A13 A12, a13
#define A14 A13, a14
#define A15 A14, a15
#define A16 A15, a16
#define V1 a
#define V2 V1, a + 1
#define V3 V2, a + 2
#define V4 V3, a + 3
#define V5 V4, a + 4
#define V6 V5, a + 5
#define V7 V6, a + 6
#define V8 V7, a + 7
#define V9 V8, a + 8
#define V10 V9, a + 9
#define V11 V10, a + 10
#define V12 V11, a + 11
#define V13 V12, a + 12
#define V14 V13, a + 13
#define V15 V14, a + 14
#define V16 V15, a + 15

// A handler has as many arguments as its message, so each number has handlers of its own.
#define INDEX(kind, n) (uint8_t)((kind) + 5 * (n))
#define FROM_1(n, send_reply)                                                                                         \
  static void short_##n(gex_Token_t token, P##n) {                                                                    \
    check_args(n, A##n);                                                                                              \
    CHECK(source(token) == (gex_Rank_t)(a1 / 1000));                                                                  \
    requests++;                                                                                                       \
    const gex_AM_Arg_t a = (gex_AM_Arg_t)me * 1000;                                                                   \
    send_reply(token, INDEX(REPLY, n), 0, V##n);                                                                      \
  }                                                                                                                   \
  static void reply_##n(gex_Token_t token, P##n) {                                                                    \
    check_args(n, A##n);                                                                                              \
    CHECK(source(token) == (gex_Rank_t)(a1 / 1000));                                                                  \
    replies++;                                                                                                        \
  }                                                                                                                   \
  static void send_short(std::integral_constant<int, n>, gex_TM_t pair, gex_Rank_t to) {                              \
    const gex_AM_Arg_t a = (gex_AM_Arg_t)me * 1000;                                                                   \
    while (gex_AM_RequestShort##n(pair, to, INDEX(SHORT, n), GEX_FLAG_IMMEDIATE, V##n)) gasnet_AMPoll();              \
  }
#define FROM_2(n)                                                                                                     \
  static void medium_##n(gex_Token_t token, void *buf, size_t nbytes, P##n) {                                         \
    check_args(n, A##n);                                                                                              \
    source(token);                                                                                                    \
    check_bytes(buf, nbytes, a1);                                                                                     \
    requests++;                                                                                                       \
  }                                                                                                                   \
  static void long_##n(gex_Token_t token, void *buf, size_t nbytes, P##n) {                                           \
    check_args(n, A##n);                                                                                              \
    char *const at = runtime->base + source(token) * AREA;                                                            \
    CHECK(buf == at + (n) * PIECE || buf == at);                                                                      \
    check_bytes(buf, nbytes, a1);                                                                                     \
    requests++;                                                                                                       \
  }                                                                                                                   \
  static void send_data(std::integral_constant<int, n>, gex_TM_t pair, gex_Rank_t to, char *there, char *from) {      \
    const gex_AM_Arg_t a = (gex_AM_Arg_t)(me * 1000 + n);                                                             \
    const size_t size = PIECE - n * 16;                                                                               \
    fill(from, size, a);                                                                                              \
    gex_AM_RequestMedium##n(pair, to, INDEX(MEDIUM, n), from, size, GEX_EVENT_NOW, 0, V##n);                          \
    gex_AM_SrcDesc_t sd = prepare(pair, to, from, size, n);                                                           \
    gex_AM_CommitRequestMedium##n(sd, INDEX(MEDIUM, n), size, V##n);                                                  \
    gex_Event_t leaf = GEX_EVENT_INVALID;                                                                             \
    gex_AM_RequestLong##n(pair, to, INDEX(LONG, n), from, size, there + (n) * PIECE, &leaf, 0, V##n);                               \
    while (gex_Event_Test(leaf) == GASNET_ERR_NOT_READY) gasnet_AMPoll();                                             \
  }

FROM_1(1, gex_AM_ReplyShort1)
FROM_1(2, gex_AM_ReplyShort2)
FROM_1(3, gex_AM_ReplyShort3)
FROM_1(4, gex_AM_ReplyShort4)
FROM_1(5, gex_AM_ReplyShort5)
FROM_1(6, gex_AM_ReplyShort6)
FROM_1(7, gex_AM_ReplyShort7)
FROM_1(8, gex_AM_ReplyShort8)
FROM_1(9, gex_AM_ReplyShort9)
FROM_1(10, gex_AM_ReplyShort10)
FROM_1(11, gex_AM_ReplyShort11)
FROM_1(12, gex_AM_ReplyShort12)
FROM_1(13, gex_AM_ReplyShort13)
FROM_1(14, gex_AM_ReplyShort14)
FROM_1(15, gex_AM_ReplyShort15)
FROM_1(16, gex_AM_ReplyShort16)
#define EACH_FROM_2(F) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15) F(16)
EACH_FROM_2(FROM_2)

typedef void (*handler_t)();
#define ROWS_1(n)                                                                                                     \
  {INDEX(SHORT, n), (handler_t)short_##n, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, n, nullptr, "short"},              \
      {INDEX(REPLY, n), (handler_t)reply_##n, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP, n, nullptr, "reply"},
#define ROWS_2(n)                                                                                                     \
  ROWS_1(n){INDEX(MEDIUM, n), (handler_t)medium_##n, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, n, nullptr, "medium"}, \
      {INDEX(LONG, n), (handler_t)long_##n, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, n, nullptr, "long"},

static void messages(gex_TM_t pair, gex_Rank_t to, char *there) {
  std::vector<char> from(PIECE);
#define SEND_1(n) send_short(std::integral_constant<int, n>(), pair, to);
#define SEND_2(n) SEND_1(n) send_data(std::integral_constant<int, n>(), pair, to, there, from.data());
  SEND_1(1)
  EACH_FROM_2(SEND_2)
  // Data that leave with a group of messages.
  const gex_AM_Arg_t a = (gex_AM_Arg_t)(me * 1000 + 2);
  fill(from.data(), PIECE, a);
  gex_AM_RequestLong2(pair, to, INDEX(LONG, 2), from.data(), PIECE, there, GEX_EVENT_GROUP, 0, V2);
  gex_NBI_Wait(GEX_EC_AM, 0);
}

static void limits(gex_TM_t pair, gex_Rank_t to) {
  const gex_Flags_t client = GEX_FLAG_AM_PREPARE_LEAST_CLIENT, library = GEX_FLAG_AM_PREPARE_LEAST_ALLOC;
  const size_t least = gex_AM_LUBRequestMedium();
  CHECK(least >= PIECE && gex_AM_MaxRequestMedium(pair, to, GEX_EVENT_NOW, client, 16) >= least);
  CHECK(gex_AM_MaxRequestMedium(pair, to, NULL, library, 2) >= least);
  CHECK(gex_AM_MaxRequestLong(pair, to, GEX_EVENT_NOW, 0, 16) >= PIECE);
}

// Puts and gets of every rank by pairs; several are in flight.
static void transfers(gex_TM_t pair, const std::vector<uintptr_t> &bases) {
  std::vector<char> out(AREA / 2), in(ranks * (AREA / 2));
  std::vector<gex_Event_t> events;
  const size_t at = (ranks + me) * AREA;
  fill(out.data(), out.size(), (int)me + 3);
  for (gex_Rank_t rank = 0; rank < ranks; rank++) {
    gex_Event_t local = GEX_EVENT_INVALID;
    gex_Event_t done = gex_RMA_PutNB(pair, rank, (void *)(bases[rank] + at), out.data(), out.size(),
                                     rank % 2 ? GEX_EVENT_DEFER : &local, 0);
    CHECK(done != GEX_EVENT_NO_OP);
    gex_Event_Wait(local);
    events.push_back(done);
  }
  gex_Event_WaitAll(events.data(), events.size(), 0);
  events.clear();
  for (gex_Rank_t rank = 0; rank < ranks; rank++)
    events.push_back(gex_RMA_GetNB(pair, in.data() + rank * out.size(), rank, (void *)(bases[rank] + at), out.size(), 0));
  gex_Event_WaitAll(events.data(), events.size(), 0);
  for (gex_Rank_t rank = 0; rank < ranks; rank++) check_bytes(in.data() + rank * out.size(), out.size(), (int)me + 3);
}

// The addresses of all segments, by a broadcast of each rank; all at once.
static std::vector<uintptr_t> exchange(gex_TM_t all) {
  std::vector<uintptr_t> bases(ranks);
  std::vector<gex_Event_t> events;
  bases[me] = (uintptr_t)runtime->base;
  for (gex_Rank_t rank = 0; rank < ranks; rank++) {
    events.push_back(gex_Coll_BroadcastNB(all, rank, &bases[rank], &bases[rank], sizeof bases[rank], 0));
    if (events.size() == 16) {
      gex_Event_WaitAll(events.data(), events.size(), 0);
      events.clear();
    }
  }
  gex_Event_WaitAll(events.data(), events.size(), 0);
  for (gex_Rank_t rank = 0; rank < ranks; rank++) CHECK(bases[rank] != 0);
  return bases;
}

// What this library has one or none of says so, in silence.
static void refusals(Runtime *r) {
  gex_EP_t other = GEX_EP_INVALID;
  gex_Segment_t segment = GEX_SEGMENT_INVALID;
  const gex_EP_Capabilities_t wanted = GEX_EP_CAPABILITY_RMA;
  CHECK(GASNET_MAXEPS == 1 && gex_EP_Create(&other, r->client, wanted, 0) != GASNET_OK && other == GEX_EP_INVALID);
  CHECK(gex_Segment_Create(&segment, r->client, r->base, AREA, GEX_MK_HOST, 0) == GASNET_OK);
  CHECK(gex_EP_BindSegment(r->ep, segment, 0) != GASNET_OK);
#if defined(GASNET_HAVE_MK_CLASS_CUDA_UVA) || defined(GASNET_HAVE_MK_CLASS_HIP)
#error memory of devices, which this library does not know
#endif
  gex_MK_t kind = GEX_MK_INVALID;
  gex_MK_Create_args_t cuda, hip;
  cuda.gex_flags = hip.gex_flags = 0;
  cuda.gex_class = GEX_MK_CLASS_CUDA_UVA;
  cuda.gex_args.gex_class_cuda_uva.gex_CUdevice = 0;
  hip.gex_class = GEX_MK_CLASS_HIP;
  hip.gex_args.gex_class_hip.gex_hipDevice = 0;
  CHECK(gex_MK_Create(&kind, r->client, &cuda, 0) != GASNET_OK && gex_MK_Create(&kind, r->client, &hip, 0) != GASNET_OK);
  CHECK(gex_EP_PublishBoundSegment(r->all, &r->ep, 1, 0) == GASNET_OK);
}

static void neighbours() {
  gex_RankInfo_t *near = nullptr, *host = nullptr;
  gex_Rank_t nears = 0, hosts = 0, mine = 0;
  gex_System_QueryNbrhdInfo(&near, &nears, nullptr);
  gex_System_QueryHostInfo(&host, &hosts, &mine);
  CHECK(nears >= 1 && nears <= hosts && hosts <= ranks && host[mine].gex_jobrank == me);
  bool found = false;
  for (gex_Rank_t i = 0; i < nears; i++) found |= near[i].gex_jobrank == me;
  CHECK(found);
}

int main(int argc, char **argv) {
  static gex_AM_Entry_t table[] = {
      ROWS_1(1) EACH_FROM_2(ROWS_2) // and a row whose index the library chooses
      {0, (handler_t)short_1, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, nullptr, "another"}};
  static Runtime r;
  runtime = &r;
  gex_System_SetVerboseErrors(0);
  SAFE(gex_Client_Init(&r.client, &r.ep, &r.all, "realm", &argc, &argv, 0));
  me = gex_TM_QueryRank(r.all);
  ranks = gex_TM_QuerySize(r.all);
  gex_EP_SetCData(r.ep, &r);
  CHECK(gex_EP_QueryIndex(r.ep) == 0 && gex_EP_QuerySegment(r.ep) == GEX_SEGMENT_INVALID);
  SAFE(gex_EP_RegisterHandlers(r.ep, table, sizeof table / sizeof *table));
  SAFE(gex_Segment_Attach(&r.segment, r.all, (2 * ranks * AREA + 65535) / 65536 * 65536));
  r.base = (char *)gex_Segment_QueryAddr(r.segment);
  CHECK(gex_EP_QuerySegment(r.ep) == r.segment);
  neighbours();
  refusals(&r);
  const gex_EP_Index_t remote = 0;
  const gex_TM_t pair = gex_TM_Pair(r.ep, remote);
  std::thread poller([] {
    while (!stop) {
      gasnet_AMPoll();
      std::this_thread::yield();
    }
  });
  const std::vector<uintptr_t> bases = exchange(r.all);
  const gex_Rank_t next = (me + 1) % ranks;
  limits(pair, next);
  messages(pair, next, (char *)bases[next] + me * AREA);
  transfers(pair, bases);
  // 16 Shorts, each with an answer; 15 times two Mediums and a Long; one more Long.
  const uint64_t expected = 16 + 15 * 3 + 1;
  while (requests < expected || replies < 16) gasnet_AMPoll();
  uint64_t all = 0, mine = errors;
  const gex_DT_t type = GEX_DT_U64;
  const gex_OP_t sum = GEX_OP_ADD;
  gex_Event_Wait(gex_Coll_BarrierNB(r.all, 0));
  CHECK(requests == expected && replies == 16);
  gex_Event_Wait(gex_Coll_ReduceToAllNB(r.all, &all, &mine, type, sizeof all, 1, sum, nullptr, nullptr, 0));
  if (me == 0) std::printf("realm, %d ranks: %s\n", (int)ranks, all || errors ? "FAIL" : "PASS");
  std::fflush(stdout);
  gex_Event_Wait(gex_Coll_BarrierNB(r.all, 0));
  stop = true;
  poller.join();
  return all != 0;
}
