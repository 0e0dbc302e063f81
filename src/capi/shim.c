/* What stable Rust cannot define: functions with a variable number of arguments, and data that a
   client may define itself. Such data are weak here and reached through the symbol table. So the
   client's definition wins in a shared library as well as in an archive. Compiled by build.rs;
   everything else is in the .rs files of this folder. */
#define GASNET_PAR 1
#define GASNETI_INSIDE_LIBRARY 1
#include "gasnet.h"
#include "gasnet_tools.h"

#include <stdarg.h>

#define EXPORTED __attribute__((__visibility__("default")))
#define WEAK __attribute__((__visibility__("default"), __weak__))

/* In tools/debug.rs: prints the message of a fatal error and ends the job. */
void gasneti_fatal_text(const char *text) __attribute__((__noreturn__));
/* In tools/debug.rs: what gasnett_print_backtrace_ifenabled is unless the client assigns it. */
int gasneti_backtrace_if_enabled(int fd);

/* The layouts that the Rust files repeat. */
#define MUST_HOLD(name, condition) typedef char name[(condition) ? 1 : -1]
MUST_HOLD(size_of_client, sizeof(gasneti_client_t) == 24);
MUST_HOLD(size_of_abi, sizeof(void *) != 8 || sizeof(gasneti_abi_t) == 64 + 6144);
MUST_HOLD(size_of_handlerentry, sizeof(gasnet_handlerentry_t) == 2 * sizeof(void *));
MUST_HOLD(size_of_seginfo, sizeof(gasnet_seginfo_t) == 2 * sizeof(void *));
MUST_HOLD(size_of_nodeinfo, sizeof(gasnet_nodeinfo_t) == 8 + sizeof(void *));
MUST_HOLD(lock_is_first, offsetof(gasnet_hsl_t, lock) == 0);
MUST_HOLD(rwlock_fits, sizeof(gasnett_rwlock_t) >= sizeof(pthread_rwlock_t));

/* What the library is, for users and launchers that search it for strings. What a client was
   compiled for is in the client (gasnet_client.h). Exported, so that no linker drops it. */
#define IDENT(name, text) "$GASNet" name ": " text " $"
EXPORTED extern const char gasneti_idents[];
const char gasneti_idents[] =
  IDENT("Library", "libgasnet " GASNETI_LIBRARY_VERSION " over Portals 3.3")
  "\0" IDENT("CoreLibraryName", GASNET_CORE_NAME_STR)
  "\0" IDENT("CoreLibraryVersion", GASNET_CORE_VERSION_STR)
  "\0" IDENT("ExtendedLibraryName", GASNET_EXTENDED_NAME_STR)
  "\0" IDENT("ExtendedLibraryVersion", GASNET_EXTENDED_VERSION_STR)
  "\0" IDENT("ConduitName", GASNET_CONDUIT_NAME_STR)
  "\0" IDENT("APIVersion", _STRINGIFY(GASNET_SPEC_VERSION_MAJOR))
  "\0" IDENT("ThreadInfoOpt", "0")
  "\0" IDENT("ToolsConfig", GASNETT_CONFIG_STRING)
  "\0" IDENT("SystemTuple", GASNETT_SYSTEM_TUPLE)
  "\0" IDENT("CompilerID", GASNETT_PLATFORM_COMPILER_IDSTR);

WEAK uint64_t gasnet_max_segsize = 0;
WEAK void (*gasnet_client_attach_hook)(void *, uintptr_t) = NULL;
WEAK gasnett_backtrace_type_t gasnett_backtrace_user = { NULL, NULL, 0 };
WEAK int (*gasnett_print_backtrace_ifenabled)(int) = gasneti_backtrace_if_enabled;
EXPORTED volatile int gasnet_frozen = 0;

EXPORTED void gasneti_call_attach_hook(void *base, uintptr_t size);
EXPORTED void gasneti_call_attach_hook(void *base, uintptr_t size) {
  if (gasnet_client_attach_hook) gasnet_client_attach_hook(base, size);
}

/* Formats a text of the client; what does not fit is cut. */
#define FORMAT(text, fmt)                                                                                             \
  char text[1024];                                                                                                    \
  va_list list;                                                                                                       \
  va_start(list, fmt);                                                                                                \
  vsnprintf(text, sizeof text, fmt, list);                                                                            \
  va_end(list)

EXPORTED void gasnett_fatalerror(const char *fmt, ...) {
  FORMAT(text, fmt);
  gasneti_fatal_text(text);
}

/* In tracing.rs: messages and statistics of the client. */
void gasneti_trace_text(const char *text, int force);
void gasneti_stats_text(const char *text, int force);

EXPORTED void gasneti_trace_printf(const char *fmt, ...) {
  FORMAT(text, fmt);
  gasneti_trace_text(text, 0);
}

EXPORTED void gasneti_trace_printf_force(const char *fmt, ...) {
  FORMAT(text, fmt);
  gasneti_trace_text(text, 1);
}

EXPORTED void gasneti_stats_printf(const char *fmt, ...) {
  FORMAT(text, fmt);
  gasneti_stats_text(text, 0);
}

EXPORTED void gasneti_stats_printf_force(const char *fmt, ...) {
  FORMAT(text, fmt);
  gasneti_stats_text(text, 1);
}

/* In am/variadic.rs: the functions that take their arguments as an array. */
int gasneti_AMRequestShortV(gasnet_node_t, gasnet_handler_t, int, const gasnet_handlerarg_t *);
int gasneti_AMRequestMediumV(gasnet_node_t, gasnet_handler_t, const void *, size_t, int, const gasnet_handlerarg_t *);
int gasneti_AMRequestLongV(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, int,
                           const gasnet_handlerarg_t *);
int gasneti_AMRequestLongAsyncV(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, int,
                                const gasnet_handlerarg_t *);
int gasneti_AMReplyShortV(gasnet_token_t, gasnet_handler_t, int, const gasnet_handlerarg_t *);
int gasneti_AMReplyMediumV(gasnet_token_t, gasnet_handler_t, const void *, size_t, int, const gasnet_handlerarg_t *);
int gasneti_AMReplyLongV(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *, int,
                         const gasnet_handlerarg_t *);

#define MAX_ARGS 16
/* The arguments of a variadic call as an array. The function that gets them rejects a number out
   of range. */
#define PACK(args, numargs)                                                                                           \
  gasnet_handlerarg_t args[MAX_ARGS];                                                                                 \
  int i;                                                                                                              \
  va_list list;                                                                                                       \
  va_start(list, numargs);                                                                                            \
  for (i = 0; i < numargs && i < MAX_ARGS; i++) args[i] = va_arg(list, gasnet_handlerarg_t);                          \
  va_end(list)

EXPORTED int gasnet_AMRequestShort(gasnet_node_t dest, gasnet_handler_t handler, int numargs, ...) {
  PACK(args, numargs);
  return gasneti_AMRequestShortV(dest, handler, numargs, args);
}

EXPORTED int gasnet_AMRequestMedium(gasnet_node_t dest, gasnet_handler_t handler, const void *src, size_t nbytes,
                                    int numargs, ...) {
  PACK(args, numargs);
  return gasneti_AMRequestMediumV(dest, handler, src, nbytes, numargs, args);
}

EXPORTED int gasnet_AMRequestLong(gasnet_node_t dest, gasnet_handler_t handler, const void *src, size_t nbytes,
                                  void *dest_addr, int numargs, ...) {
  PACK(args, numargs);
  return gasneti_AMRequestLongV(dest, handler, src, nbytes, dest_addr, numargs, args);
}

EXPORTED int gasnet_AMRequestLongAsync(gasnet_node_t dest, gasnet_handler_t handler, const void *src, size_t nbytes,
                                       void *dest_addr, int numargs, ...) {
  PACK(args, numargs);
  return gasneti_AMRequestLongAsyncV(dest, handler, src, nbytes, dest_addr, numargs, args);
}

EXPORTED int gasnet_AMReplyShort(gasnet_token_t token, gasnet_handler_t handler, int numargs, ...) {
  PACK(args, numargs);
  return gasneti_AMReplyShortV(token, handler, numargs, args);
}

EXPORTED int gasnet_AMReplyMedium(gasnet_token_t token, gasnet_handler_t handler, const void *src, size_t nbytes,
                                  int numargs, ...) {
  PACK(args, numargs);
  return gasneti_AMReplyMediumV(token, handler, src, nbytes, numargs, args);
}

EXPORTED int gasnet_AMReplyLong(gasnet_token_t token, gasnet_handler_t handler, const void *src, size_t nbytes,
                                void *dest_addr, int numargs, ...) {
  PACK(args, numargs);
  return gasneti_AMReplyLongV(token, handler, src, nbytes, dest_addr, numargs, args);
}
