/* Numbers and features of this library. Build systems of clients read them, some with awk or grep:
   each name of the release version is on exactly one line of this file.

   The release is the GASNet release whose public interface the headers reproduce, for clients
   that require a minimum release. The version of this library is GASNETI_LIBRARY_VERSION. */
#ifndef _GASNET_CONFIG_H
#define _GASNET_CONFIG_H

#include "gasnet_platform.h"

#define GASNET_RELEASE_VERSION_MAJOR 1
#define GASNET_RELEASE_VERSION_MINOR 29
#define GASNET_RELEASE_VERSION_PATCH 3

#define GASNETI_LIBRARY_VERSION "0.2.0"

/* Debug checks depend on how the client is compiled; the library is the same. */
#if defined(GASNET_DEBUG) && GASNET_DEBUG + 0
#undef GASNET_DEBUG
#define GASNET_DEBUG 1
#undef GASNET_NDEBUG
#else
#undef GASNET_DEBUG
#undef GASNET_NDEBUG
#define GASNET_NDEBUG 1
#endif

/* Tracing and statistics, with lines of the client's source, are available and off until a job
   turns them on. */
#undef GASNET_TRACE
#undef GASNET_STATS
#undef GASNET_SRCLINES
#define GASNET_TRACE 1
#define GASNET_STATS 1
#define GASNET_SRCLINES 1

/* Bytes: sizes and offsets of segments are multiples of it. */
#if PLATFORM_ARCH_X86_64 || PLATFORM_ARCH_X86
#define GASNET_PAGESIZE 4096
#define GASNETI_PAGESHIFT 12
#else
#define GASNET_PAGESIZE 65536
#define GASNETI_PAGESHIFT 16
#endif
#define GASNETI_CACHE_LINE_BYTES 64

/* Most client threads of one process that use the library at the same time, in PARSYNC and PAR. A
   process of SEQ has one. */
#define GASNETI_MAX_THREADS 256

#ifndef HAVE_PTHREAD_H
#define HAVE_PTHREAD_H 1
#endif
#ifndef HAVE_MMAP
#define HAVE_MMAP 1
#endif
#ifndef SIZEOF_INT
#define SIZEOF_INT 4
#endif
#if PLATFORM_ARCH_64
#define GASNETI_PTR_CONFIG 64bit
#ifndef SIZEOF_VOID_P
#define SIZEOF_VOID_P 8
#endif
#else
#define GASNETI_PTR_CONFIG 32bit
#ifndef SIZEOF_VOID_P
#define SIZEOF_VOID_P 4
#endif
#endif

#endif
