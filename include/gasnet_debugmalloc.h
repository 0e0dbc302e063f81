/* Debug malloc, included by gasnet_tools.h where GASNET_DEBUGMALLOC is 1: with GASNET_DEBUG, or if
   the client defines it. The allocator detects writes past the ends of objects, wrong and
   repeated frees and, with GASNET_MALLOC_* in the environment, writes after a free and leaks. */
#ifndef GASNET_DEBUGMALLOC_H
#define GASNET_DEBUGMALLOC_H

#include "gasnet_basic.h"

#ifdef GASNET_DEBUGMALLOC

GASNETI_BEGIN_EXTERNC

/* Bytes are those that were requested, except for the overhead: fences, and objects that are kept
   after their free. */
typedef struct {
  uint64_t allocated_bytes;
  uint64_t freed_bytes;
  uint64_t live_bytes;
  uint64_t live_bytes_max;
  uint64_t allocated_objects;
  uint64_t freed_objects;
  uint64_t live_objects;
  uint64_t live_objects_max;
  uint64_t overhead_bytes;
} gasnett_heapstats_t;

void *gasneti_debug_malloc(size_t size, const char *place) GASNETI_ATTRIBUTE((__malloc__));
void *gasneti_debug_calloc(size_t n, size_t size, const char *place) GASNETI_ATTRIBUTE((__malloc__));
void *gasneti_debug_realloc(void *p, size_t size, const char *place);
void gasneti_debug_free(void *p, const char *place);
char *gasneti_debug_strdup(const char *string, const char *place) GASNETI_ATTRIBUTE((__malloc__));
char *gasneti_debug_strndup(const char *string, size_t n, const char *place) GASNETI_ATTRIBUTE((__malloc__));
void gasneti_debug_memcheck(void *p, const char *place);
void gasneti_debug_memcheck_one(const char *place);
void gasneti_debug_memcheck_all(const char *place);
/* 0 */
int gasnett_getheapstats(gasnett_heapstats_t *stats);

GASNETI_END_EXTERNC

#define GASNETI_PLACE __FILE__ ":" _STRINGIFY(__LINE__)
#define gasnett_debug_malloc(size) gasneti_debug_malloc(size, GASNETI_PLACE)
#define gasnett_debug_calloc(n, size) gasneti_debug_calloc(n, size, GASNETI_PLACE)
#define gasnett_debug_realloc(p, size) gasneti_debug_realloc(p, size, GASNETI_PLACE)
#define gasnett_debug_free(p) gasneti_debug_free(p, GASNETI_PLACE)
#define gasnett_debug_strdup(string) gasneti_debug_strdup(string, GASNETI_PLACE)
#define gasnett_debug_strndup(string, n) gasneti_debug_strndup(string, n, GASNETI_PLACE)
#define gasnett_debug_memcheck(p) gasneti_debug_memcheck(p, GASNETI_PLACE)
#define gasnett_debug_memcheck_one() gasneti_debug_memcheck_one(GASNETI_PLACE)
#define gasnett_debug_memcheck_all() gasneti_debug_memcheck_all(GASNETI_PLACE)

#endif

#endif
