/* Uses each name that GASNet-1 programs take from the headers, in the shape in which they use it.
   The shapes are: in #if, as part of a string, as a static initialiser, in a declaration, as a
   statement, as a function. ci/names.sh compiles it as C99 and C++98 in every mode. TOOLS_ONLY
   restricts it to the names that gasnet_tools.h supplies alone. */
#ifndef TOOLS_ONLY
#include <gasnet.h>
#include <gasnet_vis.h>
#endif
#include <gasnet_tools.h>

/* Whole numbers in #if */
#if GASNETT_PAGESIZE != 1 << GASNETT_PAGESHIFT || GASNETT_PAGESIZE < 4096
#error page size
#endif
#if GASNETT_CACHE_LINE_BYTES & (GASNETT_CACHE_LINE_BYTES - 1)
#error cache line
#endif
#if GASNETT_MAX_THREADS * 65536 < 65536 || GASNETT_SPEC_VERSION_MAJOR != 1 || GASNETT_SPEC_VERSION_MINOR != 20
#error tools numbers
#endif
#if GASNETT_RELEASE_VERSION_MAJOR * 10000 + GASNETT_RELEASE_VERSION_MINOR * 100 + GASNETT_RELEASE_VERSION_PATCH < 11800
#error release
#endif
#if !GASNETT_HAVE_ATOMIC_CAS || !GASNETT_HAVE_ATOMIC_ADD_SUB || !GASNETT_HAVE_STRONGATOMIC_CAS ||                     \
    !GASNETT_HAVE_STRONGATOMIC_ADD_SUB
#error atomics
#endif
#if defined(GASNETT_USING_GENERIC_ATOMICOPS) || defined(GASNETT_STRONGATOMIC_NOT_SIGNALSAFE) ||                       \
    defined(GASNETT_STRONGATOMIC32_NOT_SIGNALSAFE) || defined(GASNETT_STRONGATOMIC64_NOT_SIGNALSAFE) ||               \
    defined(GASNETT_USING_GETTIMEOFDAY)
#error these stay undefined
#endif
#if PLATFORM_ARCH_32 + PLATFORM_ARCH_64 != 1 || PLATFORM_ARCH_LITTLE_ENDIAN + PLATFORM_ARCH_BIG_ENDIAN != 1
#error architecture
#endif
#if PLATFORM_ARCH_ALPHA || PLATFORM_ARCH_CRAYT3E || PLATFORM_OS_BGQ || PLATFORM_OS_CNL || PLATFORM_COMPILER_SUN_C ||  \
    PLATFORM_COMPILER_PATHSCALE || GASNETT_CONFIGURE_MISMATCH
#error platform
#endif
#if !PLATFORM_COMPILER_VERSION_GE(1, 0, 0) || PLATFORM_COMPILER_VERSION_LT(1, 0, 0) || PLATFORM_COMPILER_FAMILYID == 0
#error compiler
#endif
#if !HAVE_PTHREAD_H || !HAVE_MMAP || SIZEOF_INT != 4
#error configuration
#endif
#ifndef TOOLS_ONLY
#if GASNET_SEQ + GASNET_PARSYNC + GASNET_PAR != 1
#error thread mode
#endif
#if GASNET_SEGMENT_FAST + GASNET_SEGMENT_LARGE + GASNET_SEGMENT_EVERYTHING != 1
#error segment mode
#endif
#if GASNET_DEBUG + GASNET_NDEBUG != 1 || GASNET_TRACE != 1 || GASNET_STATS != 1 || GASNET_SRCLINES != 1 || GASNET_DEBUGMALLOC != GASNET_DEBUG
#error features
#endif
#if GASNET_SPEC_VERSION_MAJOR != 1 || GASNET_SPEC_VERSION_MINOR != 8 || GASNET_VERSION != 1
#error specification
#endif
#if GASNET_PSHM == GASNET_SEGMENT_EVERYTHING || GASNET_ALIGNED_SEGMENTS != GASNET_SEGMENT_EVERYTHING ||             \
    GASNET_NULL_ARGV_OK != 1 || !GASNET_CONDUIT_PORTALS || GASNET_CONDUIT_IBV || GASNET_CONDUIT_SMP
#error conduit
#endif
#if GASNET_MAXNODES < 2 || GASNET_PAGESIZE != GASNETT_PAGESIZE
#error limits
#endif
#if GASNET_OK != 0 || GASNET_ERR_NOT_INIT != 10001 || GASNET_ERR_RESOURCE != 10002 || GASNET_ERR_BAD_ARG != 10003 ||  \
    GASNET_ERR_NOT_READY != 10004 || GASNET_ERR_BARRIER_MISMATCH != 10005
#error errors
#endif
#if GASNET_BARRIERFLAG_ANONYMOUS != 1 || GASNET_BARRIERFLAG_MISMATCH != 2 || GASNET_BARRIERFLAG_IMAGES != 4 ||        \
    GASNET_BARRIERFLAG_UNNAMED != 9
#error barrier flags
#endif
#if GASNET_WAIT_SPIN != 0 || GASNET_WAIT_BLOCK != 1 || GASNET_WAIT_SPINBLOCK != 2
#error wait modes
#endif
#if SIZEOF_GASNET_REGISTER_VALUE_T != 8 && SIZEOF_GASNET_REGISTER_VALUE_T != 4
#error values
#endif
#else
#ifdef _GASNET_H
#error the tools alone must not look like gasnet.h
#endif
#endif

/* Parts of strings */
GASNETT_IDENT(ident_tools, "$Tools: " GASNETT_CONFIG_STRING " " GASNETT_SYSTEM_TUPLE " " GASNETT_CONFIGURE_ARGS
                           " " _STRINGIFY(GASNETT_THREAD_MODEL) _STRINGIFY(GASNETT_DEBUG_CONFIG)
                           _STRINGIFY(GASNETT_PTR_CONFIG) _STRINGIFY(GASNETT_TIMER_CONFIG)
                           _STRINGIFY(GASNETT_ATOMIC_CONFIG) _STRINGIFY(GASNETT_MEMBAR_CONFIG)
                           _STRINGIFY(PLATFORM_COMPILER_FAMILYNAME) PLATFORM_COMPILER_VERSION_STR
                           GASNETT_PLATFORM_COMPILER_IDSTR _STRINGIFY(PLATFORM_ARCH_FAMILYNAME)
                           _STRINGIFY(PLATFORM_OS_FAMILYNAME) " $");
#ifndef TOOLS_ONLY
GASNETT_IDENT(ident_gasnet, "$Config: " GASNET_CONFIG_STRING GASNET_CONDUIT_NAME_STR GASNET_CORE_NAME_STR
                            GASNET_EXTENDED_NAME_STR GASNET_CORE_VERSION_STR GASNET_EXTENDED_VERSION_STR
                            _STRINGIFY(GASNET_CORE_NAME) _STRINGIFY(GASNET_CORE_VERSION)
                            _STRINGIFY(GASNET_EXTENDED_NAME) _STRINGIFY(GASNET_EXTENDED_VERSION)
                            _STRINGIFY(GASNET_CONDUIT_NAME) " $");
#endif

/* Static initialisers */
struct with_locks {
  gasnett_mutex_t mutex;
  gasnett_cond_t cond;
  gasnett_rwlock_t rwlock;
};
struct with_locks locks[2] = {
  { GASNETT_MUTEX_INITIALIZER, GASNETT_COND_INITIALIZER, GASNETT_RWLOCK_INITIALIZER },
  { GASNETT_MUTEX_INITIALIZER, GASNETT_COND_INITIALIZER, GASNETT_RWLOCK_INITIALIZER }
};
struct with_atomics {
  char pad;
  gasnett_atomic_t a;
  gasnett_atomic32_t b;
  gasnett_atomic64_t c;
  gasnett_strongatomic_t d;
  gasnett_strongatomic32_t e;
  gasnett_strongatomic64_t f;
};
struct with_atomics atomics = { 0,
                                gasnett_atomic_init(1),
                                gasnett_atomic32_init(2),
                                gasnett_atomic64_init(3),
                                gasnett_strongatomic_init(4),
                                gasnett_strongatomic32_init(5),
                                gasnett_strongatomic64_init(6) };
typedef char size_32[sizeof(gasnett_atomic32_t) == 4 && sizeof(gasnett_atomic64_t) == 8 ? 1 : -1];
GASNETT_THREADKEY_DECLARE(names_key);
GASNETT_THREADKEY_DEFINE(names_key);
#ifndef TOOLS_ONLY
gasnet_hsl_t hsl = GASNET_HSL_INITIALIZER;
gasnet_handle_t handle = GASNET_INVALID_HANDLE;
gasnet_memvec_t memvec = { 0, 0 };
#endif

/* Annotations */
GASNETT_BEGIN_EXTERNC
GASNETT_INLINE(names_inline) int names_inline(int x) { return x; }
GASNETT_ALWAYS_INLINE(names_always) int names_always(int x) { return x; }
GASNETT_PLEASE_INLINE(names_please) int names_please(int x) { return x; }
GASNETT_NEVER_INLINE(names_never, static int names_never(int x)) { return x; }
GASNETT_FORMAT_PRINTF(names_printf, 1, 2, static void names_printf(const char *format, ...)) { (void)format; }
GASNETT_NORETURN
GASNETT_FORMAT_PRINTF(names_fatal, 1, 2, static void names_fatal(const char *format, ...)) {
  (void)format;
  gasnett_killmyprocess(1);
}
GASNETT_NORETURNP(names_fatal)
GASNETT_PURE int names_pure(int);
GASNETT_PUREP(names_pure)
GASNETT_CONST int names_const(int);
GASNETT_CONSTP(names_const)
GASNETT_MALLOC void *names_malloc(size_t);
GASNETT_MALLOCP(names_malloc)
GASNETT_HOT GASNETT_WARN_UNUSED_RESULT int names_hot(char *GASNETT_RESTRICT);
GASNETT_COLD GASNETT_DEPRECATED int names_cold(void);
GASNETT_EXTERNC int names_external;
GASNETT_TENTATIVE_EXTERN int names_tentative;
static int names_used GASNETT_USED;
static int names_unused GASNETT_UNUSED;
GASNETT_FORMAT_PRINTF_FUNCPTR(names_pointer, 1, 2, void (*names_pointer)(const char *format, ...));
GASNETT_END_EXTERNC

static void handle_signal(int sig) { (void)sig; }

#define ATOMIC(fam, val, p)                                                                                           \
  do {                                                                                                                \
    val v_ = gasnett_##fam##_read(p, GASNETT_ATOMIC_ACQ);                                                             \
    gasnett_##fam##_set(p, v_, GASNETT_ATOMIC_REL);                                                                   \
    gasnett_##fam##_increment(p, 0);                                                                                  \
    gasnett_##fam##_decrement(p, GASNETT_ATOMIC_NONE);                                                                \
    r += gasnett_##fam##_decrement_and_test(p, GASNETT_ATOMIC_ACQ_IF_TRUE | GASNETT_ATOMIC_MB_PRE);                   \
    r += gasnett_##fam##_compare_and_swap(p, 0, 1, GASNETT_ATOMIC_ACQ_IF_FALSE | GASNETT_ATOMIC_RMB_PRE);             \
    v_ += gasnett_##fam##_swap(p, 0, GASNETT_ATOMIC_MB_POST);                                                         \
    v_ += gasnett_##fam##_add(p, 2, GASNETT_ATOMIC_WMB_PRE | GASNETT_ATOMIC_WMB_POST);                                \
    v_ += gasnett_##fam##_subtract(p, 2, GASNETT_ATOMIC_RMB_POST | GASNETT_ATOMIC_RMB_POST_IF_TRUE |                  \
                                             GASNETT_ATOMIC_RMB_POST_IF_FALSE);                                       \
    r += (int)v_;                                                                                                     \
  } while (0)

int tools_names(void);
int tools_names(void) {
  int r = 0, flag = 0;
  char buf[80];
  double number = 0;
  const char *file = NULL;
  unsigned line = 0;
  gasnett_backtrace_type_t type = gasnett_backtrace_user;
  gasnett_sighandlerfn_t old = gasnett_reghandler(10, handle_signal);
  gasnett_tick_t t = gasnett_ticks_now();
  ATOMIC(atomic, gasnett_atomic_val_t, &atomics.a);
  ATOMIC(atomic32, uint32_t, &atomics.b);
  ATOMIC(atomic64, uint64_t, &atomics.c);
  ATOMIC(strongatomic, gasnett_atomic_val_t, &atomics.d);
  ATOMIC(strongatomic32, uint32_t, &atomics.e);
  ATOMIC(strongatomic64, uint64_t, &atomics.f);
  ATOMIC(atomic64, uint64_t, (gasnett_atomic64_t *)&number);
  r += gasnett_atomic_signed(GASNETT_ATOMIC_MAX) == -1;
  r += GASNETT_ATOMIC_SIGNED_MIN < 0 && GASNETT_ATOMIC_SIGNED_MAX > (gasnett_atomic_sval_t)0;
  if (t == GASNETT_TICK_MIN || t == GASNETT_TICK_MAX) r++;
  printf("%.3f %.3f", gasnett_tick_granularityus(), gasnett_tick_overheadus());
  r += (int)(gasnett_ticks_to_us(t) + gasnett_ticks_to_ns(t) + gasnett_gettimeofday_us());
  gasnett_local_wmb();
  gasnett_local_rmb();
  gasnett_local_mb();
  gasnett_weak_wmb();
  gasnett_weak_rmb();
  gasnett_weak_mb();
  gasnett_compiler_fence();
  gasnett_mutex_init(&locks[0].mutex);
  gasnett_mutex_lock(&locks[0].mutex);
  gasnett_mutex_assertlocked(&locks[0].mutex);
  gasnett_mutex_unlock(&locks[0].mutex);
  gasnett_mutex_assertunlocked(&locks[0].mutex);
  r += gasnett_mutex_trylock(&locks[0].mutex) == EBUSY;
  gasnett_cond_init(&locks[0].cond);
  gasnett_cond_signal(&locks[0].cond);
  gasnett_cond_broadcast(&locks[0].cond);
  if (r > 1000000) gasnett_cond_wait(&locks[0].cond, &locks[0].mutex);
  gasnett_cond_destroy(&locks[0].cond);
  gasnett_mutex_destroy(&locks[0].mutex);
  gasnett_mutex_destroy_ignoreerr(&locks[1].mutex);
  gasnett_rwlock_init(&locks[0].rwlock);
  gasnett_rwlock_rdlock(&locks[0].rwlock);
  gasnett_rwlock_assertlocked(&locks[0].rwlock);
  gasnett_rwlock_assertrdlocked(&locks[0].rwlock);
  gasnett_rwlock_unlock(&locks[0].rwlock);
  gasnett_rwlock_wrlock(&locks[0].rwlock);
  gasnett_rwlock_assertwrlocked(&locks[0].rwlock);
  gasnett_rwlock_assertunlocked(&locks[0].rwlock);
  r += gasnett_rwlock_tryrdlock(&locks[0].rwlock) + gasnett_rwlock_trywrlock(&locks[0].rwlock);
  gasnett_rwlock_destroy(&locks[0].rwlock);
  gasnett_threadkey_init(names_key);
  gasnett_threadkey_set(names_key, &r);
  gasnett_threadkey_set_noinit(names_key, gasnett_threadkey_get(names_key));
  if (gasnett_threadkey_get_noinit(names_key) == NULL) r++;
  r += (int)gasnett_parse_int(gasnett_format_number(1024, buf, sizeof buf, 1), 1);
  gasnett_setenv("A", "B");
  gasnett_unsetenv("A");
  r += gasnett_getenv("A") == NULL;
  r += *gasnett_getenv_withdefault("A", "x") + gasnett_getenv_yesno_withdefault("A", 0) + gasnett_verboseenv();
  r += (int)gasnett_getenv_int_withdefault("A", 0, 1) + (int)gasnett_getenv_dbl_withdefault("A", 0.5);
  gasnett_envint_display("A", 1, 0, 1);
  gasnett_envstr_display("A", "B", 0);
  gasnett_envdbl_display("A", 1.0, 0);
  if (r > 1000000) gasnett_freezeForDebuggerNow(&flag, "flag");
  gasnett_freezeForDebuggerErr();
  gasnett_backtrace_init(buf);
  r += gasnett_print_backtrace(2) + gasnett_print_backtrace_ifenabled(2) + (type.fnp != NULL) + type.threadsupport;
  gasnett_print_backtrace_ifenabled = gasnett_print_backtrace;
  if (r > 1000000) gasnett_fatalerror("%s at %s", GASNETT_CURRENT_FUNCTION, gasnett_current_loc);
  gasnett_flush_streams();
  if (r > 1000000) gasnett_close_streams();
  gasnett_reghandler(10, old);
  r += *gasnett_signame_fromval(1) + gasnett_maximize_rlimits() + gasnett_maximize_rlimit(0, "RLIMIT_CPU");
  r += *gasnett_gethostname() + gasnett_cpu_count() + (int)gasnett_getPhysMemSz(0) + gasnett_isLittleEndian();
  gasnett_set_affinity(0);
  gasnett_sched_yield();
  gasnett_spinloop_hint();
  r += (int)gasnett_checksum(buf, 1) + gasnett_count0s_uint32_t(1) + gasnett_count0s_uint64_t(1);
  r += gasnett_count0s_uintptr_t(1) + (int)gasnett_count0s(buf, 1) + (int)gasnett_count0s_copy(buf, buf + 1, 1);
  r += *gasnett_performance_warning_str() + GASNETT_PLATFORM_COMPILER_FAMILYID + GASNETT_PLATFORM_COMPILER_ID;
  r += GASNETT_PLATFORM_COMPILER_VERSION != 0;
  r += gasnett_isalnum('a') + gasnett_isspace(' ') + gasnett_toupper('a') + gasnett_isblank(' ');
  if_pf (r == 1) r++;
  if_pt (r == 2) r++;
  if (GASNETT_PREDICT_TRUE(r) || GASNETT_PREDICT_FALSE(r) || gasnett_constant_p(1)) r++;
  r += ((void)GASNETT_TRACE_SETSOURCELINE(__FILE__, __LINE__), MIN(1, 2) + MAX(1, 2));
  GASNETT_TRACE_GETSOURCELINE(&file, &line);
  GASNETT_TRACE_FREEZESOURCELINE();
  GASNETT_TRACE_UNFREEZESOURCELINE();
  GASNETT_TRACE_PRINTF("%s %d", file, (int)line);
  GASNETT_TRACE_PRINTF_FORCE(buf, r);
  if (GASNETT_TRACE_ENABLED) r++;
  GASNETT_TRACE_SETMASK(GASNETT_TRACE_GETMASK());
  GASNETT_TRACE_SET_TRACELOCAL(GASNETT_TRACE_GET_TRACELOCAL());
  GASNETT_STATS_SETMASK(GASNETT_STATS_GETMASK());
  r += GASNETT_STATS_INIT(NULL);
  names_used = names_always(1) + names_please(1) + names_never(1) + names_inline(1);
  names_printf("%d", 1);
  if (r > 1000000) names_fatal("%d", 1);
  return r;
}

#ifndef TOOLS_ONLY
static void handler_short(gasnet_token_t token, gasnet_handlerarg_t arg) {
  gasnet_node_t source;
  gasnet_AMGetMsgSource(token, &source);
  gasnet_AMReplyShort1(token, 202, arg);
}
typedef void (*handler_t)();

/* An active message of every family with every number of arguments, numbered by pasting. */
#define A0
#define A1 , 1L
#define A2 A1, 2L
#define A4 A2, 3L, 4L
#define A8 A4, 5L, 6L, 7L, 8L
#define A15 A8, 9L, 10L, 11L, 12L, 13L, 14L, 15L
#define A16 A15, 16L
#define SEND(m, args)                                                                                                 \
  r += gasnet_AMRequestShort##m(0, 201 args) + gasnet_AMRequestMedium##m(0, 201, buf, 8 args) +                       \
       gasnet_AMRequestLong##m(0, 201, buf, 8, buf args) + gasnet_AMRequestLongAsync##m(0, 201, buf, 8, buf args) +   \
       gasnet_AMReplyShort##m(token, 201 args) + gasnet_AMReplyMedium##m(token, 201, buf, 8 args) +                   \
       gasnet_AMReplyLong##m(token, 201, buf, 8, buf args)

static void coll_names_reduce(void *results, size_t result_count, const void *left, size_t left_count, const void *right,
                              size_t elem_size, int flags, int arg) {
  (void)results, (void)result_count, (void)left, (void)left_count, (void)right, (void)elem_size, (void)flags, (void)arg;
}
static gasnet_coll_fn_entry_t coll_names_fn = { coll_names_reduce, GASNET_COLL_AMSAFE | GASNET_COLL_NONCOMM };
static void coll_names_work(void *arg) { (void)arg; }

#if (GASNET_COLL_IN_NOSYNC | GASNET_COLL_IN_MYSYNC | GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_NOSYNC |                \
     GASNET_COLL_OUT_MYSYNC | GASNET_COLL_OUT_ALLSYNC) != GASNET_COLL_SYNC_FLAG_MASK
#error sync flags
#endif
#if (GASNET_COLL_SINGLE | GASNET_COLL_LOCAL | GASNET_COLL_AGGREGATE | GASNET_COLL_FIXED_THREADS_PER_NODE |            \
     GASNET_COLL_DST_IN_SEGMENT | GASNET_COLL_SRC_IN_SEGMENT | GASNET_COLL_REDUCE_OP_SUM | GASNET_COLL_REDUCE_OP_MAX | \
     GASNET_COLL_REDUCE_OP_MIN | GASNET_COLL_REDUCE_OP_CUSTOM | GASNET_COLL_INCLUSIVE_SCAN |                          \
     GASNET_COLL_EXCLUSIVE_SCAN | GASNET_COLL_DISABLE_AUTOTUNE | GASNET_COLL_NO_IMAGES) != 0xFFFC0
#error flags
#endif

/* The names of gasnet_coll.h */
static size_t coll_names(char *buf) {
  static const gasnet_coll_optype_t ops[] = {
    GASNET_COLL_BROADCAST_OP, GASNET_COLL_BROADCASTM_OP, GASNET_COLL_SCATTER_OP, GASNET_COLL_SCATTERM_OP,
    GASNET_COLL_GATHER_OP, GASNET_COLL_GATHERM_OP, GASNET_COLL_GATHER_ALL_OP, GASNET_COLL_GATHER_ALLM_OP,
    GASNET_COLL_EXCHANGE_OP, GASNET_COLL_EXCHANGEM_OP, GASNET_COLL_REDUCE_OP, GASNET_COLL_REDUCEM_OP
  };
  gasnet_coll_tuning_param_type_t param =
      buf ? GASNET_COLL_PIPE_SEG_SIZE : GASNET_COLL_NUM_PARAM_TYPES > 3 ? GASNET_COLL_DISSEM_RADIX : GASNET_COLL_TREE_TYPE;
  gasnet_coll_args_t args = GASNET_COLL_ARGS_INITIALIZER;
  gasnet_coll_overlap_sample_work_t work = coll_names_work;
  gasnet_coll_reduce_fn_t function = coll_names_fn.fnptr;
  gasnet_coll_fn_handle_t f = 0;
  gasnet_image_t root = 0;
  gasnet_coll_handle_t h[28];
  gasnet_team_handle_t t = GASNET_TEAM_ALL;
  void *const list[1] = { buf };
  const int fl = GASNET_COLL_LOCAL | GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC | GASNET_COLL_EXCLUSIVE_SCAN;
  uint32_t alg, params, *best;
  char *tree;
  int r, i = 0, id;
  t = gasnet_coll_team_split(t, 0, 0, NULL);
  r = (int)(gasnet_coll_team_size(t) + gasnet_coll_team_rank2node(t, 0) + gasnet_coll_team_node2rank(t, 0));
  gasnet_coll_barrier_notify(t, 1, GASNET_BARRIERFLAG_IMAGES);
  r += gasnet_coll_barrier_try(t, 1, 0) + gasnet_coll_barrier_wait(t, 1, GASNET_BARRIERFLAG_UNNAMED);
  r += gasnet_coll_barrier(t, 1, 0) + gasnet_coll_barrier_result(t, &id);
  gasnet_coll_broadcast(t, buf, root, buf, 8, fl);
  h[i++] = gasnet_coll_broadcast_nb(t, buf, root, buf, 8, fl);
  gasnet_coll_broadcastM(t, list, root, buf, 8, fl);
  h[i++] = gasnet_coll_broadcastM_nb(t, list, root, buf, 8, fl);
  gasnet_coll_scatter(t, buf, root, buf, 8, fl);
  h[i++] = gasnet_coll_scatter_nb(t, buf, root, buf, 8, fl);
  gasnet_coll_scatterM(t, list, root, buf, 8, fl);
  h[i++] = gasnet_coll_scatterM_nb(t, list, root, buf, 8, fl);
  gasnet_coll_gather(t, root, buf, buf, 8, fl);
  h[i++] = gasnet_coll_gather_nb(t, root, buf, buf, 8, fl);
  gasnet_coll_gatherM(t, root, buf, list, 8, fl);
  h[i++] = gasnet_coll_gatherM_nb(t, root, buf, list, 8, fl);
  gasnet_coll_gather_all(t, buf, buf, 8, fl);
  h[i++] = gasnet_coll_gather_all_nb(t, buf, buf, 8, fl);
  gasnet_coll_gather_allM(t, list, list, 8, fl);
  h[i++] = gasnet_coll_gather_allM_nb(t, list, list, 8, fl);
  gasnet_coll_exchange(t, buf, buf, 8, fl);
  h[i++] = gasnet_coll_exchange_nb(t, buf, buf, 8, fl);
  gasnet_coll_exchangeM(t, list, list, 8, fl);
  h[i++] = gasnet_coll_exchangeM_nb(t, list, list, 8, fl);
  gasnet_coll_reduce(t, root, buf, buf, 0, 0, 4, 2, f, 1, fl);
  h[i++] = gasnet_coll_reduce_nb(t, root, buf, buf, 0, 0, 4, 2, f, 1, fl);
  gasnet_coll_reduceM(t, root, buf, list, 0, 0, 4, 2, f, 1, fl);
  h[i++] = gasnet_coll_reduceM_nb(t, root, buf, list, 0, 0, 4, 2, f, 1, fl);
  gasnet_coll_scan(t, buf, 0, 0, buf, 0, 0, 4, 2, f, 1, fl);
  h[i++] = gasnet_coll_scan_nb(t, buf, 0, 0, buf, 0, 0, 4, 2, f, 1, fl);
  gasnet_coll_scanM(t, list, 0, 0, list, 0, 0, 4, 2, f, 1, fl);
  h[i++] = gasnet_coll_scanM_nb(t, list, 0, 0, list, 0, 0, 4, 2, f, 1, fl);
  while (i < 28) h[i++] = GASNET_COLL_INVALID_HANDLE;
  gasnet_coll_wait_sync(h[0]);
  gasnet_coll_wait_sync_some(h + 1, 1);
  gasnet_coll_wait_sync_all(h + 2, 2);
  r += gasnet_coll_try_sync(h[4]) + gasnet_coll_try_sync_some(h + 5, 2) + gasnet_coll_try_sync_all(h + 7, 2);
  gasnet_coll_loadTuningState(NULL, t);
  gasnet_coll_dumpTuningState(NULL, t);
  gasnet_coll_dumpProfile(NULL, t);
  gasnet_coll_set_tree_kind(t, 0, 2, ops[0]);
  gasnet_coll_set_dissem_limit(t, 64, ops[GASNET_COLL_NUM_COLL_OPTYPES - 1]);
  r += gasnet_coll_get_num_tree_classes(t, ops[1]);
  gasnet_coll_tune_generic_op(t, ops[0], args, fl | GASNET_COLL_NO_IMAGES, work, NULL, &alg, &params, &best, &tree);
  return (size_t)r + (size_t)param + (function != coll_names_reduce);
}

int gasnet_names(int argc, char **argv);
int gasnet_names(int argc, char **argv) {
  GASNET_BEGIN_FUNCTION();
  static gasnet_handlerentry_t table[] = { { 201, (handler_t)handler_short }, { 0, (handler_t)handler_short } };
  int (*init)(int *, char ***) = gasnet_init;
  int (*request)(gasnet_node_t, gasnet_handler_t, gasnet_handlerarg_t) = gasnet_AMRequestShort1;
  void (*put)(gasnet_node_t, void *, const void *, size_t) = gasnet_put;
  char buf[8];
  gasnet_seginfo_t seg;
  gasnet_nodeinfo_t info;
  gasnet_token_t token = NULL;
  gasnet_register_value_t value;
  gasnet_valget_handle_t val;
  gasnet_handle_t handles[2];
  gasnet_threadinfo_t thread = GASNET_GET_THREADINFO();
  int r = gasnet_init(&argc, &argv);
  gasnet_max_segsize = 0;
  gasnet_client_attach_hook = NULL;
  gasnet_frozen = 0;
  r += gasnet_attach(table, 2, gasnet_getMaxLocalSegmentSize(), GASNET_PAGESIZE) + init(NULL, NULL);
  r += gasnet_mynode() == gasnet_nodes() || gasnet_getMaxGlobalSegmentSize() == 0 || gasnet_getenv("A") == NULL;
  r += gasnet_getSegmentInfo(&seg, 1) + gasnet_getNodeInfo(&info, 1);
  r += seg.addr == NULL || seg.size == 0 || info.host == info.supernode || info.offset != 0;
  r += *gasnet_ErrorName(GASNET_OK) + *gasnet_ErrorDesc(GASNET_OK) + gasnet_set_waitmode(GASNET_WAIT_BLOCK);
  r += (int)(gasnet_AMMaxArgs() + gasnet_AMMaxMedium() + gasnet_AMMaxLongRequest() + gasnet_AMMaxLongReply());
  SEND(0, A0);
  SEND(1, A1);
  SEND(2, A2);
  SEND(4, A4);
  SEND(8, A8);
  SEND(15, A15);
  SEND(16, A16);
  r += gasnet_AMRequestShort(0, 201, 1, 5) + gasnet_AMRequestMedium(0, 201, buf, 8, 0) +
       gasnet_AMRequestLong(0, 201, buf, 8, buf, 2, 5, 6) + gasnet_AMRequestLongAsync(0, 201, buf, 8, buf, 1, 5) +
       gasnet_AMReplyShort(token, 201, 1, 5) + gasnet_AMReplyMedium(token, 201, buf, 8, 0) +
       gasnet_AMReplyLong(token, 201, buf, 8, buf, 2, 5, 6) + request(0, 201, 5);
  r += gasnet_AMPoll();
  GASNET_BLOCKUNTIL(r != 0);
  gasnet_hold_interrupts();
  gasnet_resume_interrupts();
  gasnet_hsl_init(&hsl);
  gasnet_hsl_lock(&hsl);
  gasnett_mutex_assertlocked(&hsl.lock);
  gasnet_hsl_unlock(&hsl);
  r += gasnet_hsl_trylock(&hsl) == GASNET_ERR_NOT_READY;
  gasnet_hsl_destroy(&hsl);
  put(0, buf, buf, 8);
  gasnet_put(0, buf, buf, 8);
  gasnet_get(buf, 0, buf, 8);
  gasnet_put_bulk(0, buf, buf, sizeof(buf));
  gasnet_get_bulk(buf, 0, buf, sizeof(buf));
  gasnet_memset(0, buf, 0, 8);
  handles[0] = gasnet_put_nb(0, buf, buf, 8);
  handles[1] = gasnet_get_nb(buf, 0, buf, 8);
  gasnet_wait_syncnb_all(handles, 2);
  gasnet_wait_syncnb_some(handles, 2);
  r += gasnet_try_syncnb_all(handles, 2) + gasnet_try_syncnb_some(handles, 2) + gasnet_try_syncnb(handles[0]);
  r += gasnet_try_syncnb_all_nopoll(handles, 2) + gasnet_try_syncnb_some_nopoll(handles, 2);
  r += gasnet_try_syncnb_nopoll(handles[0]);
  gasnet_wait_syncnb(gasnet_put_nb_bulk(0, buf, buf, 8));
  gasnet_wait_syncnb(gasnet_get_nb_bulk(buf, 0, buf, 8));
  gasnet_wait_syncnb(gasnet_memset_nb(0, buf, 0, 8));
  gasnet_begin_nbi_accessregion();
  gasnet_put_nbi(0, buf, buf, 8);
  gasnet_get_nbi(buf, 0, buf, 8);
  gasnet_put_nbi_bulk(0, buf, buf, 8);
  gasnet_get_nbi_bulk(buf, 0, buf, 8);
  gasnet_memset_nbi(0, buf, 0, 8);
  gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
  gasnet_wait_syncnbi_gets();
  gasnet_wait_syncnbi_puts();
  gasnet_wait_syncnbi_all();
  r += gasnet_try_syncnbi_gets() + gasnet_try_syncnbi_puts() + gasnet_try_syncnbi_all();
  gasnet_put_val(0, buf, 1, 8);
  gasnet_put_nbi_val(0, buf, 1, 1);
  gasnet_wait_syncnb(gasnet_put_nb_val(0, buf, 1, 3));
  value = gasnet_get_val(0, buf, 2);
  val = gasnet_get_nb_val(0, buf, 4);
  value += gasnet_wait_syncnb_valget(val);
  gasnet_barrier_notify(1, GASNET_BARRIERFLAG_ANONYMOUS);
  r += gasnet_barrier_try(1, 0) + gasnet_barrier_wait(1, 0) + gasnet_barrier(1, 0) + gasnet_barrier_result(&r);
  gasnet_coll_init(NULL, 0, &coll_names_fn, 1, 0);
  value += coll_names(buf);
  {
    void *const addrs[1] = { buf };
    size_t strides[1] = { 4 }, counts[2] = { 2, 1 };
    gasneti_memveclist_stats_t vstats = gasnett_format_memveclist(buf, 1, &memvec);
    gasneti_addrlist_stats_t astats = gasnett_format_addrlist(buf, 1, addrs, 4);
    gasnet_putv_bulk(0, 1, &memvec, 1, &memvec);
    gasnet_wait_syncnb(gasnet_putv_nb_bulk(0, 1, &memvec, 1, &memvec));
    gasnet_putv_nbi_bulk(0, 1, &memvec, 1, &memvec);
    gasnet_getv_bulk(1, &memvec, 0, 1, &memvec);
    gasnet_wait_syncnb(gasnet_getv_nb_bulk(1, &memvec, 0, 1, &memvec));
    gasnet_getv_nbi_bulk(1, &memvec, 0, 1, &memvec);
    gasnet_puti_bulk(0, 1, addrs, 4, 1, addrs, 4);
    gasnet_wait_syncnb(gasnet_puti_nb_bulk(0, 1, addrs, 4, 1, addrs, 4));
    gasnet_puti_nbi_bulk(0, 1, addrs, 4, 1, addrs, 4);
    gasnet_geti_bulk(1, addrs, 4, 0, 1, addrs, 4);
    gasnet_wait_syncnb(gasnet_geti_nb_bulk(1, addrs, 4, 0, 1, addrs, 4));
    gasnet_geti_nbi_bulk(1, addrs, 4, 0, 1, addrs, 4);
    gasnet_puts_bulk(0, buf, strides, buf, strides, counts, 1);
    gasnet_wait_syncnb(gasnet_puts_nb_bulk(0, buf, strides, buf, strides, counts, 1));
    gasnet_puts_nbi_bulk(0, buf, strides, buf, strides, counts, 1);
    gasnet_gets_bulk(buf, strides, 0, buf, strides, counts, 1);
    gasnet_wait_syncnb(gasnet_gets_nb_bulk(buf, strides, 0, buf, strides, counts, 1));
    gasnet_gets_nbi_bulk(buf, strides, 0, buf, strides, counts, 1);
    gasnett_format_strides(buf, 1, strides);
    value += gasnett_format_memveclist_bufsz(1) + gasnett_format_addrlist_bufsz(1) + gasnett_format_strides_bufsz(1) +
             gasnett_format_putvgetv_bufsz(1, 1) + gasnett_format_putigeti_bufsz(1, 1) +
             gasnett_format_putsgets_bufsz(1) + gasnett_format_putvgetv(buf, 0, 1, &memvec, 1, &memvec) +
             gasnett_format_putigeti(buf, 0, 1, addrs, 4, 1, addrs, 4) +
             gasnett_format_putsgets(buf, NULL, 0, buf, strides, buf, strides, counts, 1) + vstats.totalsz +
             (vstats.minsz == vstats.maxsz) + (vstats.minaddr == vstats.maxaddr) + (astats.minaddr == astats.maxaddr);
  }
  GASNETT_VALUE_ASSIGN(buf, value, 4);
  GASNETT_FAST_ALIGNED_MEMCPY(buf, &value, 4);
  GASNETT_FAST_UNALIGNED_MEMCPY(buf, &value, 4);
  gasnett_free_aligned(gasnett_malloc_aligned(64, 64));
  r += gasnett_mmap(4096) == NULL || thread != NULL;
  gasnet_exit(r + (int)value);
}

gasnet_register_value_t value_names(const void *p);
gasnet_register_value_t value_names(const void *p) {
  GASNET_POST_THREADINFO(GASNET_GET_THREADINFO());
  GASNETT_VALUE_RETURN(p, 4);
}
#endif
