/* Collectives: of those of GASNet-1 this release of the library supplies gasnet_coll_init and the blocking single-address
   broadcast, among all processes with one image each. Included by gasnet.h. */
#ifndef _GASNET_COLL_H
#define _GASNET_COLL_H

#include "gasnet.h"

GASNETI_BEGIN_EXTERNC

typedef uint32_t gasnet_image_t;
typedef struct gasneti_team_s *gasnet_team_handle_t;
typedef gasnet_handlerarg_t gasnet_coll_fn_handle_t;
typedef void (*gasnet_coll_reduce_fn_t)(void *results, size_t result_count, const void *left_operands,
                                        size_t left_count, const void *right_operands, size_t elem_size, int flags,
                                        int arg);
typedef struct {
  gasnet_coll_reduce_fn_t fnptr;
  unsigned int flags;
} gasnet_coll_fn_entry_t;

#define GASNET_TEAM_ALL ((gasnet_team_handle_t)1)

#define GASNET_COLL_IN_NOSYNC (1 << 0)
#define GASNET_COLL_IN_MYSYNC (1 << 1)
#define GASNET_COLL_IN_ALLSYNC (1 << 2)
#define GASNET_COLL_OUT_NOSYNC (1 << 3)
#define GASNET_COLL_OUT_MYSYNC (1 << 4)
#define GASNET_COLL_OUT_ALLSYNC (1 << 5)
#define GASNET_COLL_SYNC_FLAG_MASK 0x3f
#define GASNET_COLL_SINGLE (1 << 6)
#define GASNET_COLL_LOCAL (1 << 7)
#define GASNET_COLL_AGGREGATE (1 << 8)
#define GASNET_COLL_DST_IN_SEGMENT (1 << 10)
#define GASNET_COLL_SRC_IN_SEGMENT (1 << 11)

/* Collective, once per process. images: null, or a 1 for each process. */
void gasnet_coll_init(const gasnet_image_t images[], gasnet_image_t my_image, gasnet_coll_fn_entry_t fn_tbl[],
                      size_t fn_count, int init_flags);
/* Copies nbytes from src of the process srcimage to dst of every process. Under GASNET_COLL_LOCAL the others' src, under
   GASNET_COLL_SINGLE no address, may differ. Whatever the flags: no byte moves before all have called, and nobody
   returns before all have the data. */
void gasnet_coll_broadcast(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage, const void *src,
                           size_t nbytes, int flags);

GASNETI_END_EXTERNC

#endif
