/* Locks and thread keys of the tools interface.

   gasnett_mutex_t and gasnett_cond_t are one matched pair, those of POSIX threads;
   gasnet_hsl_t.lock is such a mutex. In a program without threads the operations do nothing,
   unless GASNETT_USE_TRUE_MUTEXES is defined. The types are the same in every mode, and so are
   structures that contain one. */
#ifndef GASNET_LOCKS_H
#define GASNET_LOCKS_H

#include "gasnet_basic.h"

#if GASNETI_THREADED || (defined(GASNETT_USE_TRUE_MUTEXES) && GASNETT_USE_TRUE_MUTEXES + 0)
#define GASNETI_LOCKS_WORK 1
#else
#define GASNETI_LOCKS_WORK 0
#endif

GASNETI_BEGIN_EXTERNC

typedef pthread_mutex_t gasnett_mutex_t;
typedef pthread_cond_t gasnett_cond_t;
/* Memory for a pthread_rwlock_t, which strict C99 does not declare. */
typedef struct {
  uintptr_t gasneti_words[8];
} gasnett_rwlock_t;

/* With GASNET_DEBUG a mutex records its holder: wrong uses fail and do not hang. */
#if defined(GASNET_DEBUG) && GASNET_DEBUG && defined(PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP)
#define GASNETT_MUTEX_INITIALIZER PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP
#else
#define GASNETT_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#endif
#define GASNETT_COND_INITIALIZER PTHREAD_COND_INITIALIZER
#define GASNETT_RWLOCK_INITIALIZER { { 0, 0, 0, 0, 0, 0, 0, 0 } }

/* Ends the program: the named call failed with this error number. */
void gasneti_lock_failed(const char *call, int error) GASNETI_ATTRIBUTE((__noreturn__));
/* Ends the program: an assertion of the named macro about a lock failed. */
void gasneti_lock_assertion(const char *macro, const char *place) GASNETI_ATTRIBUTE((__noreturn__));
int gasneti_mutex_init_debug(gasnett_mutex_t *);
/* 0: open. 1: held by this thread. 2: held by another thread, or by any thread if the mutex does
   not record its holder. */
int gasneti_mutex_state(gasnett_mutex_t *);
/* 0: open. 1: shared. 2: held for writing by another thread. 3: held so by this thread. */
int gasneti_rwlock_state(gasnett_rwlock_t *);
int gasneti_rwlock_init(gasnett_rwlock_t *);
int gasneti_rwlock_destroy(gasnett_rwlock_t *);
int gasneti_rwlock_rdlock(gasnett_rwlock_t *);
int gasneti_rwlock_wrlock(gasnett_rwlock_t *);
int gasneti_rwlock_tryrdlock(gasnett_rwlock_t *);
int gasneti_rwlock_trywrlock(gasnett_rwlock_t *);
int gasneti_rwlock_unlock(gasnett_rwlock_t *);

/* A lock function without result, made of one that returns an error number. */
#if GASNETI_LOCKS_WORK
#define GASNETI_LOCK_FUNCTION(name, type, call)                                                                       \
  GASNETI_INLINE void name(type *p) {                                                                                 \
    int error = call;                                                                                                 \
    if (GASNETT_PREDICT_FALSE(error)) gasneti_lock_failed(#name, error);                                              \
  }
#define GASNETI_TRYLOCK_FUNCTION(name, type, call)                                                                    \
  GASNETI_INLINE int name(type *p) {                                                                                  \
    int error = call;                                                                                                 \
    if (GASNETT_PREDICT_FALSE(error && error != EBUSY)) gasneti_lock_failed(#name, error);                            \
    return error;                                                                                                     \
  }
#else
#define GASNETI_LOCK_FUNCTION(name, type, call)                                                                       \
  GASNETI_INLINE void name(type *p) { (void)p; }
#define GASNETI_TRYLOCK_FUNCTION(name, type, call)                                                                    \
  GASNETI_INLINE int name(type *p) {                                                                                  \
    (void)p;                                                                                                          \
    return 0;                                                                                                         \
  }
#endif

#if defined(GASNET_DEBUG) && GASNET_DEBUG
GASNETI_LOCK_FUNCTION(gasnett_mutex_init, gasnett_mutex_t, gasneti_mutex_init_debug(p))
#else
GASNETI_LOCK_FUNCTION(gasnett_mutex_init, gasnett_mutex_t, pthread_mutex_init(p, NULL))
#endif
GASNETI_LOCK_FUNCTION(gasnett_mutex_destroy, gasnett_mutex_t, pthread_mutex_destroy(p))
GASNETI_LOCK_FUNCTION(gasnett_mutex_lock, gasnett_mutex_t, pthread_mutex_lock(p))
GASNETI_LOCK_FUNCTION(gasnett_mutex_unlock, gasnett_mutex_t, pthread_mutex_unlock(p))
GASNETI_TRYLOCK_FUNCTION(gasnett_mutex_trylock, gasnett_mutex_t, pthread_mutex_trylock(p))
#define gasnett_mutex_destroy_ignoreerr(p) ((void)pthread_mutex_destroy(p))

/* Assertions: checked with GASNET_DEBUG where locks have an effect, as far as the system reports
   their state. */
#if defined(GASNET_DEBUG) && GASNET_DEBUG && GASNETI_LOCKS_WORK
#define GASNETI_ASSERT_LOCK(condition, macro)                                                                         \
  ((condition) ? (void)0 : gasneti_lock_assertion(macro, __FILE__ ":" _STRINGIFY(__LINE__)))
#define gasnett_mutex_assertlocked(p) GASNETI_ASSERT_LOCK(gasneti_mutex_state(p) != 0, "gasnett_mutex_assertlocked")
#define gasnett_mutex_assertunlocked(p) GASNETI_ASSERT_LOCK(gasneti_mutex_state(p) != 1, "gasnett_mutex_assertunlocked")
#define gasnett_rwlock_assertlocked(p)                                                                                \
  GASNETI_ASSERT_LOCK(gasneti_rwlock_state(p) & 1, "gasnett_rwlock_assertlocked")
#define gasnett_rwlock_assertrdlocked(p)                                                                              \
  GASNETI_ASSERT_LOCK(gasneti_rwlock_state(p) == 1, "gasnett_rwlock_assertrdlocked")
#define gasnett_rwlock_assertwrlocked(p)                                                                              \
  GASNETI_ASSERT_LOCK(gasneti_rwlock_state(p) == 3, "gasnett_rwlock_assertwrlocked")
#define gasnett_rwlock_assertunlocked(p)                                                                              \
  GASNETI_ASSERT_LOCK(gasneti_rwlock_state(p) != 3, "gasnett_rwlock_assertunlocked")
#else
#define gasnett_mutex_assertlocked(p) ((void)(p))
#define gasnett_mutex_assertunlocked(p) ((void)(p))
#define gasnett_rwlock_assertlocked(p) ((void)(p))
#define gasnett_rwlock_assertrdlocked(p) ((void)(p))
#define gasnett_rwlock_assertwrlocked(p) ((void)(p))
#define gasnett_rwlock_assertunlocked(p) ((void)(p))
#endif

GASNETI_LOCK_FUNCTION(gasnett_cond_init, gasnett_cond_t, pthread_cond_init(p, NULL))
GASNETI_LOCK_FUNCTION(gasnett_cond_destroy, gasnett_cond_t, pthread_cond_destroy(p))
GASNETI_LOCK_FUNCTION(gasnett_cond_signal, gasnett_cond_t, pthread_cond_signal(p))
GASNETI_LOCK_FUNCTION(gasnett_cond_broadcast, gasnett_cond_t, pthread_cond_broadcast(p))
/* Without threads no signal can end this wait: a fatal error. */
GASNETI_INLINE void gasnett_cond_wait(gasnett_cond_t *p, gasnett_mutex_t *mutex) {
#if GASNETI_LOCKS_WORK
  int error = pthread_cond_wait(p, mutex);
  if (GASNETT_PREDICT_FALSE(error)) gasneti_lock_failed("gasnett_cond_wait", error);
#else
  (void)p;
  (void)mutex;
  gasneti_lock_failed("gasnett_cond_wait without threads", EDEADLK);
#endif
}

GASNETI_LOCK_FUNCTION(gasnett_rwlock_init, gasnett_rwlock_t, gasneti_rwlock_init(p))
GASNETI_LOCK_FUNCTION(gasnett_rwlock_destroy, gasnett_rwlock_t, gasneti_rwlock_destroy(p))
GASNETI_LOCK_FUNCTION(gasnett_rwlock_rdlock, gasnett_rwlock_t, gasneti_rwlock_rdlock(p))
GASNETI_LOCK_FUNCTION(gasnett_rwlock_wrlock, gasnett_rwlock_t, gasneti_rwlock_wrlock(p))
GASNETI_LOCK_FUNCTION(gasnett_rwlock_unlock, gasnett_rwlock_t, gasneti_rwlock_unlock(p))
GASNETI_TRYLOCK_FUNCTION(gasnett_rwlock_tryrdlock, gasnett_rwlock_t, gasneti_rwlock_tryrdlock(p))
GASNETI_TRYLOCK_FUNCTION(gasnett_rwlock_trywrlock, gasnett_rwlock_t, gasneti_rwlock_trywrlock(p))

GASNETI_END_EXTERNC

/* Thread keys: one pointer for each thread, null at first. Callers name a key, they do not pass
   it: the macros paste its name. They work in every mode: a program may have threads of which
   only one uses GASNet. */
#define GASNETT_THREADKEY_DECLARE(key) extern __thread void *gasneti_threadkey_##key
#define GASNETT_THREADKEY_DEFINE(key) __thread void *gasneti_threadkey_##key = NULL
#define gasnett_threadkey_init(key) ((void)0)
#define gasnett_threadkey_get(key) ((void *)(gasneti_threadkey_##key))
#define gasnett_threadkey_set(key, value) ((void)(gasneti_threadkey_##key = (void *)(value)))
#define gasnett_threadkey_get_noinit(key) gasnett_threadkey_get(key)
#define gasnett_threadkey_set_noinit(key, value) gasnett_threadkey_set(key, value)
/* A key needs no initialisation. With other implementations it does, so clients write this. */
GASNETI_INLINE void _gasneti_threadkey_init(void) {}

#endif
