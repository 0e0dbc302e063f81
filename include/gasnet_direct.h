/* Puts, gets and memsets of this thread in mapped memory, for the inline paths of both interfaces.
   Included by gasnet_inline.h and gasnetex_inline.h.

   The record gasneti_abi says for each peer whether its segment is mapped here, and whether the
   inline paths may be taken. A put is ordered after the earlier stores and before the later stores
   of this thread, a get before its later loads. On x86 a compiler barrier is enough for that. */
#ifndef GASNET_DIRECT_H
#define GASNET_DIRECT_H

#include "gasnet_common.h"

/* Integers at any address, laid over objects of any type. */
typedef struct GASNETI_ATTRIBUTE((__packed__, __may_alias__)) { uint8_t v; } gasneti_any8_t;
typedef struct GASNETI_ATTRIBUTE((__packed__, __may_alias__)) { uint16_t v; } gasneti_any16_t;
typedef struct GASNETI_ATTRIBUTE((__packed__, __may_alias__)) { uint32_t v; } gasneti_any32_t;
typedef struct GASNETI_ATTRIBUTE((__packed__, __may_alias__)) { uint64_t v; } gasneti_any64_t;
/* Those in memory that only this thread uses meanwhile. */
#define GASNETI_OWN(bits, p) (((gasneti_any##bits##_t *)(p))->v)
#define GASNETI_OWN_CONST(bits, p) (((const gasneti_any##bits##_t *)(p))->v)
/* Those in memory that other threads and processes access at the same time: gasneti_load8 and its
   like are one load or store. For some processors, the compiler accesses each byte of an integer
   at any address; there this holds for multiples of its size. The two accesses differ in
   `volatile`: the compiler makes one of two that are alike. */
#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__) || defined(__powerpc__)
#define GASNETI_SHARED(bits) \
  GASNETI_ALWAYS_INLINE uint##bits##_t gasneti_load##bits(const void *p) { \
    return ((const volatile gasneti_any##bits##_t *)p)->v; \
  } \
  GASNETI_ALWAYS_INLINE void gasneti_store##bits(void *p, uint##bits##_t word) { \
    ((volatile gasneti_any##bits##_t *)p)->v = word; \
  }
#else
#define GASNETI_SHARED(bits) \
  typedef uint##bits##_t GASNETI_ATTRIBUTE((__may_alias__)) gasneti_whole##bits##_t; \
  GASNETI_ALWAYS_INLINE uint##bits##_t gasneti_load##bits(const void *p) { \
    if ((uintptr_t)p % (bits / 8)) return GASNETI_OWN_CONST(bits, p); \
    return *(const volatile gasneti_whole##bits##_t *)p; \
  } \
  GASNETI_ALWAYS_INLINE void gasneti_store##bits(void *p, uint##bits##_t word) { \
    if ((uintptr_t)p % (bits / 8)) GASNETI_OWN(bits, p) = word; \
    else *(volatile gasneti_whole##bits##_t *)p = word; \
  }
#endif
GASNETI_SHARED(8)
GASNETI_SHARED(16)
GASNETI_SHARED(32)
GASNETI_SHARED(64)

/* Finds the address, in this process, of the n bytes at addr of a node; zero if the library must
   be called. */
GASNETI_ALWAYS_INLINE int gasneti_direct(gasnet_node_t node, const void *addr, size_t n, void **here) {
  const size_t rank = node;
  uintptr_t offset, starts;
  if (GASNETT_PREDICT_FALSE(rank >= GASNETI_NEAR)) return 0;
  offset = (uintptr_t)addr - gasneti_abi.base[rank];
  starts = gasneti_abi.starts[rank];
  if (GASNETT_PREDICT_FALSE(offset >= starts)) return 0;
  *here = (void *)((uintptr_t)addr + gasneti_abi.distance[rank]);
  return (gasnett_constant_p(n) && n <= 8) || GASNETT_PREDICT_TRUE(n <= starts - offset + 7);
}

/* Does a put inline; zero if the library must be called. For a constant n of 1, 2, 4 or 8 it is
   one load and one store. The load comes before the barrier: a value that this thread has just
   stored may still be in a register. Without bytes src may be null, which memcpy forbids. */
#define GASNETI_PUT_WORD(bits) do { \
    const uint##bits##_t word = GASNETI_OWN_CONST(bits, src); \
    gasnett_local_wmb(); \
    gasneti_store##bits(here, word); \
  } while (0)
GASNETI_ALWAYS_INLINE int gasneti_put_sized(gasnet_node_t node, void *dest, const void *src, size_t n) {
  void *here;
  if (!gasneti_direct(node, dest, n, &here)) return 0;
  switch (gasnett_constant_p(n) ? n : 0) {
    case 1: GASNETI_PUT_WORD(8); break;
    case 2: GASNETI_PUT_WORD(16); break;
    case 4: GASNETI_PUT_WORD(32); break;
    case 8: GASNETI_PUT_WORD(64); break;
    default: gasnett_local_wmb(); if (n) memcpy(here, src, n);
  }
  gasnett_local_wmb();
  return 1;
}

/* Does a get inline; zero if the library must be called. */
#define GASNETI_GET_WORD(bits) do { \
    const uint##bits##_t word = gasneti_load##bits(here); \
    gasnett_local_rmb(); \
    GASNETI_OWN(bits, dest) = word; \
  } while (0)
GASNETI_ALWAYS_INLINE int gasneti_get_sized(void *dest, gasnet_node_t node, const void *src, size_t n) {
  void *here;
  if (!gasneti_direct(node, src, n, &here)) return 0;
  switch (gasnett_constant_p(n) ? n : 0) {
    case 1: GASNETI_GET_WORD(8); break;
    case 2: GASNETI_GET_WORD(16); break;
    case 4: GASNETI_GET_WORD(32); break;
    case 8: GASNETI_GET_WORD(64); break;
    default: if (n) memcpy(dest, here, n); gasnett_local_rmb();
  }
  return 1;
}

/* The same for an n that is known at run time only. 1, 2, 4 and 8 bytes are one load and one
   store: memcpy may split or repeat accesses. The library does 0, 3, 5, 6 and 7 bytes. In this
   order of the comparisons 16 to 128 bytes take about half as long on an AMD EPYC as with `n == 8`
   first. Without optimisation the compiler knows no size, so the library does all. */
#ifdef __OPTIMIZE__
/* Hides the object from the compiler, which would take each case as a copy of that size and
   warn. */
#define GASNETI_FORGET_OBJECT(p) __asm__("" : "+r"(p))
GASNETI_ALWAYS_INLINE int gasneti_put_here(gasnet_node_t node, void *dest, const void *src, size_t n) {
  if (gasnett_constant_p(n)) return gasneti_put_sized(node, dest, src, n);
  GASNETI_FORGET_OBJECT(src);
  if (n > 8) return gasneti_put_sized(node, dest, src, n);
  if (n == 8) return gasneti_put_sized(node, dest, src, 8);
  if (n == 4) return gasneti_put_sized(node, dest, src, 4);
  if (n == 2) return gasneti_put_sized(node, dest, src, 2);
  return n == 1 && gasneti_put_sized(node, dest, src, 1);
}
GASNETI_ALWAYS_INLINE int gasneti_get_here(void *dest, gasnet_node_t node, const void *src, size_t n) {
  if (gasnett_constant_p(n)) return gasneti_get_sized(dest, node, src, n);
  GASNETI_FORGET_OBJECT(dest);
  if (n > 8) return gasneti_get_sized(dest, node, src, n);
  if (n == 8) return gasneti_get_sized(dest, node, src, 8);
  if (n == 4) return gasneti_get_sized(dest, node, src, 4);
  if (n == 2) return gasneti_get_sized(dest, node, src, 2);
  return n == 1 && gasneti_get_sized(dest, node, src, 1);
}
#else
#define gasneti_put_here(node, dest, src, n) 0
#define gasneti_get_here(dest, node, src, n) 0
#endif

/* Does a memset inline; zero if the library must be called. */
GASNETI_ALWAYS_INLINE int gasneti_memset_here(gasnet_node_t node, void *dest, int val, size_t n) {
  void *here;
  if (!gasneti_direct(node, dest, n, &here)) return 0;
  gasnett_local_wmb();
  memset(here, val, n);
  gasnett_local_wmb();
  return 1;
}

/* Puts the low-order n bytes of a value inline; zero if the library must be called, which also
   rejects an invalid n. */
GASNETI_ALWAYS_INLINE int gasneti_put_val_here(gasnet_node_t node, void *dest, uintptr_t value, size_t n) {
  void *here;
  if (!gasneti_direct(node, dest, n, &here)) return 0;
  gasnett_local_wmb();
  switch (n) {
    case 1: gasneti_store8(here, (uint8_t)value); break;
    case 2: gasneti_store16(here, (uint16_t)value); break;
    case 4: gasneti_store32(here, (uint32_t)value); break;
#if PLATFORM_ARCH_64
    case 8: gasneti_store64(here, (uint64_t)value); break;
#endif
    default: return 0;
  }
  gasnett_local_wmb();
  return 1;
}

/* Whether the argument of a wait, a handle or event, is a constant. Taken as an integer: compilers
   know no pointer that is passed to a function as a constant. Without optimisation they know none,
   so each may be. */
GASNETI_ALWAYS_INLINE int gasneti_constant_handle(uintptr_t handle) {
#ifdef __OPTIMIZE__
  return gasnett_constant_p(handle);
#else
  return (void)handle, 1;
#endif
}

/* Whether no implicit operation of this thread is in flight. */
GASNETI_ALWAYS_INLINE int gasneti_implicit_done(void) { return gasneti_abi.implicit && !*gasneti_abi.implicit; }

/* Parameters and attributes of functions that record the line of the call. */
#define GASNETI_CALLER , const char *file, int line
#define GASNETI_OUTLINE GASNETI_ATTRIBUTE((__noinline__, __unused__)) static

#endif
