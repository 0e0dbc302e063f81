/* Basis of all other headers: the system headers that clients obtain through gasnet.h,
   annotations for the compiler, and a few small macros. Usable alone; needs no thread or segment
   mode. */
#ifndef GASNET_BASIC_H
#define GASNET_BASIC_H

/* Whether the client has threads. A client of the tools alone has, if it defines
   GASNETT_THREAD_SAFE, if its compiler options say so, or if it has included <pthread.h>; not if
   it defines GASNETT_THREAD_SINGLE. So this comes before this header's own inclusion of
   <pthread.h>. */
#if defined(GASNETT_THREAD_SAFE) && defined(GASNETT_THREAD_SINGLE)
#error "GASNETT_THREAD_SAFE and GASNETT_THREAD_SINGLE are both defined: define one of them"
#endif
#if defined(GASNET_SEQ)
#define GASNETI_THREADED 0
#elif defined(GASNETT_THREAD_SINGLE) && !defined(GASNET_PAR) && !defined(GASNET_PARSYNC)
#define GASNETI_THREADED 0
#elif defined(GASNET_PAR) || defined(GASNET_PARSYNC) || defined(GASNETT_THREAD_SAFE) || defined(_REENTRANT) ||        \
    defined(_THREAD_SAFE) || defined(PTHREAD_MUTEX_INITIALIZER)
#define GASNETI_THREADED 1
#else
#define GASNETI_THREADED 0
#endif
/* Clients may ask which of them it is. */
#if !defined(GASNETT_THREAD_SAFE) && !defined(GASNETT_THREAD_SINGLE)
#if GASNETI_THREADED
#define GASNETT_THREAD_SAFE 1
#else
#define GASNETT_THREAD_SINGLE 1
#endif
#endif

#include "gasnet_config.h"

/* Debug malloc: on with GASNET_DEBUG unless the client defines it as 0; off otherwise unless the
   client defines it as 1. */
#if defined(GASNET_DEBUGMALLOC) ? GASNET_DEBUGMALLOC + 0 : defined(GASNET_DEBUG) && GASNET_DEBUG + 0
#undef GASNET_DEBUGMALLOC
#define GASNET_DEBUGMALLOC 1
#define GASNETI_DEBUGMALLOC_CONFIG "debugmalloc"
#else
#undef GASNET_DEBUGMALLOC
#define GASNETI_DEBUGMALLOC_CONFIG "nodebugmalloc"
#endif

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/types.h>
#include <unistd.h>

#ifdef __cplusplus
#define GASNETI_BEGIN_EXTERNC extern "C" {
#define GASNETI_END_EXTERNC }
#define GASNETI_EXTERNC extern "C"
#else
#define GASNETI_BEGIN_EXTERNC
#define GASNETI_END_EXTERNC
#define GASNETI_EXTERNC extern
#endif

/* Whether the language has macros with any number of arguments. An argument of a call that is a
   compound literal has commas, which make several arguments of it. */
#if defined(__cplusplus) ? __cplusplus >= 201103L : defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L
#define GASNETI_VARIADIC_MACROS 1
#else
#define GASNETI_VARIADIC_MACROS 0
#endif

#ifndef _STRINGIFY
#define _STRINGIFY_HELPER(x) #x
#define _STRINGIFY(x) _STRINGIFY_HELPER(x)
#endif
#ifndef _CONCAT
#define _CONCAT_HELPER(a, b) a##b
#define _CONCAT(a, b) _CONCAT_HELPER(a, b)
#endif
#ifndef MIN
#define MIN(x, y) ((x) < (y) ? (x) : (y))
#endif
#ifndef MAX
#define MAX(x, y) ((x) > (y) ? (x) : (y))
#endif

#if defined(__GNUC__) || defined(__clang__)
#define GASNETI_ATTRIBUTE(list) __attribute__(list)
#define GASNETI_EXTENSION __extension__
#define GASNETT_PREDICT_TRUE(exp) __builtin_expect(!!(exp), 1)
#define GASNETT_PREDICT_FALSE(exp) __builtin_expect(!!(exp), 0)
#define gasnett_constant_p(exp) __builtin_constant_p(exp)
#else
#define GASNETI_ATTRIBUTE(list)
#define GASNETI_EXTENSION
#define GASNETT_PREDICT_TRUE(exp) (exp)
#define GASNETT_PREDICT_FALSE(exp) (exp)
#define gasnett_constant_p(exp) 0
#endif
#ifndef if_pf
#define if_pf(cond) if (GASNETT_PREDICT_FALSE(cond))
#define if_pt(cond) if (GASNETT_PREDICT_TRUE(cond))
#endif

/* Formats of a size_t, without the per cent sign. */
#ifndef PRIuSZ
#define PRIuSZ "zu"
#define PRIdSZ "zd"
#define PRIiSZ "zi"
#define PRIoSZ "zo"
#define PRIxSZ "zx"
#define PRIXSZ "zX"
#endif
/* Those of a ptrdiff_t. */
#ifndef PRIdPD
#define PRIdPD "td"
#define PRIiPD "ti"
#define PRIuPD "tu"
#define PRIoPD "to"
#define PRIxPD "tx"
#define PRIXPD "tX"
#endif

#define GASNETI_INLINE static __inline__ GASNETI_ATTRIBUTE((__unused__))
#define GASNETI_ALWAYS_INLINE static __inline__ GASNETI_ATTRIBUTE((__unused__, __always_inline__))

#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
#define GASNETI_CURRENT_FUNCTION __func__
#else
#define GASNETI_CURRENT_FUNCTION "unknown function"
#endif

GASNETI_EXTERNC const char *gasnett_gethostname(void);

/* A 64-bit word and its halves: clients pass a pointer in two arguments of a message. */
#define GASNETI_MAKEWORD(hi, lo) (((uint64_t)(uint32_t)(hi) << 32) | (uint32_t)(lo))
#define GASNETI_HIWORD(word) ((uint32_t)((uint64_t)(word) >> 32))
#define GASNETI_LOWORD(word) ((uint32_t)(uint64_t)(word))

/* A string that tools find in the object file. */
#define GASNETI_IDENT_LOCAL(name, text) static char const name[] GASNETI_ATTRIBUTE((__used__)) = text

#endif
