/* A client of both interfaces in one file, as Chapel's communication layer and Berkeley UPC are
 * (ex_names.tsv): the job of gex_Client_Init, messages of GASNet-1 to handlers of either table,
 * handles and tokens of one interface in calls of the other. C and C++. Each rank counts its
 * errors; rank 0 prints PASS if there are none. */
#ifdef GASNETEX_FIRST
#include <gasnetex.h>
#endif
#include <gasnet.h>
#include <gasnetex.h>
#include <gasnet_coll.h>
#include <gasnet_vis.h>
#include <gasnet_tools.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 4096
static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t world;
static gex_Segment_t segment;
static gasnet_node_t me, nodes;
static gasnet_seginfo_t *segments;
static int errors;
static void *hooked;
static gasnett_atomic_t pings = gasnett_atomic_init(0), pongs = gasnett_atomic_init(0), data = gasnett_atomic_init(0);

#define CHECK(cond)                                                                                                   \
  do {                                                                                                                \
    if (cond) break;                                                                                                  \
    printf("rank %d, line %d: %s is false\n", (int)me, __LINE__, #cond);                                              \
    errors++;                                                                                                         \
  } while (0)

enum { PING = 130, PONG, MEDIUM, LONG, EX_PING, EX_MEDIUM };

/* Both queries of a token agree; the reply is of the other interface than the request. */
static gasnet_node_t source(gasnet_token_t token) {
  gex_Token_Info_t info;
  gasnet_node_t from = GEX_RANK_INVALID;
  CHECK(gasnet_AMGetMsgSource(token, &from) == GASNET_OK);
  CHECK(gex_Token_Info(token, &info, GEX_TI_SRCRANK) & GEX_TI_SRCRANK);
  CHECK(info.gex_srcrank == from);
  return from;
}
static void ping(gasnet_token_t token, gasnet_handlerarg_t a) {
  CHECK(a == (gasnet_handlerarg_t)source(token));
  gasnett_atomic_increment(&pings, 0);
  gex_AM_ReplyShort1(token, PONG, 0, (gex_AM_Arg_t)me);
}
static void ex_ping(gex_Token_t token, gex_AM_Arg_t a) {
  CHECK(a == (gex_AM_Arg_t)source(token));
  gasnett_atomic_increment(&pings, 0);
  gasnet_AMReplyShort(token, PONG, 1, (gasnet_handlerarg_t)me);
}
static void pong(gasnet_token_t token, gasnet_handlerarg_t a) {
  CHECK(a == (gasnet_handlerarg_t)source(token));
  gasnett_atomic_increment(&pongs, 0);
}
static void medium(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t hi, gasnet_handlerarg_t lo) {
  CHECK(n == 6 && !memcmp(buf, "medium", 6) && hi == 1 && lo == 2);
  source(token);
  gasnett_atomic_increment(&data, 0);
}
static void longs(gasnet_token_t token, void *buf, size_t n) {
  CHECK(buf == (char *)segments[me].addr + 2 * PIECE && n == 4 && !memcmp(buf, "long", 4));
  source(token);
  gasnett_atomic_increment(&data, 0);
}

/* Called by the library with the segment. */
static void hook(void *base, uintptr_t size) {
  CHECK(size > 0);
  hooked = base;
}

static void messages(gasnet_node_t next) {
  const gasnet_handlerarg_t self = (gasnet_handlerarg_t)me;
  char *there = (char *)segments[next].addr + 2 * PIECE;
  gasnet_AMRequestShort1(next, PING, self);
  gasnet_AMRequestShort(next, EX_PING, 1, self);
  gex_AM_RequestShort1(world, next, PING, 0, self);
  gex_AM_RequestShort(world, next, EX_PING, 0, self);
  gasnet_AMRequestMedium(next, MEDIUM, "medium", 6, 2, 1, 2);
  gasnet_AMRequestMedium2(next, EX_MEDIUM, "medium", 6, 1, 2);
  gex_AM_RequestMedium2(world, next, MEDIUM, "medium", 6, GEX_EVENT_NOW, 0, 1, 2);
  gasnet_AMRequestLong(next, LONG, "long", 4, there, 0);
  gex_AM_RequestLong0(world, next, LONG, "long", 4, there, GEX_EVENT_NOW, 0);
  GASNET_BLOCKUNTIL((int)gasnett_atomic_read(&pongs, 0) == 4 && (int)gasnett_atomic_read(&pings, 0) == 4 &&
                    (int)gasnett_atomic_read(&data, 0) == 5);
}

/* Handles of each interface are synced by calls of the other. */
static void handles(gasnet_node_t next) {
  static char out[3][PIECE / 4], back[3][PIECE / 4];
  char *there = (char *)segments[next].addr;
  gex_Event_t events[3];
  gasnet_handle_t list[3];
  size_t i;
  for (i = 0; i < 3; i++) memset(out[i], (int)(me * 3 + i + 1), sizeof out[i]);
  events[0] = gex_RMA_PutNB(world, next, there, out[0], sizeof out[0], GEX_EVENT_DEFER, 0);
  events[1] = gasnet_put_nb_bulk(next, there + sizeof out[0], out[1], sizeof out[1]);
  events[2] = GEX_EVENT_INVALID;
  while (gex_Event_TestSome(events, 3, 0) != GASNET_OK) gasnet_AMPoll();
  gex_Event_WaitAll(events, 3, 0);
  list[0] = gex_RMA_PutNB(world, next, there + 2 * sizeof out[0], out[2], sizeof out[2], GEX_EVENT_DEFER, 0);
  list[1] = gex_RMA_GetNB(world, back[0], next, there, sizeof back[0], 0);
  list[2] = gasnet_get_nb_bulk(back[1], next, there + sizeof back[0], sizeof back[1]);
  gasnet_wait_syncnb_all(list, 3);
  CHECK(list[0] == GASNET_INVALID_HANDLE && list[1] == GEX_EVENT_INVALID);
  gex_NBI_BeginAccessRegion(0);
  gasnet_get_nbi_bulk(back[2], next, there + 2 * sizeof back[0], sizeof back[2]);
  list[0] = gex_NBI_EndAccessRegion(0);
  gasnet_wait_syncnb(list[0]);
  events[0] = gex_RMA_GetNB(world, back[0], next, there, sizeof back[0], 0);
  gex_Event_WaitSome(events, 1, 0);
  CHECK(!memcmp(out, back, sizeof out));
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {
      {EX_PING, (gex_AM_Fn_t)ex_ping, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "ex_ping"},
      {EX_MEDIUM, (gex_AM_Fn_t)medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 2, NULL, "medium"},
      {PING, (gex_AM_Fn_t)ping, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "ping"},
      {PONG, (gex_AM_Fn_t)pong, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, "pong"},
      {MEDIUM, (gex_AM_Fn_t)medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 2, NULL, "medium"},
      {LONG, (gex_AM_Fn_t)longs, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 0, NULL, "long"},
  };
  gex_Client_t same_client;
  gex_EP_t same_ep;
  gex_TM_t same_world;
  gex_Segment_t same_segment;
  gex_RankInfo_t *host;
  gex_Rank_t hosts, mine;
  double total = 0, one = 1;
  gasnet_client_attach_hook = hook;
  if (gex_Client_Init(&client, &ep, &world, "chapel", &argc, &argv, GEX_FLAG_USES_GASNET1) != GASNET_OK) return 2;
  me = gasnet_mynode();
  nodes = gasnet_nodes();
  CHECK(gex_TM_QueryRank(world) == me && gex_TM_QuerySize(world) == nodes);
  CHECK(gex_Client_QueryFlags(client) == GEX_FLAG_USES_GASNET1 && GASNETI_MAX_THREADS >= 1);
  CHECK(gex_EP_RegisterHandlers(ep, table, sizeof table / sizeof *table) == GASNET_OK);
  CHECK(gex_Segment_Attach(&segment, world, (3 * PIECE + 65535) / 65536 * 65536) == GASNET_OK);
  gasnet_QueryGexObjects(&same_client, &same_ep, &same_world, &same_segment);
  CHECK(same_client == client && same_ep == ep && same_world == world && same_segment == segment);
  segments = (gasnet_seginfo_t *)calloc(nodes, sizeof *segments);
  CHECK(gasnet_getSegmentInfo(segments, (int)nodes) == GASNET_OK);
  CHECK(segments[me].addr == gex_Segment_QueryAddr(segment) && hooked == segments[me].addr);
  gex_System_QueryHostInfo(&host, &hosts, &mine);
  CHECK(hosts <= nodes && host[mine].gex_jobrank == me);
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  CHECK(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) == GASNET_OK);
  messages((me + 1) % nodes);
  handles((me + 1) % nodes);
  /* Collectives of both, in turn. */
  gasnet_coll_broadcast(GASNET_TEAM_ALL, &one, 0, &one, sizeof one,
                        GASNET_COLL_LOCAL | GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC);
  gex_Event_Wait(gex_Coll_ReduceToAllNB(world, &total, &one, GEX_DT_DBL, sizeof one, 1, GEX_OP_ADD, NULL, NULL, 0));
  CHECK(total == (double)nodes);
  one = errors;
  gex_Event_Wait(gex_Coll_ReduceToAllNB(world, &total, &one, GEX_DT_DBL, sizeof one, 1, GEX_OP_ADD, NULL, NULL, 0));
  if (me == 0) printf("hybrid, %d ranks: %s\n", (int)nodes, total != 0 ? "FAIL" : "PASS");
  fflush(stdout);
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
  gasnet_exit(total != 0);
  return 1;
}
