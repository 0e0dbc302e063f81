/* Tracing and statistics: what clients add to them, and the source lines of their calls. Included
   by gasnet.h, gasnetex.h and gasnet_tools.h.

   Both are off unless GASNET_TRACEFILE or GASNET_STATSFILE is set when the job starts. Then the
   library sets gasneti_abi.watched; until then each macro tests it once, and the printing macros
   do not evaluate their arguments. After gasnet_tools.h alone, without a job, all macros are
   empty. */
#ifndef GASNET_TRACE_H
#define GASNET_TRACE_H

#include "gasnet_basic.h"

GASNETI_BEGIN_EXTERNC

/* The library calls it when it writes the statistics, with a function that adds a line. At exit it
   comes last, and not after a fatal signal or gasnett_fatalerror. gasnet_exit may have interrupted
   anything, malloc too: a call that does not return then is given up after a third of
   GASNET_EXITTIMEOUT, or 0.5 s. */
typedef void (*gasnett_stats_callback_t)(void (*format)(const char *fmt, ...));

void gasneti_trace_printf(const char *fmt, ...);
void gasneti_trace_printf_force(const char *fmt, ...);
void gasneti_stats_printf(const char *fmt, ...);
void gasneti_stats_printf_force(const char *fmt, ...);
void gasneti_stats_dump(int reset);
/* Empty. Clients name it, so their compiler does not call it unused where it is the expansion of
   the tracing macros. */
GASNETI_INLINE void _gasnett_trace_printf_noop(const char *fmt, ...) { (void)fmt; }

#ifdef _GASNET_COMMON_H
void gasneti_trace_from(const char *file, unsigned int line);
uint64_t gasneti_trace_blockuntil(uint64_t since);
void gasneti_trace_setsourceline(const char *file, unsigned int line);
void gasneti_trace_getsourceline(const char **pfile, unsigned int *pline);
void gasneti_trace_freezesourceline(void);
void gasneti_trace_unfreezesourceline(void);
int gasneti_trace_enabled(void);
const char *gasneti_trace_getmask(int stats);
void gasneti_trace_setmask(const char *mask, int stats);
int gasneti_trace_get_tracelocal(void);
void gasneti_trace_set_tracelocal(int local);
int gasneti_stats_init(gasnett_stats_callback_t callback);

#define GASNETI_WATCHED GASNETT_PREDICT_FALSE(gasneti_abi.watched)
#define GASNETI_IF_WATCHED(call) (GASNETI_WATCHED ? (call) : (void)0)

#define GASNETT_TRACE_ENABLED (GASNETI_WATCHED && gasneti_trace_enabled())
/* The source line of the calling thread, until it sets another one; the file name must stay
   valid. */
#define GASNETT_TRACE_SETSOURCELINE(file, line) GASNETI_IF_WATCHED(gasneti_trace_setsourceline((file), (line)))
#define GASNETT_TRACE_GETSOURCELINE(pfile, pline) gasneti_trace_getsourceline((pfile), (pline))
#define GASNETT_TRACE_FREEZESOURCELINE() GASNETI_IF_WATCHED(gasneti_trace_freezesourceline())
#define GASNETT_TRACE_UNFREEZESOURCELINE() GASNETI_IF_WATCHED(gasneti_trace_unfreezesourceline())
#if GASNETI_VARIADIC_MACROS
#define GASNETT_TRACE_PRINTF(...)                                                                                     \
  (GASNETT_TRACE_ENABLED ? (gasneti_trace_from(__FILE__, __LINE__), gasneti_trace_printf(__VA_ARGS__)) : (void)0)
#define GASNETT_TRACE_PRINTF_FORCE(...)                                                                               \
  GASNETI_IF_WATCHED((gasneti_trace_from(__FILE__, __LINE__), gasneti_trace_printf_force(__VA_ARGS__)))
#define GASNETT_STATS_PRINTF(...) GASNETI_IF_WATCHED(gasneti_stats_printf(__VA_ARGS__))
#define GASNETT_STATS_PRINTF_FORCE(...) GASNETI_IF_WATCHED(gasneti_stats_printf_force(__VA_ARGS__))
#else
#define GASNETT_TRACE_PRINTF !GASNETT_TRACE_ENABLED ? (void)0 : gasneti_trace_printf
#define GASNETT_TRACE_PRINTF_FORCE !GASNETI_WATCHED ? (void)0 : gasneti_trace_printf_force
#define GASNETT_STATS_PRINTF !GASNETI_WATCHED ? (void)0 : gasneti_stats_printf
#define GASNETT_STATS_PRINTF_FORCE !GASNETI_WATCHED ? (void)0 : gasneti_stats_printf_force
#endif
#define GASNETT_TRACE_GETMASK() gasneti_trace_getmask(0)
#define GASNETT_TRACE_SETMASK(mask) gasneti_trace_setmask((mask), 0)
#define GASNETT_TRACE_GET_TRACELOCAL() gasneti_trace_get_tracelocal()
#define GASNETT_TRACE_SET_TRACELOCAL(on) gasneti_trace_set_tracelocal(on)
#define GASNETT_STATS_INIT(callback) gasneti_stats_init(callback)
#define GASNETT_STATS_DUMP(reset) GASNETI_IF_WATCHED(gasneti_stats_dump(reset))
#define GASNETT_STATS_GETMASK() gasneti_trace_getmask(1)
#define GASNETT_STATS_SETMASK(mask) gasneti_trace_setmask((mask), 1)

/* Calls of the library with their source lines; calls with inline paths record it there. A source
   line that the client set takes precedence. In C++ a call may be qualified, as ::gasnet_AMPoll():
   the expansion begins with a name. */
#ifndef GASNETI_INSIDE_LIBRARY
#define GASNETI_FROM(file, line) GASNETI_IF_WATCHED(gasneti_trace_from((file), (unsigned int)(line)))
#ifdef __cplusplus
extern "C++" {
template <class F> GASNETI_ALWAYS_INLINE F *gasneti_at(const char *file, unsigned int line, F *function) {
  GASNETI_FROM(file, line);
  return function;
}
#if __cplusplus >= 201103L
/* A function whose result must not be dropped. C++98 does not warn of that here. */
template <class F> struct gasneti_must_t;
template <class R, class... A> struct gasneti_must_t<R(A...)> {
  R (*function)(A...);
  GASNETI_MUST_SYNC R operator()(A... arguments) const { return function(arguments...); }
};
template <class F>
GASNETI_ALWAYS_INLINE gasneti_must_t<F> gasneti_must_at(const char *file, unsigned int line, F *function) {
  gasneti_must_t<F> must = {gasneti_at(file, line, function)};
  return must;
}
#else
#define gasneti_must_at gasneti_at
#endif
}
#define GASNETI_HERE(function, list) gasneti_at(__FILE__, __LINE__, function) list
#define GASNETI_HERE_MUST(function, list) gasneti_must_at(__FILE__, __LINE__, function) list
#define GASNETI_HERE_TOO(function) GASNETI_HERE(function, ())
#else
#define GASNETI_HERE(function, list) (GASNETI_FROM(__FILE__, __LINE__), function list)
#define GASNETI_HERE_MUST(function, list) GASNETI_HERE(function, list)
/* The same for a call without arguments, which the expansion contains twice. So the path that
   does not trace keeps nothing across a call of the library. */
#define GASNETI_HERE_TOO(function) \
  (GASNETI_WATCHED ? (gasneti_trace_from(__FILE__, __LINE__), function()) : function())
#endif
#define gasnet_AMPoll() GASNETI_HERE_TOO(gasnet_AMPoll)
#define gasnet_hsl_lock(h) GASNETI_HERE(gasnet_hsl_lock, (h))
#define gasnet_hsl_trylock(h) GASNETI_HERE(gasnet_hsl_trylock, (h))
#define gasnet_hsl_unlock(h) GASNETI_HERE(gasnet_hsl_unlock, (h))
#define gasnet_barrier_notify(i, f) GASNETI_HERE(gasnet_barrier_notify, (i, f))
#define gasnet_barrier_wait(i, f) GASNETI_HERE(gasnet_barrier_wait, (i, f))
#define gasnet_barrier_try(i, f) GASNETI_HERE(gasnet_barrier_try, (i, f))
#define gasnet_barrier(i, f) GASNETI_HERE(gasnet_barrier, (i, f))
#endif

#else /* without a job */
#define GASNETT_TRACE_ENABLED 0
#define GASNETT_TRACE_SETSOURCELINE(file, line) ((void)0)
#define GASNETT_TRACE_GETSOURCELINE(pfile, pline) ((void)0)
#define GASNETT_TRACE_FREEZESOURCELINE() ((void)0)
#define GASNETT_TRACE_UNFREEZESOURCELINE() ((void)0)
#if GASNETI_VARIADIC_MACROS
#define GASNETT_TRACE_PRINTF(...) (GASNETT_TRACE_ENABLED ? gasneti_trace_printf(__VA_ARGS__) : (void)0)
#define GASNETT_TRACE_PRINTF_FORCE(...) GASNETT_TRACE_PRINTF(__VA_ARGS__)
#define GASNETT_STATS_PRINTF(...) (GASNETT_TRACE_ENABLED ? gasneti_stats_printf(__VA_ARGS__) : (void)0)
#define GASNETT_STATS_PRINTF_FORCE(...) GASNETT_STATS_PRINTF(__VA_ARGS__)
#else
#define GASNETT_TRACE_PRINTF !GASNETT_TRACE_ENABLED ? (void)0 : gasneti_trace_printf
#define GASNETT_TRACE_PRINTF_FORCE !GASNETT_TRACE_ENABLED ? (void)0 : gasneti_trace_printf
#define GASNETT_STATS_PRINTF !GASNETT_TRACE_ENABLED ? (void)0 : gasneti_stats_printf
#define GASNETT_STATS_PRINTF_FORCE !GASNETT_TRACE_ENABLED ? (void)0 : gasneti_stats_printf
#endif
#define GASNETT_TRACE_GETMASK() ""
#define GASNETT_TRACE_SETMASK(mask) ((void)(mask))
#define GASNETT_TRACE_GET_TRACELOCAL() 0
#define GASNETT_TRACE_SET_TRACELOCAL(on) ((void)(on))
#define GASNETT_STATS_INIT(callback) 0
#define GASNETT_STATS_DUMP(reset) ((void)(reset))
#define GASNETT_STATS_GETMASK() ""
#define GASNETT_STATS_SETMASK(mask) ((void)(mask))
#endif

GASNETI_END_EXTERNC

#endif
