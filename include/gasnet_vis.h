/* Vector, indexed and strided puts and gets of GASNet-1: many pieces of memory in one operation.

   The remote side lies in the segment of the node, as for any put or get; a piece of no bytes may
   be anywhere. Lists, strides and counts may be reused when a call returns; the local data must
   stay until the operation is synced. The pieces of a destination must not overlap. Lists: both
   sides have the same total number of bytes, or the job ends. Sections: count[0] contiguous
   bytes, then count[i + 1] elements that are strides[i] bytes apart, for each of stridelevels
   strides. Any count of 0 makes an empty section. */
#ifndef _GASNET_VIS_H
#define _GASNET_VIS_H

#include "gasnet.h"

GASNETI_BEGIN_EXTERNC

/* Vector: each piece has its own length */
#define GASNETI_PUTV                                                                                                  \
  (gasnet_node_t dstnode, size_t dstcount, gasnet_memvec_t const dstlist[], size_t srccount,                          \
   gasnet_memvec_t const srclist[])
#define GASNETI_GETV                                                                                                  \
  (size_t dstcount, gasnet_memvec_t const dstlist[], gasnet_node_t srcnode, size_t srccount,                          \
   gasnet_memvec_t const srclist[])
void gasnet_putv_bulk GASNETI_PUTV;
gasnet_handle_t gasnet_putv_nb_bulk GASNETI_PUTV GASNETI_MUST_SYNC;
void gasnet_putv_nbi_bulk GASNETI_PUTV;
void gasnet_getv_bulk GASNETI_GETV;
gasnet_handle_t gasnet_getv_nb_bulk GASNETI_GETV GASNETI_MUST_SYNC;
void gasnet_getv_nbi_bulk GASNETI_GETV;

/* Indexed: all pieces of a side have one length */
#define GASNETI_PUTI                                                                                                  \
  (gasnet_node_t dstnode, size_t dstcount, void *const dstlist[], size_t dstlen, size_t srccount,                     \
   void *const srclist[], size_t srclen)
#define GASNETI_GETI                                                                                                  \
  (size_t dstcount, void *const dstlist[], size_t dstlen, gasnet_node_t srcnode, size_t srccount,                     \
   void *const srclist[], size_t srclen)
void gasnet_puti_bulk GASNETI_PUTI;
gasnet_handle_t gasnet_puti_nb_bulk GASNETI_PUTI GASNETI_MUST_SYNC;
void gasnet_puti_nbi_bulk GASNETI_PUTI;
void gasnet_geti_bulk GASNETI_GETI;
gasnet_handle_t gasnet_geti_nb_bulk GASNETI_GETI GASNETI_MUST_SYNC;
void gasnet_geti_nbi_bulk GASNETI_GETI;

/* Strided: sections of arrays */
#define GASNETI_PUTS                                                                                                  \
  (gasnet_node_t dstnode, void *dstaddr, const size_t dststrides[], void *srcaddr, const size_t srcstrides[],         \
   const size_t count[], size_t stridelevels)
#define GASNETI_GETS                                                                                                  \
  (void *dstaddr, const size_t dststrides[], gasnet_node_t srcnode, void *srcaddr, const size_t srcstrides[],         \
   const size_t count[], size_t stridelevels)
void gasnet_puts_bulk GASNETI_PUTS;
gasnet_handle_t gasnet_puts_nb_bulk GASNETI_PUTS GASNETI_MUST_SYNC;
void gasnet_puts_nbi_bulk GASNETI_PUTS;
void gasnet_gets_bulk GASNETI_GETS;
gasnet_handle_t gasnet_gets_nb_bulk GASNETI_GETS GASNETI_MUST_SYNC;
void gasnet_gets_nbi_bulk GASNETI_GETS;

/* Arguments as text. *_bufsz returns the size that buf must have. The functions that return size_t
   return the bytes of the transfer, the others a summary of the list. The highest address is
   that of the last byte. */
typedef struct {
  size_t minsz;
  size_t maxsz;
  uintptr_t totalsz;
  void *minaddr;
  void *maxaddr;
} gasneti_memveclist_stats_t;
typedef struct {
  void *minaddr;
  void *maxaddr;
} gasneti_addrlist_stats_t;

size_t gasnett_format_memveclist_bufsz(size_t count);
gasneti_memveclist_stats_t gasnett_format_memveclist(char *buf, size_t count, gasnet_memvec_t const *list);
size_t gasnett_format_putvgetv_bufsz(size_t dstcount, size_t srccount);
size_t gasnett_format_putvgetv(char *buf, gasnet_node_t node, size_t dstcount, gasnet_memvec_t const dstlist[],
                               size_t srccount, gasnet_memvec_t const srclist[]);
size_t gasnett_format_addrlist_bufsz(size_t count);
gasneti_addrlist_stats_t gasnett_format_addrlist(char *buf, size_t count, void *const *list, size_t len);
size_t gasnett_format_putigeti_bufsz(size_t dstcount, size_t srccount);
size_t gasnett_format_putigeti(char *buf, gasnet_node_t node, size_t dstcount, void *const dstlist[], size_t dstlen,
                               size_t srccount, void *const srclist[], size_t srclen);
size_t gasnett_format_strides_bufsz(size_t count);
void gasnett_format_strides(char *buf, size_t count, const size_t *list);
size_t gasnett_format_putsgets_bufsz(size_t stridelevels);
size_t gasnett_format_putsgets(char *buf, void *stats, gasnet_node_t node, void *dstaddr, const size_t dststrides[],
                               void *srcaddr, const size_t srcstrides[], const size_t count[], size_t stridelevels);

#if defined(_GASNETEX_H) && !defined(GASNETI_INSIDE_LIBRARY)
/* After gasnetex.h: a team and a rank for the node, signed strides, and the size of an element
   apart from the counts. */
void gasneti_format_strides(char *buf, size_t count, const ptrdiff_t *list);
size_t gasneti_format_putsgets(char *buf, void *stats, gex_TM_t tm, gex_Rank_t rank, void *dstaddr,
                               const ptrdiff_t dststrides[], void *srcaddr, const ptrdiff_t srcstrides[],
                               size_t elemsz, const size_t count[], size_t stridelevels);
GASNETI_INLINE gasneti_memveclist_stats_t gasneti_format_memveclist(char *buf, size_t count, gex_Memvec_t const *list) {
  return gasnett_format_memveclist(buf, count, (gasnet_memvec_t const *)list);
}
GASNETI_INLINE size_t gasneti_format_putvgetv(char *buf, gex_TM_t tm, gex_Rank_t rank, size_t dstcount,
                                              gex_Memvec_t const dstlist[], size_t srccount,
                                              gex_Memvec_t const srclist[]) {
  return gasnett_format_putvgetv(buf, gex_TM_TranslateRankToJobrank(tm, rank), dstcount,
                                 (gasnet_memvec_t const *)dstlist, srccount, (gasnet_memvec_t const *)srclist);
}
GASNETI_INLINE size_t gasneti_format_putigeti(char *buf, gex_TM_t tm, gex_Rank_t rank, size_t dstcount,
                                              void *const dstlist[], size_t dstlen, size_t srccount,
                                              void *const srclist[], size_t srclen) {
  return gasnett_format_putigeti(buf, gex_TM_TranslateRankToJobrank(tm, rank), dstcount, dstlist, dstlen, srccount,
                                 srclist, srclen);
}
#define gasnett_format_memveclist gasneti_format_memveclist
#define gasnett_format_putvgetv gasneti_format_putvgetv
#define gasnett_format_putigeti gasneti_format_putigeti
#define gasnett_format_strides gasneti_format_strides
#define gasnett_format_putsgets gasneti_format_putsgets
#endif

/* Records the line of the call (gasnet_trace.h) */
#ifndef GASNETI_INSIDE_LIBRARY
#define gasnet_putv_bulk(a, b, c, d, e) GASNETI_HERE(gasnet_putv_bulk, (a, b, c, d, e))
#define gasnet_putv_nb_bulk(a, b, c, d, e) GASNETI_HERE_MUST(gasnet_putv_nb_bulk, (a, b, c, d, e))
#define gasnet_putv_nbi_bulk(a, b, c, d, e) GASNETI_HERE(gasnet_putv_nbi_bulk, (a, b, c, d, e))
#define gasnet_getv_bulk(a, b, c, d, e) GASNETI_HERE(gasnet_getv_bulk, (a, b, c, d, e))
#define gasnet_getv_nb_bulk(a, b, c, d, e) GASNETI_HERE_MUST(gasnet_getv_nb_bulk, (a, b, c, d, e))
#define gasnet_getv_nbi_bulk(a, b, c, d, e) GASNETI_HERE(gasnet_getv_nbi_bulk, (a, b, c, d, e))
#define gasnet_puti_bulk(a, b, c, d, e, f, g) GASNETI_HERE(gasnet_puti_bulk, (a, b, c, d, e, f, g))
#define gasnet_puti_nb_bulk(a, b, c, d, e, f, g) GASNETI_HERE_MUST(gasnet_puti_nb_bulk, (a, b, c, d, e, f, g))
#define gasnet_puti_nbi_bulk(a, b, c, d, e, f, g) GASNETI_HERE(gasnet_puti_nbi_bulk, (a, b, c, d, e, f, g))
#define gasnet_geti_bulk(a, b, c, d, e, f, g) GASNETI_HERE(gasnet_geti_bulk, (a, b, c, d, e, f, g))
#define gasnet_geti_nb_bulk(a, b, c, d, e, f, g) GASNETI_HERE_MUST(gasnet_geti_nb_bulk, (a, b, c, d, e, f, g))
#define gasnet_geti_nbi_bulk(a, b, c, d, e, f, g) GASNETI_HERE(gasnet_geti_nbi_bulk, (a, b, c, d, e, f, g))
#define gasnet_puts_bulk(a, b, c, d, e, f, g) GASNETI_HERE(gasnet_puts_bulk, (a, b, c, d, e, f, g))
#define gasnet_puts_nb_bulk(a, b, c, d, e, f, g) GASNETI_HERE_MUST(gasnet_puts_nb_bulk, (a, b, c, d, e, f, g))
#define gasnet_puts_nbi_bulk(a, b, c, d, e, f, g) GASNETI_HERE(gasnet_puts_nbi_bulk, (a, b, c, d, e, f, g))
#define gasnet_gets_bulk(a, b, c, d, e, f, g) GASNETI_HERE(gasnet_gets_bulk, (a, b, c, d, e, f, g))
#define gasnet_gets_nb_bulk(a, b, c, d, e, f, g) GASNETI_HERE_MUST(gasnet_gets_nb_bulk, (a, b, c, d, e, f, g))
#define gasnet_gets_nbi_bulk(a, b, c, d, e, f, g) GASNETI_HERE(gasnet_gets_nbi_bulk, (a, b, c, d, e, f, g))
#endif

GASNETI_END_EXTERNC

#endif
