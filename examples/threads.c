/* Threads: in the mode PAR every thread of every rank may call GASNet.
 *
 *   threads [threads per rank] [messages per thread]
 *
 * Each thread sends requests to the next rank, whose handler counts them under a handler-safe
 * lock (HSL) and replies. The address of the thread's counter of replies travels with the request
 * in two arguments. */
#include <gasnet.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT_HANDLER 201
#define DONE_HANDLER 202

static gasnet_hsl_t lock = GASNET_HSL_INITIALIZER;
static volatile int counted; /* requests that this rank has served; protected by lock */
static int messages;
static gasnet_node_t next;

static void check(int code, const char *call) {
  if (code == GASNET_OK) return;
  fprintf(stderr, "%s: %s\n", call, gasnet_ErrorDesc(code));
  gasnet_exit(1);
}

static void count_handler(gasnet_token_t sender, gasnet_handlerarg_t high, gasnet_handlerarg_t low) {
  gasnet_hsl_lock(&lock);
  counted++;
  gasnet_hsl_unlock(&lock);
  check(gasnet_AMReplyShort2(sender, DONE_HANDLER, high, low), "gasnet_AMReplyShort2");
}

/* A reply may run in any thread of this rank, so that the counter needs an atomic operation. */
static void done_handler(gasnet_token_t sender, gasnet_handlerarg_t high, gasnet_handlerarg_t low) {
  uintptr_t address = (uintptr_t)((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
  (void)sender;
  gasnett_atomic_increment((gasnett_atomic_t *)address, GASNETT_ATOMIC_REL);
}

static gasnet_handlerentry_t handlers[] = {
    {COUNT_HANDLER, count_handler},
    {DONE_HANDLER, done_handler},
};

static void *work(void *unused) {
  gasnett_atomic_t done = gasnett_atomic_init(0);
  uint64_t address = (uint64_t)(uintptr_t)&done;
  int i;
  for (i = 0; i < messages; i++)
    check(gasnet_AMRequestShort2(next, COUNT_HANDLER, (gasnet_handlerarg_t)(address >> 32),
                                 (gasnet_handlerarg_t)address),
          "gasnet_AMRequestShort2");
  GASNET_BLOCKUNTIL((int)gasnett_atomic_read(&done, GASNETT_ATOMIC_ACQ) == messages);
  return unused;
}

int main(int argc, char **argv) {
  pthread_t *ids;
  int i, threads;
  gasnet_node_t me, ranks;

  check(gasnet_init(&argc, &argv), "gasnet_init");
  check(gasnet_attach(handlers, 2, GASNET_PAGESIZE, 0), "gasnet_attach");
  me = gasnet_mynode();
  ranks = gasnet_nodes();
  next = (gasnet_node_t)((me + 1) % ranks);
  threads = argc > 1 ? atoi(argv[1]) : 4;
  messages = argc > 2 ? atoi(argv[2]) : 1000;

  ids = (pthread_t *)malloc((size_t)threads * sizeof(*ids));
  for (i = 0; i < threads; i++) pthread_create(&ids[i], NULL, work, NULL);
  for (i = 0; i < threads; i++) pthread_join(ids[i], NULL);

  /* The own threads have their replies; requests of other ranks may still be under way. */
  GASNET_BLOCKUNTIL(counted == threads * messages);
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  check(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS), "gasnet_barrier_wait");
  printf("rank %d of %d served %d requests of %d threads\n", (int)me, (int)ranks, counted, threads);
  fflush(stdout);
  gasnet_exit(counted != threads * messages);
  return 0;
}
