/* A token travels around the ranks as active messages. Each rank adds its number and sends the
 * token on.
 *
 *   ring [rounds]
 *
 * A handler may reply to its sender, but it may not send a request to a third rank. So the
 * handler only stores the token, and main, which waits for it, sends it on. */
#include <gasnet.h>
#include <stdio.h>
#include <stdlib.h>

#define TOKEN_HANDLER 201 /* clients may use 128 to 255 */

static volatile int arrived; /* tokens that have arrived here */
static volatile int token;

static void token_handler(gasnet_token_t sender, gasnet_handlerarg_t value) {
  (void)sender;
  token = value;
  arrived++;
}

static gasnet_handlerentry_t handlers[] = {{TOKEN_HANDLER, token_handler}};

/* Ends the whole job if a call fails. */
static void check(int code, const char *call) {
  if (code == GASNET_OK) return;
  fprintf(stderr, "%s: %s\n", call, gasnet_ErrorDesc(code));
  gasnet_exit(1);
}

int main(int argc, char **argv) {
  int round, rounds, sum, want;
  gasnet_node_t me, ranks, next;

  check(gasnet_init(&argc, &argv), "gasnet_init");
  check(gasnet_attach(handlers, 1, GASNET_PAGESIZE, 0), "gasnet_attach");
  me = gasnet_mynode();
  ranks = gasnet_nodes();
  next = (gasnet_node_t)((me + 1) % ranks);
  rounds = argc > 1 ? atoi(argv[1]) : 1000;

  /* Rank 0 sends the token of each round and is the last that receives it. */
  sum = 0;
  for (round = 1; round <= rounds; round++) {
    if (me == 0) check(gasnet_AMRequestShort1(next, TOKEN_HANDLER, sum), "gasnet_AMRequestShort1");
    GASNET_BLOCKUNTIL(arrived == round);
    sum = token + (int)me;
    if (me != 0) check(gasnet_AMRequestShort1(next, TOKEN_HANDLER, sum), "gasnet_AMRequestShort1");
  }

  want = rounds * (int)(ranks * (ranks - 1) / 2);
  if (me == 0)
    printf("%d rounds of %d ranks: the token is %d, expected %d\n", rounds, (int)ranks, sum, want);
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  check(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS), "gasnet_barrier_wait");
  gasnet_exit(me == 0 && sum != want);
  return 0;
}
