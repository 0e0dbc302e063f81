/* Memory kinds of GASNet-EX, included by gasnetex.h. This library knows the memory of the host
   only: gex_MK_Create refuses all classes. */
#ifndef GASNET_MK_H
#define GASNET_MK_H

#include "gasnetex.h"

#define GASNET_HAVE_MK_CLASS_HOST 1

GASNETI_BEGIN_EXTERNC

typedef enum { GEX_MK_CLASS_HOST = 0, GEX_MK_CLASS_CUDA_UVA = 1, GEX_MK_CLASS_HIP = 2, GEX_MK_CLASS_ZE = 3 } gex_MK_Class_t;
typedef struct {
  uint64_t gex_flags;
  gex_MK_Class_t gex_class;
  union {
    struct { int gex_CUdevice; } gex_class_cuda_uva;
    struct { int gex_hipDevice; } gex_class_hip;
    struct { void *gex_zeDevice; void *gex_zeContext; uint32_t gex_zeMemoryOrdinal; } gex_class_ze;
  } gex_args;
} gex_MK_Create_args_t;
int gex_MK_Create(gex_MK_t *memkind_p, gex_Client_t client, const gex_MK_Create_args_t *args, gex_Flags_t flags);
void gex_MK_Destroy(gex_MK_t memkind, gex_Flags_t flags);
gex_MK_Class_t gex_MK_QueryClass(gex_MK_t memkind);
gex_Client_t gex_MK_QueryClient(gex_MK_t memkind);
gex_Flags_t gex_MK_QueryFlags(gex_MK_t memkind);
void gex_MK_SetCData(gex_MK_t memkind, const void *val);
void *gex_MK_QueryCData(gex_MK_t memkind);

GASNETI_END_EXTERNC

#endif
