/* The tools interface: timers, memory barriers, atomics, annotations, locks, thread keys,
   environment, numbers, debugging, signals, system queries. Usable after gasnet.h, or alone and
   without a job. Alone, it serves a program with threads if GASNETT_THREAD_SAFE is defined, if
   the compiler options say so, or if <pthread.h> was included before. With GASNETT_LITE_MODE it
   has timers, memory barriers, annotations and the configuration only. */
#ifndef _GASNET_TOOLS_H
#define _GASNET_TOOLS_H
#define _INCLUDED_GASNET_TOOLS_H 1

#if (defined(GASNET_SEQ) || defined(GASNET_PARSYNC) || defined(GASNET_PAR)) && !defined(_GASNET_COMMON_H)
#error Include gasnet.h before gasnet_tools.h, or define none of GASNET_SEQ, GASNET_PARSYNC and GASNET_PAR
#endif
#if defined(GASNETT_LITE_MODE) && defined(_GASNET_COMMON_H)
#error GASNETT_LITE_MODE is for programs that do not include gasnet.h
#endif

#include "gasnet_atomics.h"
#include "gasnet_basic.h"

#define GASNETT_SPEC_VERSION_MAJOR 1
#define GASNETT_SPEC_VERSION_MINOR 20
#define GASNETT_RELEASE_VERSION_MAJOR GASNET_RELEASE_VERSION_MAJOR
#define GASNETT_RELEASE_VERSION_MINOR GASNET_RELEASE_VERSION_MINOR
#define GASNETT_RELEASE_VERSION_PATCH GASNET_RELEASE_VERSION_PATCH

GASNETI_BEGIN_EXTERNC

/* Timers: a tick is a nanosecond of the monotonic clock. */
typedef uint64_t gasnett_tick_t;
#define GASNETT_TICK_MIN ((gasnett_tick_t)0)
#define GASNETT_TICK_MAX ((gasnett_tick_t)-1)
#define GASNETT_TIMER_CONFIG timers_posixrt
gasnett_tick_t gasnett_ticks_now(void);
uint64_t gasnett_gettimeofday_us(void);
double gasnett_tick_granularityus(void);
double gasnett_tick_overheadus(void);
int gasnett_nsleep(uint64_t ns);
#define gasnett_ticks_to_ns(ticks) ((uint64_t)(ticks))
#define gasnett_ticks_to_us(ticks) ((uint64_t)(ticks) / 1000)

GASNETI_END_EXTERNC

/* Annotations; a client turns one off by defining its GASNETT_USE_GCC_ATTRIBUTE_* as 0. */
#ifndef GASNETT_USE_GCC_ATTRIBUTE_FORMAT
#define GASNETT_USE_GCC_ATTRIBUTE_FORMAT 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR
#define GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR_ARG
#define GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR_ARG 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_MAYALIAS
#define GASNETT_USE_GCC_ATTRIBUTE_MAYALIAS 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_ALWAYSINLINE
#define GASNETT_USE_GCC_ATTRIBUTE_ALWAYSINLINE 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_NOINLINE
#define GASNETT_USE_GCC_ATTRIBUTE_NOINLINE 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_MALLOC
#define GASNETT_USE_GCC_ATTRIBUTE_MALLOC 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_WARNUNUSEDRESULT
#define GASNETT_USE_GCC_ATTRIBUTE_WARNUNUSEDRESULT 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_USED
#define GASNETT_USE_GCC_ATTRIBUTE_USED 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_UNUSED
#define GASNETT_USE_GCC_ATTRIBUTE_UNUSED 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_NORETURN
#define GASNETT_USE_GCC_ATTRIBUTE_NORETURN 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_PURE
#define GASNETT_USE_GCC_ATTRIBUTE_PURE 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_CONST
#define GASNETT_USE_GCC_ATTRIBUTE_CONST 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_HOT
#define GASNETT_USE_GCC_ATTRIBUTE_HOT 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_COLD
#define GASNETT_USE_GCC_ATTRIBUTE_COLD 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_DEPRECATED
#define GASNETT_USE_GCC_ATTRIBUTE_DEPRECATED 1
#endif

#if GASNETT_USE_GCC_ATTRIBUTE_ALWAYSINLINE
#define GASNETI_ALWAYS_INLINE_ATTR GASNETI_ATTRIBUTE((__always_inline__))
#else
#define GASNETI_ALWAYS_INLINE_ATTR
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_NOINLINE
#define GASNETI_NOINLINE_ATTR GASNETI_ATTRIBUTE((__noinline__))
#else
#define GASNETI_NOINLINE_ATTR
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_MALLOC
#define GASNETT_MALLOC GASNETI_ATTRIBUTE((__malloc__))
#else
#define GASNETT_MALLOC
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_WARNUNUSEDRESULT
#define GASNETT_WARN_UNUSED_RESULT GASNETI_ATTRIBUTE((__warn_unused_result__))
#else
#define GASNETT_WARN_UNUSED_RESULT
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_USED
#define GASNETT_USED GASNETI_ATTRIBUTE((__used__))
#else
#define GASNETT_USED
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_UNUSED
#define GASNETT_UNUSED GASNETI_ATTRIBUTE((__unused__))
#else
#define GASNETT_UNUSED
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_NORETURN
#define GASNETT_NORETURN GASNETI_ATTRIBUTE((__noreturn__))
#else
#define GASNETT_NORETURN
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_PURE
#define GASNETT_PURE GASNETI_ATTRIBUTE((__pure__))
#else
#define GASNETT_PURE
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_CONST
#define GASNETT_CONST GASNETI_ATTRIBUTE((__const__))
#else
#define GASNETT_CONST
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_HOT
#define GASNETT_HOT GASNETI_ATTRIBUTE((__hot__))
#else
#define GASNETT_HOT
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_COLD
#define GASNETT_COLD GASNETI_ATTRIBUTE((__cold__))
#else
#define GASNETT_COLD
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_DEPRECATED
#define GASNETT_DEPRECATED GASNETI_ATTRIBUTE((__deprecated__))
#else
#define GASNETT_DEPRECATED
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_FORMAT
#define GASNETT_FORMAT_PRINTF(fn, format, first, decl) GASNETI_ATTRIBUTE((__format__(__printf__, format, first))) decl
#else
#define GASNETT_FORMAT_PRINTF(fn, format, first, decl) decl
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR
#define GASNETT_FORMAT_PRINTF_FUNCPTR(fn, format, first, decl)                                                        \
  GASNETI_ATTRIBUTE((__format__(__printf__, format, first))) decl
#else
#define GASNETT_FORMAT_PRINTF_FUNCPTR(fn, format, first, decl) decl
#endif

/* Control never comes here; a condition that always holds; the next case follows on purpose. */
#if defined(__GNUC__) || defined(__clang__)
#define gasnett_unreachable() __builtin_unreachable()
#define gasnett_assume(cond) (GASNETT_PREDICT_TRUE(cond) ? (void)0 : __builtin_unreachable())
#else
#define gasnett_unreachable() ((void)0)
#define gasnett_assume(cond) ((void)0)
#endif
#if defined(__cplusplus) && __cplusplus >= 201703L
#define GASNETT_FALLTHROUGH [[fallthrough]];
#elif defined(__GNUC__) && __GNUC__ >= 7
#define GASNETT_FALLTHROUGH __attribute__((__fallthrough__));
#else
#define GASNETT_FALLTHROUGH
#endif
/* Evaluates arguments, once each, without a warning that their values are not used. */
#define GASNETT_UNUSED_ARGS1(a) ((void)(a))
#define GASNETT_UNUSED_ARGS2(a, b) (GASNETT_UNUSED_ARGS1(a), (void)(b))
#define GASNETT_UNUSED_ARGS3(a, b, c) (GASNETT_UNUSED_ARGS2(a, b), (void)(c))
#define GASNETT_UNUSED_ARGS4(a, b, c, d) (GASNETT_UNUSED_ARGS3(a, b, c), (void)(d))
#define GASNETT_UNUSED_ARGS5(a, b, c, d, e) (GASNETT_UNUSED_ARGS4(a, b, c, d), (void)(e))
#define GASNETT_UNUSED_ARGS6(a, b, c, d, e, f) (GASNETT_UNUSED_ARGS5(a, b, c, d, e), (void)(f))
#define GASNETT_UNUSED_ARGS7(a, b, c, d, e, f, g) (GASNETT_UNUSED_ARGS6(a, b, c, d, e, f), (void)(g))
#define GASNETT_UNUSED_ARGS8(a, b, c, d, e, f, g, h) (GASNETT_UNUSED_ARGS7(a, b, c, d, e, f, g), (void)(h))

#define GASNETT_INLINE(fn) static __inline__ GASNETT_UNUSED
#define GASNETT_ALWAYS_INLINE(fn) static __inline__ GASNETI_ALWAYS_INLINE_ATTR GASNETT_UNUSED
#ifdef GASNETT_USE_PLEASE_INLINE
#define GASNETT_PLEASE_INLINE(fn) GASNETT_USE_PLEASE_INLINE(fn)
#else
#define GASNETT_PLEASE_INLINE(fn) GASNETT_ALWAYS_INLINE(fn)
#endif
#define GASNETT_NEVER_INLINE(fn, decl) GASNETI_NOINLINE_ATTR decl
/* Forms for compilers that take a pragma after the declaration. */
#define GASNETT_NORETURNP(fn)
#define GASNETT_MALLOCP(fn)
#define GASNETT_PUREP(fn)
#define GASNETT_CONSTP(fn)
#if (defined(__GNUC__) || defined(__clang__)) && (!defined(GASNETT_USE_RESTRICT) || GASNETT_USE_RESTRICT + 0)
#define GASNETT_RESTRICT __restrict__
#else
#define GASNETT_RESTRICT
#endif
#define GASNETT_CURRENT_FUNCTION GASNETI_CURRENT_FUNCTION
#define GASNETT_BEGIN_EXTERNC GASNETI_BEGIN_EXTERNC
#define GASNETT_END_EXTERNC GASNETI_END_EXTERNC
#define GASNETT_EXTERNC GASNETI_EXTERNC
/* Declares a variable that several objects declare and at most one initialises. */
#ifdef __cplusplus
#define GASNETT_TENTATIVE_EXTERN extern
#else
#define GASNETT_TENTATIVE_EXTERN GASNETI_ATTRIBUTE((__common__))
#endif
/* Puts a string into the object file under an external name. The caller adds the semicolon. */
#define GASNETT_IDENT(name, text)                                                                                     \
  GASNETI_EXTERNC const char name[];                                                                                  \
  const char name[] GASNETT_USED = text;                                                                              \
  GASNETI_EXTERNC const char name[]

/* Configuration */
#ifdef GASNETT_LITE_MODE
#define GASNETT_THREAD_MODEL LITE
#elif defined(_GASNET_COMMON_H)
#define GASNETT_THREAD_MODEL GASNETI_THREAD_MODE_NAME
#if defined(GASNET_SEQ) && GASNET_SEQ
#define GASNETT_MAX_THREADS 1
#else
#define GASNETT_MAX_THREADS GASNETI_MAX_THREADS
#endif
#else
#if GASNETI_THREADED
#define GASNETT_THREAD_MODEL PAR
#define GASNETT_MAX_THREADS GASNETI_MAX_THREADS
#else
#define GASNETT_THREAD_MODEL SEQ
#define GASNETT_MAX_THREADS 1
#endif
#endif
#if defined(GASNET_DEBUG) && GASNET_DEBUG
#define GASNETT_DEBUG_CONFIG debug
#else
#define GASNETT_DEBUG_CONFIG nodebug
#endif
#define GASNETT_PTR_CONFIG GASNETI_PTR_CONFIG
#define GASNETT_CONFIG_STRING                                                                                         \
  "RELEASE=" _STRINGIFY(GASNETT_RELEASE_VERSION_MAJOR) "." _STRINGIFY(GASNETT_RELEASE_VERSION_MINOR) "." _STRINGIFY(  \
      GASNETT_RELEASE_VERSION_PATCH) ",SPEC=" _STRINGIFY(GASNETT_SPEC_VERSION_MAJOR) "." _STRINGIFY(                  \
      GASNETT_SPEC_VERSION_MINOR) ",THREADMODEL=" _STRINGIFY(GASNETT_THREAD_MODEL) ",PTR=" _STRINGIFY(                \
      GASNETT_PTR_CONFIG) "," _STRINGIFY(GASNETT_DEBUG_CONFIG) "," _STRINGIFY(GASNETT_TIMER_CONFIG) "," _STRINGIFY(   \
      GASNETT_MEMBAR_CONFIG) "," _STRINGIFY(GASNETT_ATOMIC_CONFIG) "," _STRINGIFY(GASNETT_ATOMIC32_CONFIG) ","        \
      _STRINGIFY(GASNETT_ATOMIC64_CONFIG)
#if PLATFORM_OS_LINUX
#define GASNETT_SYSTEM_TUPLE GASNETI_ARCH_STR "-unknown-linux-gnu"
#else
#define GASNETT_SYSTEM_TUPLE GASNETI_ARCH_STR "-unknown-" _STRINGIFY(PLATFORM_OS_FAMILYNAME)
#endif
#define GASNETT_CONFIGURE_ARGS ""
#define GASNETT_CONFIGURE_MISMATCH 0
#define GASNETT_PLATFORM_COMPILER_IDSTR PLATFORM_COMPILER_IDSTR
#define GASNETT_PLATFORM_COMPILER_FAMILYID PLATFORM_COMPILER_FAMILYID
#define GASNETT_PLATFORM_COMPILER_ID PLATFORM_COMPILER_ID
#define GASNETT_PLATFORM_COMPILER_VERSION PLATFORM_COMPILER_VERSION
#define GASNETT_PAGESIZE GASNET_PAGESIZE
#define GASNETT_PAGESHIFT GASNETI_PAGESHIFT
#define GASNETT_CACHE_LINE_BYTES GASNETI_CACHE_LINE_BYTES

#ifndef GASNETT_LITE_MODE

#include "gasnet_debugmalloc.h"
#include "gasnet_locks.h"
#include "gasnet_trace.h"

GASNETI_BEGIN_EXTERNC

/* Numbers. With is_mem a number is a size in bytes, with a suffix B, KB, MB, GB or TB. parse_int
   multiplies a number without suffix by mult. A mult of 0 forbids suffixes. */
char *gasnett_format_number(int64_t value, char *buf, size_t bufsz, int is_mem);
int64_t gasnett_parse_int(const char *string, uint64_t mult);

/* Environment. A value that cannot be parsed is a fatal error. */
void gasnett_setenv(const char *key, const char *value);
void gasnett_unsetenv(const char *key);
char *gasnett_getenv(const char *key);
char *gasnett_getenv_withdefault(const char *key, const char *dflt);
int gasnett_getenv_yesno_withdefault(const char *key, int dflt);
int64_t gasnett_getenv_int_withdefault(const char *key, int64_t dflt, uint64_t mult);
double gasnett_getenv_dbl_withdefault(const char *key, double dflt);
int gasnett_verboseenv(void);
void gasnett_envint_display(const char *key, int64_t value, int is_dflt, int is_mem);
void gasnett_envstr_display(const char *key, const char *value, int is_dflt);
void gasnett_envdbl_display(const char *key, double value, int is_dflt);

/* Debugging and the end of the process */
typedef struct {
  const char *name;
  int (*fnp)(int);
  int threadsupport; /* no effect: the function is called in programs with threads too */
} gasnett_backtrace_type_t;
/* A client may define it: prints a stack, in signal handlers too. It uses no gasnett_debug_malloc,
 * in which the error may have been found. */
extern gasnett_backtrace_type_t gasnett_backtrace_user;
/* A client may assign it. */
extern int (*gasnett_print_backtrace_ifenabled)(int fd);
void gasnett_backtrace_init(const char *exename);
int gasnett_print_backtrace(int fd);
void gasnett_freezeForDebuggerNow(volatile int *flag, const char *flagname);
void gasnett_freezeForDebuggerErr(void);
GASNETT_NORETURN GASNETT_FORMAT_PRINTF(gasnett_fatalerror, 1, 2, void gasnett_fatalerror(const char *fmt, ...));
/* The same: messages do not name the place of the call. */
#define gasnett_fatalerror_nopos gasnett_fatalerror
GASNETT_NORETURN void gasnett_killmyprocess(int exitcode);
void gasnett_flush_streams(void);
void gasnett_close_streams(void);
/* Function, file and line of this place, in memory that the caller frees. */
#define gasnett_current_loc gasneti_current_loc(GASNETT_CURRENT_FUNCTION, __FILE__, __LINE__)
GASNETI_INLINE char *gasneti_current_loc(const char *function, const char *file, int line) {
  int n = snprintf(NULL, 0, "%s() at %s:%d", function, file, line);
  char *text = (char *)malloc((size_t)n + 1);
  if (text) snprintf(text, (size_t)n + 1, "%s() at %s:%d", function, file, line);
  return text;
}

typedef void (*gasnett_sighandlerfn_t)(int);
gasnett_sighandlerfn_t gasnett_reghandler(int sigtocatch, gasnett_sighandlerfn_t fp);
const char *gasnett_signame_fromval(int sigval);
int gasnett_maximize_rlimits(void);
int gasnett_maximize_rlimit(int resource, const char *description);

/* System */
int gasnett_cpu_count(void);
uint64_t gasnett_getPhysMemSz(int failure_is_fatal);
#define GASNETT_SET_AFFINITY_SUPPORT 1
int gasnett_set_affinity(int rank);
const char *gasnett_exe_name(void);
void gasnett_sched_yield(void);
uint64_t gasnett_checksum(const void *p, int nbytes);
size_t gasnett_count0s(const void *src, size_t nbytes);
size_t gasnett_count0s_copy(void *dst, const void *src, size_t nbytes);
const char *gasnett_performance_warning_str(void);

/* The release whose interface the headers give: as text, and as a number that grows. */
#define gasnett_release_version_str()                                                                                 \
  (_STRINGIFY(GASNETT_RELEASE_VERSION_MAJOR) "." _STRINGIFY(GASNETT_RELEASE_VERSION_MINOR) "." _STRINGIFY(            \
      GASNETT_RELEASE_VERSION_PATCH))
#define gasnett_release_version()                                                                                     \
  (GASNETT_RELEASE_VERSION_MAJOR * UINT64_C(1000000) + GASNETT_RELEASE_VERSION_MINOR * UINT64_C(10000) +              \
   GASNETT_RELEASE_VERSION_PATCH)

/* The number of zero bytes of a word. */
#define GASNETI_COUNT0S(type)                                                                                         \
  GASNETI_INLINE int gasnett_count0s_##type(type x) {                                                                 \
    int zeros = 0;                                                                                                    \
    size_t i;                                                                                                         \
    for (i = 0; i < sizeof(type); i++) zeros += ((x >> (8 * i)) & 0xFF) == 0;                                         \
    return zeros;                                                                                                     \
  }
GASNETI_COUNT0S(uint32_t)
GASNETI_COUNT0S(uint64_t)
GASNETI_COUNT0S(uintptr_t)

#if PLATFORM_ARCH_LITTLE_ENDIAN
#define gasnett_isLittleEndian() 1
#else
#define gasnett_isLittleEndian() 0
#endif
#if PLATFORM_ARCH_X86_64 || PLATFORM_ARCH_X86
#define gasnett_spinloop_hint() __asm__ __volatile__("pause" : : : "memory")
#elif PLATFORM_ARCH_AARCH64
#define gasnett_spinloop_hint() __asm__ __volatile__("yield" : : : "memory")
#else
#define gasnett_spinloop_hint() gasnett_compiler_fence()
#endif

/* Characters: the functions of <ctype.h>, for an argument of any char. */
#define GASNETI_CTYPE(fn)                                                                                             \
  GASNETI_INLINE int gasnett_##fn(int c) { return fn((int)(unsigned char)c); }
GASNETI_CTYPE(isalnum)
GASNETI_CTYPE(isalpha)
GASNETI_CTYPE(iscntrl)
GASNETI_CTYPE(isdigit)
GASNETI_CTYPE(isgraph)
GASNETI_CTYPE(islower)
GASNETI_CTYPE(isprint)
GASNETI_CTYPE(ispunct)
GASNETI_CTYPE(isspace)
GASNETI_CTYPE(isupper)
GASNETI_CTYPE(isxdigit)
GASNETI_CTYPE(tolower)
GASNETI_CTYPE(toupper)
GASNETI_INLINE int gasnett_isblank(int c) { return c == ' ' || c == '\t'; }
GASNETI_INLINE int gasnett_isascii(int c) { return (c & ~0x7F) == 0; }
GASNETI_INLINE int gasnett_toascii(int c) { return c & 0x7F; }

#ifdef _GASNET_COMMON_H
/* With the library of a job only. Memory is aligned as requested; failure is fatal, never null. */
void *gasnett_mmap(uintptr_t size);
void *gasnett_malloc_aligned(size_t align, size_t size);
void gasnett_free_aligned(void *p);
/* Tests of the library's internals, for clients that call them: the library has none. The first
   call of process 0 prints that; there are no handlers, and 0 failures. */
#ifdef _GASNET_H
void gasnett_diagnostic_gethandlers(gasnet_handlerentry_t **table, int *numentries);
#endif
int gasnett_run_diagnostics(int iters, int threads, const char *sections, gasnet_seginfo_t const *seginfo);
#ifdef _GASNETEX_H
GASNETI_INLINE void gasneti_diagnostic_gethandlers(gex_AM_Entry_t **table, int *numentries) {
  *table = 0;
  *numentries = 0;
}
GASNETI_INLINE int gasneti_run_diagnostics(int iters, int threads, const char *sections, gex_TM_t tm, void *segment,
                                           gex_Rank_t peer, void *peer_segment, unsigned int seed) {
  (void)tm, (void)segment, (void)peer, (void)peer_segment, (void)seed;
  return gasnett_run_diagnostics(iters, threads, sections, 0);
}
#define gasnett_diagnostic_gethandlers(table, numentries) gasneti_diagnostic_gethandlers(table, numentries)
#define gasnett_run_diagnostics(iters, threads, sections, tm, segment, peer, peer_segment, seed) \
  gasneti_run_diagnostics(iters, threads, sections, tm, segment, peer, peer_segment, seed)
/* A set of values as text. Returns the bytes of the text and its final NUL; a null buf is for
   that number only. */
size_t gasnett_format_dt(char *buf, gex_DT_t dt);
size_t gasnett_format_op(char *buf, gex_OP_t op);
size_t gasnett_format_ti(char *buf, gex_TI_t ti);
#endif
#define GASNETT_FAST_ALIGNED_MEMCPY(dst, src, n) ((void)memcpy(dst, src, n))
#define GASNETT_FAST_UNALIGNED_MEMCPY(dst, src, n) ((void)memcpy(dst, src, n))

/* Stores the low-order n bytes of a value. */
GASNETI_INLINE void gasneti_value_assign(void *dst, uintptr_t value, size_t n) {
#if PLATFORM_ARCH_LITTLE_ENDIAN
  memcpy(dst, &value, n);
#else
  memcpy(dst, (char *)&value + sizeof(value) - n, n);
#endif
}
/* The value of n bytes, extended by zeros. */
GASNETI_INLINE uintptr_t gasneti_value_of(const void *src, size_t n) {
  uintptr_t value = 0;
#if PLATFORM_ARCH_LITTLE_ENDIAN
  memcpy(&value, src, n);
#else
  memcpy((char *)&value + sizeof(value) - n, src, n);
#endif
  return value;
}
#define GASNETT_VALUE_ASSIGN(dst, value, n) gasneti_value_assign(dst, value, n)
#define GASNETT_VALUE_RETURN(src, n) return gasneti_value_of(src, n)
#endif

GASNETI_END_EXTERNC

#endif /* GASNETT_LITE_MODE */
#endif
