/* Remote atomics of GASNet-EX, included by gasnetex.h, which therefore comes before the guard. */
#include "gasnetex.h"

#ifndef GASNET_RATOMIC_H
#define GASNET_RATOMIC_H

GASNETI_BEGIN_EXTERNC

void gex_AD_Create(gex_AD_t *ad_p, gex_TM_t tm, gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags);
void gex_AD_Destroy(gex_AD_t ad);
gex_Flags_t gex_AD_QueryFlags(gex_AD_t ad);
gex_TM_t gex_AD_QueryTM(gex_AD_t ad);
gex_DT_t gex_AD_QueryDT(gex_AD_t ad);
gex_OP_t gex_AD_QueryOps(gex_AD_t ad);
void gex_AD_SetCData(gex_AD_t ad, const void *val);
void *gex_AD_QueryCData(gex_AD_t ad);

/* The operations of each type; result_p is used by the fetching ones only. */
#define GASNETI_AD(name, type)                                                                                        \
  gex_Event_t gex_AD_OpNB_##name(gex_AD_t ad, type *result_p, gex_Rank_t tgt_rank, void *tgt_addr, gex_OP_t opcode,   \
                                 type operand1, type operand2, gex_Flags_t flags) GASNETI_MUST_SYNC;                  \
  int gex_AD_OpNBI_##name(gex_AD_t ad, type *result_p, gex_Rank_t tgt_rank, void *tgt_addr, gex_OP_t opcode,          \
                          type operand1, type operand2, gex_Flags_t flags)
GASNETI_AD(I32, int32_t);
GASNETI_AD(U32, uint32_t);
GASNETI_AD(I64, int64_t);
GASNETI_AD(U64, uint64_t);
GASNETI_AD(FLT, float);
GASNETI_AD(DBL, double);

GASNETI_END_EXTERNC

#endif
