/* Collectives, included by gasnet.h. All images of a team make the same calls in the same order.

   An image is a participant with its own memory. Each process has one or, in GASNET_PAR, one for
   each thread that called gasnet_coll_init. flags must hold one of GASNET_COLL_IN_*, one of
   GASNET_COLL_OUT_*, and GASNET_COLL_SINGLE or GASNET_COLL_LOCAL. With SINGLE all callers pass
   the same addresses, those of all images; with LOCAL each caller passes its own. Functions
   whose names end in M take one address for each image. With SINGLE these are the addresses for
   all images of the team, with LOCAL for those of this process. Functions whose names end in _nb
   return a handle, which the same thread syncs once; the library uses memory and address lists
   until then. */
#ifndef _GASNET_COLL_H
#define _GASNET_COLL_H

#include "gasnet.h"

GASNETI_BEGIN_EXTERNC

typedef uint32_t gasnet_image_t;
typedef struct gasneti_team_s *gasnet_team_handle_t;
typedef struct gasneti_coll_op_s *gasnet_coll_handle_t;

#define GASNET_TEAM_ALL ((gasnet_team_handle_t)1)
#define GASNET_COLL_INVALID_HANDLE ((gasnet_coll_handle_t)0)

/* The earliest time at which data may move */
#define GASNET_COLL_IN_NOSYNC (1 << 0)
#define GASNET_COLL_IN_MYSYNC (1 << 1)
#define GASNET_COLL_IN_ALLSYNC (1 << 2)
/* What a completed sync guarantees */
#define GASNET_COLL_OUT_NOSYNC (1 << 3)
#define GASNET_COLL_OUT_MYSYNC (1 << 4)
#define GASNET_COLL_OUT_ALLSYNC (1 << 5)
#define GASNET_COLL_SYNC_FLAG_MASK (0x3F)

#define GASNET_COLL_SINGLE (1 << 6)
#define GASNET_COLL_LOCAL (1 << 7)
/*
 Returns no handle: that of the next call without this flag, by the same image in the same
 team, stands for both.
*/
#define GASNET_COLL_AGGREGATE (1 << 8)
#define GASNET_COLL_FIXED_THREADS_PER_NODE (1 << 9)
#define GASNET_COLL_DST_IN_SEGMENT (1 << 10)
#define GASNET_COLL_SRC_IN_SEGMENT (1 << 11)
#define GASNET_COLL_REDUCE_OP_SUM (1 << 12)
#define GASNET_COLL_REDUCE_OP_MAX (1 << 13)
#define GASNET_COLL_REDUCE_OP_MIN (1 << 14)
#define GASNET_COLL_REDUCE_OP_CUSTOM (1 << 15)
#define GASNET_COLL_INCLUSIVE_SCAN (1 << 16)
#define GASNET_COLL_EXCLUSIVE_SCAN (1 << 17)
#define GASNET_COLL_DISABLE_AUTOTUNE (1 << 18)
/* One call for each process, for any number of images in gasnet_coll_init. */
#define GASNET_COLL_NO_IMAGES (1 << 19)

/* ---- Start ---- */

/* A function for reductions. It stores results[i] = left_operands[i] op right_operands[i]
   for each i < result_count == left_count. No two of the three areas overlap.
   arg is the func_arg of the call. */
typedef void (*gasnet_coll_reduce_fn_t)(void *results, size_t result_count, const void *left_operands,
                                        size_t left_count, const void *right_operands, size_t elem_size, int flags,
                                        int arg);
/* Index of a function in the table of gasnet_coll_init */
typedef gasnet_handlerarg_t gasnet_coll_fn_handle_t;

typedef struct gasneti_coll_fn_entry_s {
  gasnet_coll_reduce_fn_t fnptr;
  unsigned int flags;
} gasnet_coll_fn_entry_t;

/* Flags of a function. Without NONCOMM operands may be exchanged. The order of evaluation is the
   same in every run of the same job. */
#define GASNET_COLL_AMSAFE (1 << 0)
#define GASNET_COLL_NONCOMM (1 << 1)

/* Collective: every image calls it once. images: the number of images of each process; null for
   one each. The library copies the table. */
void gasnet_coll_init(const gasnet_image_t images[], gasnet_image_t my_image, gasnet_coll_fn_entry_t fn_tbl[],
                      size_t fn_count, int init_flags);

/* ---- Teams ---- */

/* Collective over parent_team: a team of the processes that pass this color, ordered by
   relrank. */
gasnet_team_handle_t gasnet_coll_team_split(gasnet_team_handle_t parent_team, gasnet_node_t color,
                                            gasnet_node_t relrank, void *clientdata);
gasnet_node_t gasnet_coll_team_rank2node(gasnet_team_handle_t team, int rank);
gasnet_node_t gasnet_coll_team_node2rank(gasnet_team_handle_t team, gasnet_node_t node);
/* The number of processes of the team */
gasnet_node_t gasnet_coll_team_size(gasnet_team_handle_t team);

/* As gasnet_barrier_*, among the processes of a team or, with GASNET_BARRIERFLAG_IMAGES, among its
   images. */
void gasnet_coll_barrier_notify(gasnet_team_handle_t team, int id, int flags);
int gasnet_coll_barrier_try(gasnet_team_handle_t team, int id, int flags);
int gasnet_coll_barrier_wait(gasnet_team_handle_t team, int id, int flags);
int gasnet_coll_barrier(gasnet_team_handle_t team, int id, int flags);
int gasnet_coll_barrier_result(gasnet_team_handle_t team, int *id);

/* ---- Sync ---- */

int gasnet_coll_try_sync(gasnet_coll_handle_t handle);
int gasnet_coll_try_sync_some(gasnet_coll_handle_t *phandle, size_t numhandles);
int gasnet_coll_try_sync_all(gasnet_coll_handle_t *phandle, size_t numhandles);
void gasnet_coll_wait_sync(gasnet_coll_handle_t handle);
void gasnet_coll_wait_sync_some(gasnet_coll_handle_t *phandle, size_t numhandles);
void gasnet_coll_wait_sync_all(gasnet_coll_handle_t *phandle, size_t numhandles);

/* ---- Data movement; nbytes is the size of one block ---- */

/* src of the image srcimage to dst of every image */
void gasnet_coll_broadcast(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage, void *src, size_t nbytes,
                           int flags);
gasnet_coll_handle_t gasnet_coll_broadcast_nb(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage, void *src,
                                              size_t nbytes, int flags);
void gasnet_coll_broadcastM(gasnet_team_handle_t team, void *const dstlist[], gasnet_image_t srcimage, void *src,
                            size_t nbytes, int flags);
gasnet_coll_handle_t gasnet_coll_broadcastM_nb(gasnet_team_handle_t team, void *const dstlist[],
                                               gasnet_image_t srcimage, void *src, size_t nbytes, int flags);

/* Block i at src of the image srcimage to dst of image i */
void gasnet_coll_scatter(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage, void *src, size_t nbytes,
                         int flags);
gasnet_coll_handle_t gasnet_coll_scatter_nb(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage, void *src,
                                            size_t nbytes, int flags);
void gasnet_coll_scatterM(gasnet_team_handle_t team, void *const dstlist[], gasnet_image_t srcimage, void *src,
                          size_t nbytes, int flags);
gasnet_coll_handle_t gasnet_coll_scatterM_nb(gasnet_team_handle_t team, void *const dstlist[], gasnet_image_t srcimage,
                                             void *src, size_t nbytes, int flags);

/* src of image i to block i at dst of the image dstimage */
void gasnet_coll_gather(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst, void *src, size_t nbytes,
                        int flags);
gasnet_coll_handle_t gasnet_coll_gather_nb(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst, void *src,
                                           size_t nbytes, int flags);
void gasnet_coll_gatherM(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst, void *const srclist[],
                         size_t nbytes, int flags);
gasnet_coll_handle_t gasnet_coll_gatherM_nb(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst,
                                            void *const srclist[], size_t nbytes, int flags);

/* src of image i to block i at dst of every image */
void gasnet_coll_gather_all(gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags);
gasnet_coll_handle_t gasnet_coll_gather_all_nb(gasnet_team_handle_t team, void *dst, void *src, size_t nbytes,
                                               int flags);
void gasnet_coll_gather_allM(gasnet_team_handle_t team, void *const dstlist[], void *const srclist[], size_t nbytes,
                             int flags);
gasnet_coll_handle_t gasnet_coll_gather_allM_nb(gasnet_team_handle_t team, void *const dstlist[],
                                                void *const srclist[], size_t nbytes, int flags);

/* Block j at src of image i to block i at dst of image j */
void gasnet_coll_exchange(gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags);
gasnet_coll_handle_t gasnet_coll_exchange_nb(gasnet_team_handle_t team, void *dst, void *src, size_t nbytes,
                                             int flags);
void gasnet_coll_exchangeM(gasnet_team_handle_t team, void *const dstlist[], void *const srclist[], size_t nbytes,
                           int flags);
gasnet_coll_handle_t gasnet_coll_exchangeM_nb(gasnet_team_handle_t team, void *const dstlist[], void *const srclist[],
                                              size_t nbytes, int flags);

/* ---- Computation ---- */
/* With block sizes and offsets of 0, element by element over the elem_count elements at src of
   each image. Otherwise over an array of elem_count elements that the images hold in turn, in
   blocks of src_blksz elements; element i of the operation is element src_offset + i of the
   array. A reduction combines all elements to one. Result i of a scan combines the elements 0 to
   i, or 0 to i - 1. It is element dst_offset + i of an array in blocks of dst_blksz elements. */

/* The combination of the elements of all images, in the order of the images, to dst of the image
   dstimage */
void gasnet_coll_reduce(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst, void *src, size_t src_blksz,
                        size_t src_offset, size_t elem_size, size_t elem_count, gasnet_coll_fn_handle_t func,
                        int func_arg, int flags);
gasnet_coll_handle_t gasnet_coll_reduce_nb(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst, void *src,
                                           size_t src_blksz, size_t src_offset, size_t elem_size, size_t elem_count,
                                           gasnet_coll_fn_handle_t func, int func_arg, int flags);
void gasnet_coll_reduceM(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst, void *const srclist[],
                         size_t src_blksz, size_t src_offset, size_t elem_size, size_t elem_count,
                         gasnet_coll_fn_handle_t func, int func_arg, int flags);
gasnet_coll_handle_t gasnet_coll_reduceM_nb(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst,
                                            void *const srclist[], size_t src_blksz, size_t src_offset,
                                            size_t elem_size, size_t elem_count, gasnet_coll_fn_handle_t func,
                                            int func_arg, int flags);

/* Combines elements and stores the result in dst of image i. With GASNET_COLL_INCLUSIVE_SCAN, the
   elements are those of images 0 to i. With GASNET_COLL_EXCLUSIVE_SCAN, they are those of images
   0 to i - 1, and dst of image 0 is not written. */
void gasnet_coll_scan(gasnet_team_handle_t team, void *dst, size_t dst_blksz, size_t dst_offset, void *src,
                      size_t src_blksz, size_t src_offset, size_t elem_size, size_t elem_count,
                      gasnet_coll_fn_handle_t func, int func_arg, int flags);
gasnet_coll_handle_t gasnet_coll_scan_nb(gasnet_team_handle_t team, void *dst, size_t dst_blksz, size_t dst_offset,
                                         void *src, size_t src_blksz, size_t src_offset, size_t elem_size,
                                         size_t elem_count, gasnet_coll_fn_handle_t func, int func_arg, int flags);
void gasnet_coll_scanM(gasnet_team_handle_t team, void *const dstlist[], size_t dst_blksz, size_t dst_offset,
                       void *const srclist[], size_t src_blksz, size_t src_offset, size_t elem_size,
                       size_t elem_count, gasnet_coll_fn_handle_t func, int func_arg, int flags);
gasnet_coll_handle_t gasnet_coll_scanM_nb(gasnet_team_handle_t team, void *const dstlist[], size_t dst_blksz,
                                          size_t dst_offset, void *const srclist[], size_t src_blksz,
                                          size_t src_offset, size_t elem_size, size_t elem_count,
                                          gasnet_coll_fn_handle_t func, int func_arg, int flags);

/* ---- Tuning ---- */

typedef enum {
  GASNET_COLL_BROADCAST_OP = 0,
  GASNET_COLL_BROADCASTM_OP,
  GASNET_COLL_SCATTER_OP,
  GASNET_COLL_SCATTERM_OP,
  GASNET_COLL_GATHER_OP,
  GASNET_COLL_GATHERM_OP,
  GASNET_COLL_GATHER_ALL_OP,
  GASNET_COLL_GATHER_ALLM_OP,
  GASNET_COLL_EXCHANGE_OP,
  GASNET_COLL_EXCHANGEM_OP,
  GASNET_COLL_REDUCE_OP,
  GASNET_COLL_REDUCEM_OP,
  GASNET_COLL_NUM_COLL_OPTYPES
} gasnet_coll_optype_t;

typedef enum {
  GASNET_COLL_PIPE_SEG_SIZE,
  GASNET_COLL_DISSEM_RADIX,
  GASNET_COLL_TREE_TYPE,
  GASNET_COLL_NUM_PARAM_TYPES
} gasnet_coll_tuning_param_type_t;

typedef void (*gasnet_coll_overlap_sample_work_t)(void *arg);

/* The arguments of a collective: dst and src are address lists, as the M forms take them, or point
   to one address. */
typedef struct gasneti_coll_args_s {
  uint8_t **dst;
  uint8_t **src;
  gasnet_image_t rootimg;
  size_t src_blksz;
  size_t src_offset;
  size_t elem_size;
  size_t nbytes;
  size_t dist;
  gasnet_coll_fn_handle_t func;
  int func_arg;
} gasnet_coll_args_t;
#define GASNET_COLL_ARGS_INITIALIZER                                                                                  \
  { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Read and write which algorithm the team uses for which operation, as lines of text. A null name
   stands for GASNET_COLL_TUNING_FILE; without that they do nothing. The first image of the team
   writes. */
void gasnet_coll_loadTuningState(char *filename, gasnet_team_handle_t team);
void gasnet_coll_dumpTuningState(char *filename, gasnet_team_handle_t team);
/* Writes how often each operation was called with which sizes. A null name stands for the standard
   output. Without GASNET_COLL_ENABLE_PROFILE nothing is counted or written. */
void gasnet_coll_dumpProfile(char *filename, gasnet_team_handle_t team);
/* Collective: runs the operation with each kind of tree and keeps the fastest for the team. The
   last four arguments receive the number of the kind, the number of its parameters (1), the
   fan-out, and the name. Each of them may be null. The caller frees the last two. */
void gasnet_coll_tune_generic_op(gasnet_team_handle_t team, gasnet_coll_optype_t op, gasnet_coll_args_t coll_args,
                                 int flags, gasnet_coll_overlap_sample_work_t fnptr, void *sample_work_arg,
                                 uint32_t *best_algidx, uint32_t *num_params, uint32_t **best_param,
                                 char **best_tree);
/* The number of kinds of trees of an operation; gasnet_coll_set_tree_kind takes a number below
   it. */
int gasnet_coll_get_num_tree_classes(gasnet_team_handle_t team, gasnet_coll_optype_t optype);
void gasnet_coll_set_tree_kind(gasnet_team_handle_t team, int tree_type, int fanout, gasnet_coll_optype_t optype);
/* Largest block, in bytes, that gather_all and exchange move by dissemination. */
void gasnet_coll_set_dissem_limit(gasnet_team_handle_t team, size_t dissemlimit, gasnet_coll_optype_t optype);

/* Records the line of the call (gasnet_trace.h) */
#ifndef GASNETI_INSIDE_LIBRARY
#define gasnet_coll_broadcast(a, b, c, d, e, f) GASNETI_HERE(gasnet_coll_broadcast, (a, b, c, d, e, f))
#define gasnet_coll_broadcast_nb(a, b, c, d, e, f) GASNETI_HERE(gasnet_coll_broadcast_nb, (a, b, c, d, e, f))
#define gasnet_coll_broadcastM(a, b, c, d, e, f) GASNETI_HERE(gasnet_coll_broadcastM, (a, b, c, d, e, f))
#define gasnet_coll_broadcastM_nb(a, b, c, d, e, f) GASNETI_HERE(gasnet_coll_broadcastM_nb, (a, b, c, d, e, f))
#define gasnet_coll_scatter(a, b, c, d, e, f) GASNETI_HERE(gasnet_coll_scatter, (a, b, c, d, e, f))
#define gasnet_coll_scatter_nb(a, b, c, d, e, f) GASNETI_HERE(gasnet_coll_scatter_nb, (a, b, c, d, e, f))
#define gasnet_coll_scatterM(a, b, c, d, e, f) GASNETI_HERE(gasnet_coll_scatterM, (a, b, c, d, e, f))
#define gasnet_coll_scatterM_nb(a, b, c, d, e, f) GASNETI_HERE(gasnet_coll_scatterM_nb, (a, b, c, d, e, f))
#define gasnet_coll_gather(a, b, c, d, e, f) GASNETI_HERE(gasnet_coll_gather, (a, b, c, d, e, f))
#define gasnet_coll_gather_nb(a, b, c, d, e, f) GASNETI_HERE(gasnet_coll_gather_nb, (a, b, c, d, e, f))
#define gasnet_coll_gatherM(a, b, c, d, e, f) GASNETI_HERE(gasnet_coll_gatherM, (a, b, c, d, e, f))
#define gasnet_coll_gatherM_nb(a, b, c, d, e, f) GASNETI_HERE(gasnet_coll_gatherM_nb, (a, b, c, d, e, f))
#define gasnet_coll_gather_all(a, b, c, d, e) GASNETI_HERE(gasnet_coll_gather_all, (a, b, c, d, e))
#define gasnet_coll_gather_all_nb(a, b, c, d, e) GASNETI_HERE(gasnet_coll_gather_all_nb, (a, b, c, d, e))
#define gasnet_coll_gather_allM(a, b, c, d, e) GASNETI_HERE(gasnet_coll_gather_allM, (a, b, c, d, e))
#define gasnet_coll_gather_allM_nb(a, b, c, d, e) GASNETI_HERE(gasnet_coll_gather_allM_nb, (a, b, c, d, e))
#define gasnet_coll_exchange(a, b, c, d, e) GASNETI_HERE(gasnet_coll_exchange, (a, b, c, d, e))
#define gasnet_coll_exchange_nb(a, b, c, d, e) GASNETI_HERE(gasnet_coll_exchange_nb, (a, b, c, d, e))
#define gasnet_coll_exchangeM(a, b, c, d, e) GASNETI_HERE(gasnet_coll_exchangeM, (a, b, c, d, e))
#define gasnet_coll_exchangeM_nb(a, b, c, d, e) GASNETI_HERE(gasnet_coll_exchangeM_nb, (a, b, c, d, e))
#define gasnet_coll_reduce(a, b, c, d, e, f, g, h, i, j, k) \
  GASNETI_HERE(gasnet_coll_reduce, (a, b, c, d, e, f, g, h, i, j, k))
#define gasnet_coll_reduce_nb(a, b, c, d, e, f, g, h, i, j, k) \
  GASNETI_HERE(gasnet_coll_reduce_nb, (a, b, c, d, e, f, g, h, i, j, k))
#define gasnet_coll_reduceM(a, b, c, d, e, f, g, h, i, j, k) \
  GASNETI_HERE(gasnet_coll_reduceM, (a, b, c, d, e, f, g, h, i, j, k))
#define gasnet_coll_reduceM_nb(a, b, c, d, e, f, g, h, i, j, k) \
  GASNETI_HERE(gasnet_coll_reduceM_nb, (a, b, c, d, e, f, g, h, i, j, k))
#define gasnet_coll_scan(a, b, c, d, e, f, g, h, i, j, k, l) \
  GASNETI_HERE(gasnet_coll_scan, (a, b, c, d, e, f, g, h, i, j, k, l))
#define gasnet_coll_scan_nb(a, b, c, d, e, f, g, h, i, j, k, l) \
  GASNETI_HERE(gasnet_coll_scan_nb, (a, b, c, d, e, f, g, h, i, j, k, l))
#define gasnet_coll_scanM(a, b, c, d, e, f, g, h, i, j, k, l) \
  GASNETI_HERE(gasnet_coll_scanM, (a, b, c, d, e, f, g, h, i, j, k, l))
#define gasnet_coll_scanM_nb(a, b, c, d, e, f, g, h, i, j, k, l) \
  GASNETI_HERE(gasnet_coll_scanM_nb, (a, b, c, d, e, f, g, h, i, j, k, l))
#define gasnet_coll_wait_sync(a) GASNETI_HERE(gasnet_coll_wait_sync, (a))
#define gasnet_coll_wait_sync_some(a, b) GASNETI_HERE(gasnet_coll_wait_sync_some, (a, b))
#define gasnet_coll_wait_sync_all(a, b) GASNETI_HERE(gasnet_coll_wait_sync_all, (a, b))
#define gasnet_coll_try_sync(a) GASNETI_HERE(gasnet_coll_try_sync, (a))
#define gasnet_coll_try_sync_some(a, b) GASNETI_HERE(gasnet_coll_try_sync_some, (a, b))
#define gasnet_coll_try_sync_all(a, b) GASNETI_HERE(gasnet_coll_try_sync_all, (a, b))
#define gasnet_coll_barrier_notify(a, b, c) GASNETI_HERE(gasnet_coll_barrier_notify, (a, b, c))
#define gasnet_coll_barrier_try(a, b, c) GASNETI_HERE(gasnet_coll_barrier_try, (a, b, c))
#define gasnet_coll_barrier_wait(a, b, c) GASNETI_HERE(gasnet_coll_barrier_wait, (a, b, c))
#define gasnet_coll_barrier(a, b, c) GASNETI_HERE(gasnet_coll_barrier, (a, b, c))
#define gasnet_coll_team_split(a, b, c, d) GASNETI_HERE(gasnet_coll_team_split, (a, b, c, d))
#define gasnet_coll_init(a, b, c, d, e) GASNETI_HERE(gasnet_coll_init, (a, b, c, d, e))
#if GASNETI_VARIADIC_MACROS
#define gasnet_coll_tune_generic_op(...) GASNETI_HERE(gasnet_coll_tune_generic_op, (__VA_ARGS__))
#endif
#endif

GASNETI_END_EXTERNC

#endif
