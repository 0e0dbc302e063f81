/* The mode symbols of every object that includes gasnet.h or gasnetex.h. Objects of one program
   with different modes do not link; gasnet_init finds shared objects with different modes. */
#ifndef GASNET_CLIENT_H
#define GASNET_CLIENT_H

#include "gasnet_common.h"

/* Version of the interface between headers and library; the library rejects another one. */
#define GASNETI_ABI 1

/* For launchers and users that search a program for strings. */
GASNETI_IDENT_LOCAL(gasneti_ident_config, "$GASNetConfig: (client) " GASNET_CONFIG_STRING " $");
GASNETI_IDENT_LOCAL(gasneti_ident_conduit, "$GASNetConduitName: " GASNET_CONDUIT_NAME_STR " $");
GASNETI_IDENT_LOCAL(gasneti_ident_threads, "$GASNetThreadModel: GASNET_" _STRINGIFY(GASNETI_THREAD_MODE_NAME) " $");
GASNETI_IDENT_LOCAL(gasneti_ident_segment, "$GASNetSegment: GASNET_SEGMENT_" _STRINGIFY(GASNETI_SEGMENT_MODE_NAME) " $");
GASNETI_IDENT_LOCAL(gasneti_ident_segsize, "$GASNetDefaultMaxSegsize: (((uint64_t)1)<<47) $");

static const gasneti_client_t gasneti_client = {
  GASNETI_ABI, GASNETI_THREAD_MODE, GASNETI_SEGMENT_MODE,
#if defined(GASNET_DEBUG) && GASNET_DEBUG
  1,
#else
  0,
#endif
  0
};

GASNETI_BEGIN_EXTERNC
#if defined(__ELF__)
/* Weak, so that an object that calls no function of GASNet needs no library. */
void gasneti_register_client(const gasneti_client_t *) GASNETI_ATTRIBUTE((__weak__));
#endif
GASNETI_END_EXTERNC

#if defined(__ELF__)
static void gasneti_register_this_object(void) GASNETI_ATTRIBUTE((__constructor__, __used__));
static void gasneti_register_this_object(void) {
  /* Absolute symbols. A linker accepts several definitions with the same value; different values
     are a multiple definition, whose name says which mode differs. They are inside a function
     because clang -flto lists the symbols of file-scope assembly as ordinary definitions. */
  __asm__ __volatile__(
      ".globl gasneti_thread_mode_differs\n\t.hidden gasneti_thread_mode_differs\n\t"
      ".set gasneti_thread_mode_differs, " _STRINGIFY(GASNETI_THREAD_MODE) "\n\t"
      ".globl gasneti_segment_mode_differs\n\t.hidden gasneti_segment_mode_differs\n\t"
      ".set gasneti_segment_mode_differs, " _STRINGIFY(GASNETI_SEGMENT_MODE) "\n\t"
      ".globl gasneti_header_abi_differs\n\t.hidden gasneti_header_abi_differs\n\t"
      ".set gasneti_header_abi_differs, " _STRINGIFY(GASNETI_ABI));
  if (gasneti_register_client) gasneti_register_client(&gasneti_client);
}
#endif

#endif
