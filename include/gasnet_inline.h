/* Inline paths in front of puts, gets, value forms and memset, included by gasnet.h.

   Where the segment of the peer is mapped here, the operation is done inline. The record
   gasneti_abi says for each peer whether that is allowed; if not, the macro calls the function
   of the library. A name without parentheses is the function.

   To load what other ranks put after a put of its own, a thread needs gasnett_local_mb() in
   between. To get after it has loaded a flag, it needs gasnett_local_rmb(). */
#ifndef GASNET_INLINE_H
#define GASNET_INLINE_H

#include "gasnet.h"
#include "gasnet_direct.h"

/* The functions of the library, after a call that records the line. They are not inlined, so the
   path that does not trace keeps no registers across a call. This takes rows put_8 and get_8,
   cross-mapped, from 11 instructions to 9. */
GASNETI_OUTLINE void gasneti_put_from(gasnet_node_t node, void *dest, const void *src, size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  gasnet_put(node, dest, src, n);
}
GASNETI_OUTLINE void gasneti_put_bulk_from(gasnet_node_t node, void *dest, const void *src, size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  gasnet_put_bulk(node, dest, src, n);
}
GASNETI_OUTLINE void gasneti_put_nbi_from(gasnet_node_t node, void *dest, const void *src, size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  gasnet_put_nbi(node, dest, src, n);
}
GASNETI_OUTLINE void gasneti_put_nbi_bulk_from(gasnet_node_t node, void *dest, const void *src,
    size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  gasnet_put_nbi_bulk(node, dest, src, n);
}
GASNETI_OUTLINE gasnet_handle_t gasneti_put_nb_from(gasnet_node_t node, void *dest, const void *src,
    size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  return gasnet_put_nb(node, dest, src, n);
}
GASNETI_OUTLINE gasnet_handle_t gasneti_put_nb_bulk_from(gasnet_node_t node, void *dest, const void *src,
    size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  return gasnet_put_nb_bulk(node, dest, src, n);
}
GASNETI_OUTLINE void gasneti_get_from(void *dest, gasnet_node_t node, const void *src, size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  gasnet_get(dest, node, src, n);
}
GASNETI_OUTLINE void gasneti_get_bulk_from(void *dest, gasnet_node_t node, const void *src, size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  gasnet_get_bulk(dest, node, src, n);
}
GASNETI_OUTLINE void gasneti_get_nbi_from(void *dest, gasnet_node_t node, const void *src, size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  gasnet_get_nbi(dest, node, src, n);
}
GASNETI_OUTLINE void gasneti_get_nbi_bulk_from(void *dest, gasnet_node_t node, const void *src,
    size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  gasnet_get_nbi_bulk(dest, node, src, n);
}
GASNETI_OUTLINE gasnet_handle_t gasneti_get_nb_from(void *dest, gasnet_node_t node, const void *src,
    size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  return gasnet_get_nb(dest, node, src, n);
}
GASNETI_OUTLINE gasnet_handle_t gasneti_get_nb_bulk_from(void *dest, gasnet_node_t node, const void *src,
    size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  return gasnet_get_nb_bulk(dest, node, src, n);
}
GASNETI_OUTLINE void gasneti_memset_from(gasnet_node_t node, void *dest, int val, size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  gasnet_memset(node, dest, val, n);
}
GASNETI_OUTLINE void gasneti_memset_nbi_from(gasnet_node_t node, void *dest, int val, size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  gasnet_memset_nbi(node, dest, val, n);
}
GASNETI_OUTLINE gasnet_handle_t gasneti_memset_nb_from(gasnet_node_t node, void *dest, int val,
    size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  return gasnet_memset_nb(node, dest, val, n);
}
GASNETI_OUTLINE void gasneti_put_val_from(gasnet_node_t node, void *dest, gasnet_register_value_t value,
    size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  gasnet_put_val(node, dest, value, n);
}
GASNETI_OUTLINE void gasneti_put_nbi_val_from(gasnet_node_t node, void *dest, gasnet_register_value_t value,
    size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  gasnet_put_nbi_val(node, dest, value, n);
}
GASNETI_OUTLINE gasnet_handle_t gasneti_put_nb_val_from(gasnet_node_t node, void *dest, gasnet_register_value_t value,
    size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  return gasnet_put_nb_val(node, dest, value, n);
}
GASNETI_OUTLINE gasnet_register_value_t gasneti_get_val_from(gasnet_node_t node, const void *src,
    size_t n GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  return gasnet_get_val(node, src, n);
}
GASNETI_OUTLINE void gasneti_wait_syncnbi_puts_from(const char *file, int line) {
  gasneti_trace_from(file, (unsigned int)line);
  gasnet_wait_syncnbi_puts();
}
GASNETI_OUTLINE void gasneti_wait_syncnbi_gets_from(const char *file, int line) {
  gasneti_trace_from(file, (unsigned int)line);
  gasnet_wait_syncnbi_gets();
}
GASNETI_OUTLINE void gasneti_wait_syncnbi_all_from(const char *file, int line) {
  gasneti_trace_from(file, (unsigned int)line);
  gasnet_wait_syncnbi_all();
}
GASNETI_OUTLINE void gasneti_wait_syncnb_from(gasnet_handle_t handle GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  gasnet_wait_syncnb(handle);
}

GASNETI_ALWAYS_INLINE void gasneti_put_inline(gasnet_node_t node, void *dest, const void *src,
                                              size_t n GASNETI_CALLER) {
  if (!gasneti_put_here(node, dest, src, n))
      (GASNETI_WATCHED ? gasneti_put_from(node, dest, src, n, file, line) : gasnet_put(node, dest, src, n));
}
GASNETI_ALWAYS_INLINE void gasneti_put_bulk_inline(gasnet_node_t node, void *dest, const void *src,
                                                   size_t n GASNETI_CALLER) {
  if (!gasneti_put_here(node, dest, src, n))
      (GASNETI_WATCHED ? gasneti_put_bulk_from(node, dest, src, n, file, line) : gasnet_put_bulk(node, dest, src, n));
}
GASNETI_ALWAYS_INLINE void gasneti_put_nbi_inline(gasnet_node_t node, void *dest, const void *src,
                                                  size_t n GASNETI_CALLER) {
  if (!gasneti_put_here(node, dest, src, n))
      (GASNETI_WATCHED ? gasneti_put_nbi_from(node, dest, src, n, file, line) : gasnet_put_nbi(node, dest, src, n));
}
GASNETI_ALWAYS_INLINE void gasneti_put_nbi_bulk_inline(gasnet_node_t node, void *dest, const void *src,
                                                       size_t n GASNETI_CALLER) {
  if (!gasneti_put_here(node, dest, src, n))
      (GASNETI_WATCHED ? gasneti_put_nbi_bulk_from(node, dest, src, n, file, line)
                       : gasnet_put_nbi_bulk(node, dest, src, n));
}
GASNETI_MUST_SYNC GASNETI_ALWAYS_INLINE gasnet_handle_t
gasneti_put_nb_inline(gasnet_node_t node, void *dest, const void *src, size_t n GASNETI_CALLER) {
  return gasneti_put_here(node, dest, src, n) ? GASNET_INVALID_HANDLE :
      (GASNETI_WATCHED ? gasneti_put_nb_from(node, dest, src, n, file, line) : gasnet_put_nb(node, dest, src, n));
}
GASNETI_MUST_SYNC GASNETI_ALWAYS_INLINE gasnet_handle_t
gasneti_put_nb_bulk_inline(gasnet_node_t node, void *dest, const void *src, size_t n GASNETI_CALLER) {
  return gasneti_put_here(node, dest, src, n) ? GASNET_INVALID_HANDLE
      :
          (GASNETI_WATCHED ? gasneti_put_nb_bulk_from(node, dest, src, n, file, line)
                           : gasnet_put_nb_bulk(node, dest, src, n));
}

GASNETI_ALWAYS_INLINE void gasneti_get_inline(void *dest, gasnet_node_t node, const void *src,
                                              size_t n GASNETI_CALLER) {
  if (!gasneti_get_here(dest, node, src, n))
      (GASNETI_WATCHED ? gasneti_get_from(dest, node, src, n, file, line) : gasnet_get(dest, node, src, n));
}
GASNETI_ALWAYS_INLINE void gasneti_get_bulk_inline(void *dest, gasnet_node_t node, const void *src,
                                                   size_t n GASNETI_CALLER) {
  if (!gasneti_get_here(dest, node, src, n))
      (GASNETI_WATCHED ? gasneti_get_bulk_from(dest, node, src, n, file, line) : gasnet_get_bulk(dest, node, src, n));
}
GASNETI_ALWAYS_INLINE void gasneti_get_nbi_inline(void *dest, gasnet_node_t node, const void *src,
                                                  size_t n GASNETI_CALLER) {
  if (!gasneti_get_here(dest, node, src, n))
      (GASNETI_WATCHED ? gasneti_get_nbi_from(dest, node, src, n, file, line) : gasnet_get_nbi(dest, node, src, n));
}
GASNETI_ALWAYS_INLINE void gasneti_get_nbi_bulk_inline(void *dest, gasnet_node_t node, const void *src,
                                                       size_t n GASNETI_CALLER) {
  if (!gasneti_get_here(dest, node, src, n))
      (GASNETI_WATCHED ? gasneti_get_nbi_bulk_from(dest, node, src, n, file, line)
                       : gasnet_get_nbi_bulk(dest, node, src, n));
}
GASNETI_MUST_SYNC GASNETI_ALWAYS_INLINE gasnet_handle_t
gasneti_get_nb_inline(void *dest, gasnet_node_t node, const void *src, size_t n GASNETI_CALLER) {
  return gasneti_get_here(dest, node, src, n) ? GASNET_INVALID_HANDLE :
      (GASNETI_WATCHED ? gasneti_get_nb_from(dest, node, src, n, file, line) : gasnet_get_nb(dest, node, src, n));
}
GASNETI_MUST_SYNC GASNETI_ALWAYS_INLINE gasnet_handle_t
gasneti_get_nb_bulk_inline(void *dest, gasnet_node_t node, const void *src, size_t n GASNETI_CALLER) {
  return gasneti_get_here(dest, node, src, n) ? GASNET_INVALID_HANDLE
      :
          (GASNETI_WATCHED ? gasneti_get_nb_bulk_from(dest, node, src, n, file, line)
                           : gasnet_get_nb_bulk(dest, node, src, n));
}

GASNETI_ALWAYS_INLINE void gasneti_memset_inline(gasnet_node_t node, void *dest, int val, size_t n GASNETI_CALLER) {
  if (!gasneti_memset_here(node, dest, val, n))
      (GASNETI_WATCHED ? gasneti_memset_from(node, dest, val, n, file, line) : gasnet_memset(node, dest, val, n));
}
GASNETI_ALWAYS_INLINE void gasneti_memset_nbi_inline(gasnet_node_t node, void *dest, int val, size_t n GASNETI_CALLER) {
  if (!gasneti_memset_here(node, dest, val, n))
      (GASNETI_WATCHED ? gasneti_memset_nbi_from(node, dest, val, n, file, line)
                       : gasnet_memset_nbi(node, dest, val, n));
}
GASNETI_MUST_SYNC GASNETI_ALWAYS_INLINE gasnet_handle_t
gasneti_memset_nb_inline(gasnet_node_t node, void *dest, int val, size_t n GASNETI_CALLER) {
  return gasneti_memset_here(node, dest, val, n) ? GASNET_INVALID_HANDLE
      :
          (GASNETI_WATCHED ? gasneti_memset_nb_from(node, dest, val, n, file, line)
                           : gasnet_memset_nb(node, dest, val, n));
}

GASNETI_ALWAYS_INLINE void
gasneti_put_val_inline(gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t n GASNETI_CALLER) {
  if (!gasneti_put_val_here(node, dest, value, n))
      (GASNETI_WATCHED ? gasneti_put_val_from(node, dest, value, n, file, line)
                       : gasnet_put_val(node, dest, value, n));
}
GASNETI_ALWAYS_INLINE void
gasneti_put_nbi_val_inline(gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t n GASNETI_CALLER) {
  if (!gasneti_put_val_here(node, dest, value, n))
      (GASNETI_WATCHED ? gasneti_put_nbi_val_from(node, dest, value, n, file, line)
                       : gasnet_put_nbi_val(node, dest, value, n));
}
GASNETI_MUST_SYNC GASNETI_ALWAYS_INLINE gasnet_handle_t
gasneti_put_nb_val_inline(gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t n GASNETI_CALLER) {
  return gasneti_put_val_here(node, dest, value, n) ? GASNET_INVALID_HANDLE
      :
          (GASNETI_WATCHED ? gasneti_put_nb_val_from(node, dest, value, n, file, line)
                           : gasnet_put_nb_val(node, dest, value, n));
}
GASNETI_ALWAYS_INLINE gasnet_register_value_t gasneti_get_val_inline(gasnet_node_t node, const void *src,
                                                                     size_t n GASNETI_CALLER) {
  void *here;
  if (gasneti_direct(node, src, n, &here)) {
    gasnet_register_value_t value = 0;
    switch (n) {
      case 1: value = gasneti_load8(here); break;
      case 2: value = gasneti_load16(here); break;
      case 4: value = gasneti_load32(here); break;
#if PLATFORM_ARCH_64
      case 8: value = gasneti_load64(here); break;
#endif
      default: return
          (GASNETI_WATCHED ? gasneti_get_val_from(node, src, n, file, line) : gasnet_get_val(node, src, n));
    }
    gasnett_local_rmb();
    return value;
  }
  return (GASNETI_WATCHED ? gasneti_get_val_from(node, src, n, file, line) : gasnet_get_val(node, src, n));
}

/* A handle of an operation that was complete when it was initiated needs no sync. While calls are
   watched, they return no such handle, and a wait for the constant GASNET_INVALID_HANDLE goes to
   the library, as every other sync. */
GASNETI_ALWAYS_INLINE void gasneti_wait_syncnb_inline(gasnet_handle_t handle GASNETI_CALLER) {
  int is_constant = gasneti_constant_handle((uintptr_t)handle);
  if (handle != GASNET_INVALID_HANDLE || (is_constant && !gasneti_abi.implicit))
    (GASNETI_WATCHED ? gasneti_wait_syncnb_from(handle, file, line) : gasnet_wait_syncnb(handle));
}
GASNETI_ALWAYS_INLINE void gasneti_wait_syncnbi_puts_inline(const char *file, int line) {
  if (!gasneti_implicit_done())
    (GASNETI_WATCHED ? gasneti_wait_syncnbi_puts_from(file, line) : gasnet_wait_syncnbi_puts());
}
GASNETI_ALWAYS_INLINE void gasneti_wait_syncnbi_gets_inline(const char *file, int line) {
  if (!gasneti_implicit_done())
    (GASNETI_WATCHED ? gasneti_wait_syncnbi_gets_from(file, line) : gasnet_wait_syncnbi_gets());
}
GASNETI_ALWAYS_INLINE void gasneti_wait_syncnbi_all_inline(const char *file, int line) {
  if (!gasneti_implicit_done())
    (GASNETI_WATCHED ? gasneti_wait_syncnbi_all_from(file, line) : gasnet_wait_syncnbi_all());
}

#define gasnet_put(node, dest, src, n) gasneti_put_inline(node, dest, src, n, __FILE__, __LINE__)
#define gasnet_put_bulk(node, dest, src, n) gasneti_put_bulk_inline(node, dest, src, n, __FILE__, __LINE__)
#define gasnet_put_nbi(node, dest, src, n) gasneti_put_nbi_inline(node, dest, src, n, __FILE__, __LINE__)
#define gasnet_put_nbi_bulk(node, dest, src, n) gasneti_put_nbi_bulk_inline(node, dest, src, n, __FILE__, __LINE__)
#define gasnet_put_nb(node, dest, src, n) gasneti_put_nb_inline(node, dest, src, n, __FILE__, __LINE__)
#define gasnet_put_nb_bulk(node, dest, src, n) gasneti_put_nb_bulk_inline(node, dest, src, n, __FILE__, __LINE__)
#define gasnet_get(dest, node, src, n) gasneti_get_inline(dest, node, src, n, __FILE__, __LINE__)
#define gasnet_get_bulk(dest, node, src, n) gasneti_get_bulk_inline(dest, node, src, n, __FILE__, __LINE__)
#define gasnet_get_nbi(dest, node, src, n) gasneti_get_nbi_inline(dest, node, src, n, __FILE__, __LINE__)
#define gasnet_get_nbi_bulk(dest, node, src, n) gasneti_get_nbi_bulk_inline(dest, node, src, n, __FILE__, __LINE__)
#define gasnet_get_nb(dest, node, src, n) gasneti_get_nb_inline(dest, node, src, n, __FILE__, __LINE__)
#define gasnet_get_nb_bulk(dest, node, src, n) gasneti_get_nb_bulk_inline(dest, node, src, n, __FILE__, __LINE__)
#define gasnet_memset(node, dest, val, n) gasneti_memset_inline(node, dest, val, n, __FILE__, __LINE__)
#define gasnet_memset_nbi(node, dest, val, n) gasneti_memset_nbi_inline(node, dest, val, n, __FILE__, __LINE__)
#define gasnet_memset_nb(node, dest, val, n) gasneti_memset_nb_inline(node, dest, val, n, __FILE__, __LINE__)
#define gasnet_put_val(node, dest, value, n) gasneti_put_val_inline(node, dest, value, n, __FILE__, __LINE__)
#define gasnet_put_nbi_val(node, dest, value, n) gasneti_put_nbi_val_inline(node, dest, value, n, __FILE__, __LINE__)
#define gasnet_put_nb_val(node, dest, value, n) gasneti_put_nb_val_inline(node, dest, value, n, __FILE__, __LINE__)
#define gasnet_get_val(node, src, n) gasneti_get_val_inline(node, src, n, __FILE__, __LINE__)
#define gasnet_wait_syncnb(handle) gasneti_wait_syncnb_inline(handle, __FILE__, __LINE__)
#define gasnet_wait_syncnbi_puts() gasneti_wait_syncnbi_puts_inline(__FILE__, __LINE__)
#define gasnet_wait_syncnbi_gets() gasneti_wait_syncnbi_gets_inline(__FILE__, __LINE__)
#define gasnet_wait_syncnbi_all() gasneti_wait_syncnbi_all_inline(__FILE__, __LINE__)

/* Calls without an inline path, with their source lines (gasnet_trace.h). */
#if GASNETI_VARIADIC_MACROS
/* The table may be a compound literal, which has commas. */
#define gasnet_attach(...) GASNETI_HERE(gasnet_attach, (__VA_ARGS__))
#else
#define gasnet_attach(t, n, s, m) GASNETI_HERE(gasnet_attach, (t, n, s, m))
#endif
#define gasnet_wait_syncnb_some(h, n) GASNETI_HERE(gasnet_wait_syncnb_some, (h, n))
#define gasnet_wait_syncnb_all(h, n) GASNETI_HERE(gasnet_wait_syncnb_all, (h, n))
#define gasnet_try_syncnb(h) GASNETI_HERE(gasnet_try_syncnb, (h))
#define gasnet_try_syncnb_some(h, n) GASNETI_HERE(gasnet_try_syncnb_some, (h, n))
#define gasnet_try_syncnb_all(h, n) GASNETI_HERE(gasnet_try_syncnb_all, (h, n))
#define gasnet_try_syncnb_nopoll(h) GASNETI_HERE(gasnet_try_syncnb_nopoll, (h))
#define gasnet_try_syncnb_some_nopoll(h, n) GASNETI_HERE(gasnet_try_syncnb_some_nopoll, (h, n))
#define gasnet_try_syncnb_all_nopoll(h, n) GASNETI_HERE(gasnet_try_syncnb_all_nopoll, (h, n))
#define gasnet_try_syncnbi_gets() GASNETI_HERE_TOO(gasnet_try_syncnbi_gets)
#define gasnet_try_syncnbi_puts() GASNETI_HERE_TOO(gasnet_try_syncnbi_puts)
#define gasnet_try_syncnbi_all() GASNETI_HERE_TOO(gasnet_try_syncnbi_all)
#define gasnet_begin_nbi_accessregion() GASNETI_HERE_TOO(gasnet_begin_nbi_accessregion)
#define gasnet_end_nbi_accessregion() GASNETI_HERE_MUST(gasnet_end_nbi_accessregion, ())
#define gasnet_get_nb_val(n, s, b) GASNETI_HERE_MUST(gasnet_get_nb_val, (n, s, b))
#define gasnet_wait_syncnb_valget(h) GASNETI_HERE(gasnet_wait_syncnb_valget, (h))

#endif
