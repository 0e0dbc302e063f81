/* The 119 numbered active message functions, included by gasnet.h.

   Each is a function of the library, and a macro of the same name in front of it. The macro
   converts the arguments to gasnet_handlerarg_t, so that clients may pass longs and pointers,
   and records the line of the call (gasnet_trace.h). A name without parentheses is the function.
   The seven unnumbered forms take the number of arguments, then the arguments, each an int. */
#ifndef GASNET_AM_H
#define GASNET_AM_H

#include "gasnet.h"

GASNETI_BEGIN_EXTERNC

/* An argument of a handler. */
typedef gasnet_handlerarg_t gasneti_arg_t;

int gasnet_AMRequestShort0(gasnet_node_t, gasnet_handler_t);
int gasnet_AMRequestShort1(gasnet_node_t, gasnet_handler_t, gasneti_arg_t);
int gasnet_AMRequestShort2(gasnet_node_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestShort3(gasnet_node_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestShort4(gasnet_node_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMRequestShort5(gasnet_node_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestShort6(gasnet_node_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestShort7(gasnet_node_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestShort8(gasnet_node_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestShort9(gasnet_node_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestShort10(gasnet_node_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMRequestShort11(gasnet_node_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMRequestShort12(gasnet_node_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestShort13(gasnet_node_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestShort14(gasnet_node_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestShort15(gasnet_node_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestShort16(gasnet_node_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestShort(gasnet_node_t, gasnet_handler_t, int numargs, ...);

int gasnet_AMRequestMedium0(gasnet_node_t, gasnet_handler_t, const void *, size_t);
int gasnet_AMRequestMedium1(gasnet_node_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t);
int gasnet_AMRequestMedium2(gasnet_node_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMRequestMedium3(gasnet_node_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestMedium4(gasnet_node_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestMedium5(gasnet_node_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestMedium6(gasnet_node_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestMedium7(gasnet_node_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestMedium8(gasnet_node_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMRequestMedium9(gasnet_node_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMRequestMedium10(gasnet_node_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestMedium11(gasnet_node_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestMedium12(gasnet_node_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestMedium13(gasnet_node_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestMedium14(gasnet_node_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestMedium15(gasnet_node_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMRequestMedium16(gasnet_node_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMRequestMedium(gasnet_node_t, gasnet_handler_t, const void *, size_t, int numargs, ...);

int gasnet_AMRequestLong0(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *);
int gasnet_AMRequestLong1(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t);
int gasnet_AMRequestLong2(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMRequestLong3(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLong4(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLong5(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLong6(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLong7(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLong8(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMRequestLong9(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMRequestLong10(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLong11(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLong12(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLong13(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLong14(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLong15(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMRequestLong16(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMRequestLong(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, int numargs, ...);

int gasnet_AMRequestLongAsync0(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *);
int gasnet_AMRequestLongAsync1(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t);
int gasnet_AMRequestLongAsync2(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMRequestLongAsync3(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLongAsync4(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLongAsync5(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLongAsync6(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLongAsync7(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLongAsync8(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMRequestLongAsync9(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMRequestLongAsync10(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLongAsync11(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLongAsync12(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLongAsync13(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLongAsync14(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMRequestLongAsync15(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMRequestLongAsync16(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t);
int gasnet_AMRequestLongAsync(gasnet_node_t, gasnet_handler_t, const void *, size_t, void *, int numargs, ...);

int gasnet_AMReplyShort0(gasnet_token_t, gasnet_handler_t);
int gasnet_AMReplyShort1(gasnet_token_t, gasnet_handler_t, gasneti_arg_t);
int gasnet_AMReplyShort2(gasnet_token_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyShort3(gasnet_token_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyShort4(gasnet_token_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMReplyShort5(gasnet_token_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyShort6(gasnet_token_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyShort7(gasnet_token_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyShort8(gasnet_token_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyShort9(gasnet_token_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyShort10(gasnet_token_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMReplyShort11(gasnet_token_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMReplyShort12(gasnet_token_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyShort13(gasnet_token_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyShort14(gasnet_token_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyShort15(gasnet_token_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyShort16(gasnet_token_t, gasnet_handler_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyShort(gasnet_token_t, gasnet_handler_t, int numargs, ...);

int gasnet_AMReplyMedium0(gasnet_token_t, gasnet_handler_t, const void *, size_t);
int gasnet_AMReplyMedium1(gasnet_token_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t);
int gasnet_AMReplyMedium2(gasnet_token_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMReplyMedium3(gasnet_token_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyMedium4(gasnet_token_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyMedium5(gasnet_token_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyMedium6(gasnet_token_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyMedium7(gasnet_token_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyMedium8(gasnet_token_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMReplyMedium9(gasnet_token_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMReplyMedium10(gasnet_token_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyMedium11(gasnet_token_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyMedium12(gasnet_token_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyMedium13(gasnet_token_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyMedium14(gasnet_token_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyMedium15(gasnet_token_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMReplyMedium16(gasnet_token_t, gasnet_handler_t, const void *, size_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMReplyMedium(gasnet_token_t, gasnet_handler_t, const void *, size_t, int numargs, ...);

int gasnet_AMReplyLong0(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *);
int gasnet_AMReplyLong1(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t);
int gasnet_AMReplyLong2(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMReplyLong3(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyLong4(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyLong5(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyLong6(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyLong7(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyLong8(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMReplyLong9(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMReplyLong10(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyLong11(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyLong12(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyLong13(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyLong14(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t);
int gasnet_AMReplyLong15(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMReplyLong16(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t, gasneti_arg_t,
    gasneti_arg_t);
int gasnet_AMReplyLong(gasnet_token_t, gasnet_handler_t, const void *, size_t, void *, int numargs, ...);

GASNETI_END_EXTERNC

#define GASNETI_ARG(a) ((gasnet_handlerarg_t)(a))

#define gasnet_AMRequestShort0(d, h) GASNETI_HERE(gasnet_AMRequestShort0, (d, h))
#define gasnet_AMRequestMedium0(d, h, s, n) GASNETI_HERE(gasnet_AMRequestMedium0, (d, h, s, n))
#define gasnet_AMRequestLong0(d, h, s, n, t) GASNETI_HERE(gasnet_AMRequestLong0, (d, h, s, n, t))
#define gasnet_AMRequestLongAsync0(d, h, s, n, t) GASNETI_HERE(gasnet_AMRequestLongAsync0, (d, h, s, n, t))
#define gasnet_AMReplyShort0(k, h) GASNETI_HERE(gasnet_AMReplyShort0, (k, h))
#define gasnet_AMReplyMedium0(k, h, s, n) GASNETI_HERE(gasnet_AMReplyMedium0, (k, h, s, n))
#define gasnet_AMReplyLong0(k, h, s, n, t) GASNETI_HERE(gasnet_AMReplyLong0, (k, h, s, n, t))
#define gasnet_AMRequestShort1(d, h, a0) GASNETI_HERE(gasnet_AMRequestShort1, (d, h, GASNETI_ARG(a0)))
#define gasnet_AMRequestShort2(d, h, a0, a1) GASNETI_HERE(gasnet_AMRequestShort2, (d, h, GASNETI_ARG(a0), \
  GASNETI_ARG(a1)))
#define gasnet_AMRequestShort3(d, h, a0, a1, a2) GASNETI_HERE(gasnet_AMRequestShort3, (d, h, GASNETI_ARG(a0), \
  GASNETI_ARG(a1), GASNETI_ARG(a2)))
#define gasnet_AMRequestShort4(d, h, a0, a1, a2, a3) GASNETI_HERE(gasnet_AMRequestShort4, (d, h, GASNETI_ARG(a0), \
  GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3)))
#define gasnet_AMRequestShort5(d, h, a0, a1, a2, a3, a4) GASNETI_HERE(gasnet_AMRequestShort5, (d, h, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4)))
#define gasnet_AMRequestShort6(d, h, a0, a1, a2, a3, a4, a5) GASNETI_HERE(gasnet_AMRequestShort6, (d, h, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5)))
#define gasnet_AMRequestShort7(d, h, a0, a1, a2, a3, a4, a5, a6) GASNETI_HERE(gasnet_AMRequestShort7, (d, h, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), \
  GASNETI_ARG(a6)))
#define gasnet_AMRequestShort8(d, h, a0, a1, a2, a3, a4, a5, a6, a7) GASNETI_HERE(gasnet_AMRequestShort8, (d, h, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), \
  GASNETI_ARG(a6), GASNETI_ARG(a7)))
#define gasnet_AMRequestShort9(d, h, a0, a1, a2, a3, a4, a5, a6, a7, a8) GASNETI_HERE(gasnet_AMRequestShort9, (d, \
  h, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), \
  GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8)))
#define gasnet_AMRequestShort10(d, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, \
  a9) GASNETI_HERE(gasnet_AMRequestShort10, (d, h, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9)))
#define gasnet_AMRequestShort11(d, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, \
  a10) GASNETI_HERE(gasnet_AMRequestShort11, (d, h, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10)))
#define gasnet_AMRequestShort12(d, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, \
  a11) GASNETI_HERE(gasnet_AMRequestShort12, (d, h, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11)))
#define gasnet_AMRequestShort13(d, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, \
  a12) GASNETI_HERE(gasnet_AMRequestShort13, (d, h, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12)))
#define gasnet_AMRequestShort14(d, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, \
  a13) GASNETI_HERE(gasnet_AMRequestShort14, (d, h, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13)))
#define gasnet_AMRequestShort15(d, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, \
  a14) GASNETI_HERE(gasnet_AMRequestShort15, (d, h, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13), GASNETI_ARG(a14)))
#define gasnet_AMRequestShort16(d, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, \
  a15) GASNETI_HERE(gasnet_AMRequestShort16, (d, h, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13), GASNETI_ARG(a14), \
  GASNETI_ARG(a15)))

#define gasnet_AMRequestMedium1(d, h, s, n, a0) GASNETI_HERE(gasnet_AMRequestMedium1, (d, h, s, n, \
  GASNETI_ARG(a0)))
#define gasnet_AMRequestMedium2(d, h, s, n, a0, a1) GASNETI_HERE(gasnet_AMRequestMedium2, (d, h, s, n, \
  GASNETI_ARG(a0), GASNETI_ARG(a1)))
#define gasnet_AMRequestMedium3(d, h, s, n, a0, a1, a2) GASNETI_HERE(gasnet_AMRequestMedium3, (d, h, s, n, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2)))
#define gasnet_AMRequestMedium4(d, h, s, n, a0, a1, a2, a3) GASNETI_HERE(gasnet_AMRequestMedium4, (d, h, s, n, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3)))
#define gasnet_AMRequestMedium5(d, h, s, n, a0, a1, a2, a3, a4) GASNETI_HERE(gasnet_AMRequestMedium5, (d, h, s, n, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4)))
#define gasnet_AMRequestMedium6(d, h, s, n, a0, a1, a2, a3, a4, a5) GASNETI_HERE(gasnet_AMRequestMedium6, (d, h, \
  s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5)))
#define gasnet_AMRequestMedium7(d, h, s, n, a0, a1, a2, a3, a4, a5, a6) GASNETI_HERE(gasnet_AMRequestMedium7, (d, \
  h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), \
  GASNETI_ARG(a6)))
#define gasnet_AMRequestMedium8(d, h, s, n, a0, a1, a2, a3, a4, a5, a6, \
  a7) GASNETI_HERE(gasnet_AMRequestMedium8, (d, h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7)))
#define gasnet_AMRequestMedium9(d, h, s, n, a0, a1, a2, a3, a4, a5, a6, a7, \
  a8) GASNETI_HERE(gasnet_AMRequestMedium9, (d, h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8)))
#define gasnet_AMRequestMedium10(d, h, s, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, \
  a9) GASNETI_HERE(gasnet_AMRequestMedium10, (d, h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9)))
#define gasnet_AMRequestMedium11(d, h, s, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, \
  a10) GASNETI_HERE(gasnet_AMRequestMedium11, (d, h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10)))
#define gasnet_AMRequestMedium12(d, h, s, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, \
  a11) GASNETI_HERE(gasnet_AMRequestMedium12, (d, h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11)))
#define gasnet_AMRequestMedium13(d, h, s, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, \
  a12) GASNETI_HERE(gasnet_AMRequestMedium13, (d, h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12)))
#define gasnet_AMRequestMedium14(d, h, s, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, \
  a13) GASNETI_HERE(gasnet_AMRequestMedium14, (d, h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13)))
#define gasnet_AMRequestMedium15(d, h, s, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, \
  a14) GASNETI_HERE(gasnet_AMRequestMedium15, (d, h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13), GASNETI_ARG(a14)))
#define gasnet_AMRequestMedium16(d, h, s, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, \
  a15) GASNETI_HERE(gasnet_AMRequestMedium16, (d, h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13), GASNETI_ARG(a14), \
  GASNETI_ARG(a15)))

#define gasnet_AMRequestLong1(d, h, s, n, t, a0) GASNETI_HERE(gasnet_AMRequestLong1, (d, h, s, n, t, \
  GASNETI_ARG(a0)))
#define gasnet_AMRequestLong2(d, h, s, n, t, a0, a1) GASNETI_HERE(gasnet_AMRequestLong2, (d, h, s, n, t, \
  GASNETI_ARG(a0), GASNETI_ARG(a1)))
#define gasnet_AMRequestLong3(d, h, s, n, t, a0, a1, a2) GASNETI_HERE(gasnet_AMRequestLong3, (d, h, s, n, t, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2)))
#define gasnet_AMRequestLong4(d, h, s, n, t, a0, a1, a2, a3) GASNETI_HERE(gasnet_AMRequestLong4, (d, h, s, n, t, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3)))
#define gasnet_AMRequestLong5(d, h, s, n, t, a0, a1, a2, a3, a4) GASNETI_HERE(gasnet_AMRequestLong5, (d, h, s, n, \
  t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4)))
#define gasnet_AMRequestLong6(d, h, s, n, t, a0, a1, a2, a3, a4, a5) GASNETI_HERE(gasnet_AMRequestLong6, (d, h, s, \
  n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5)))
#define gasnet_AMRequestLong7(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6) GASNETI_HERE(gasnet_AMRequestLong7, (d, \
  h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), \
  GASNETI_ARG(a5), GASNETI_ARG(a6)))
#define gasnet_AMRequestLong8(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, \
  a7) GASNETI_HERE(gasnet_AMRequestLong8, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7)))
#define gasnet_AMRequestLong9(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, \
  a8) GASNETI_HERE(gasnet_AMRequestLong9, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8)))
#define gasnet_AMRequestLong10(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, \
  a9) GASNETI_HERE(gasnet_AMRequestLong10, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9)))
#define gasnet_AMRequestLong11(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, \
  a10) GASNETI_HERE(gasnet_AMRequestLong11, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10)))
#define gasnet_AMRequestLong12(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, \
  a11) GASNETI_HERE(gasnet_AMRequestLong12, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11)))
#define gasnet_AMRequestLong13(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, \
  a12) GASNETI_HERE(gasnet_AMRequestLong13, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12)))
#define gasnet_AMRequestLong14(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, \
  a13) GASNETI_HERE(gasnet_AMRequestLong14, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13)))
#define gasnet_AMRequestLong15(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, \
  a14) GASNETI_HERE(gasnet_AMRequestLong15, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13), GASNETI_ARG(a14)))
#define gasnet_AMRequestLong16(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, \
  a15) GASNETI_HERE(gasnet_AMRequestLong16, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13), GASNETI_ARG(a14), \
  GASNETI_ARG(a15)))

#define gasnet_AMRequestLongAsync1(d, h, s, n, t, a0) GASNETI_HERE(gasnet_AMRequestLongAsync1, (d, h, s, n, t, \
  GASNETI_ARG(a0)))
#define gasnet_AMRequestLongAsync2(d, h, s, n, t, a0, a1) GASNETI_HERE(gasnet_AMRequestLongAsync2, (d, h, s, n, t, \
  GASNETI_ARG(a0), GASNETI_ARG(a1)))
#define gasnet_AMRequestLongAsync3(d, h, s, n, t, a0, a1, a2) GASNETI_HERE(gasnet_AMRequestLongAsync3, (d, h, s, \
  n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2)))
#define gasnet_AMRequestLongAsync4(d, h, s, n, t, a0, a1, a2, a3) GASNETI_HERE(gasnet_AMRequestLongAsync4, (d, h, \
  s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3)))
#define gasnet_AMRequestLongAsync5(d, h, s, n, t, a0, a1, a2, a3, a4) GASNETI_HERE(gasnet_AMRequestLongAsync5, (d, \
  h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4)))
#define gasnet_AMRequestLongAsync6(d, h, s, n, t, a0, a1, a2, a3, a4, \
  a5) GASNETI_HERE(gasnet_AMRequestLongAsync6, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5)))
#define gasnet_AMRequestLongAsync7(d, h, s, n, t, a0, a1, a2, a3, a4, a5, \
  a6) GASNETI_HERE(gasnet_AMRequestLongAsync7, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6)))
#define gasnet_AMRequestLongAsync8(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, \
  a7) GASNETI_HERE(gasnet_AMRequestLongAsync8, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7)))
#define gasnet_AMRequestLongAsync9(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, \
  a8) GASNETI_HERE(gasnet_AMRequestLongAsync9, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8)))
#define gasnet_AMRequestLongAsync10(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, \
  a9) GASNETI_HERE(gasnet_AMRequestLongAsync10, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9)))
#define gasnet_AMRequestLongAsync11(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, \
  a10) GASNETI_HERE(gasnet_AMRequestLongAsync11, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), \
  GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), \
  GASNETI_ARG(a8), GASNETI_ARG(a9), GASNETI_ARG(a10)))
#define gasnet_AMRequestLongAsync12(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, \
  a11) GASNETI_HERE(gasnet_AMRequestLongAsync12, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), \
  GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), \
  GASNETI_ARG(a8), GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11)))
#define gasnet_AMRequestLongAsync13(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, \
  a12) GASNETI_HERE(gasnet_AMRequestLongAsync13, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), \
  GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), \
  GASNETI_ARG(a8), GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12)))
#define gasnet_AMRequestLongAsync14(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, \
  a13) GASNETI_HERE(gasnet_AMRequestLongAsync14, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), \
  GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), \
  GASNETI_ARG(a8), GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13)))
#define gasnet_AMRequestLongAsync15(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, \
  a14) GASNETI_HERE(gasnet_AMRequestLongAsync15, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), \
  GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), \
  GASNETI_ARG(a8), GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13), \
  GASNETI_ARG(a14)))
#define gasnet_AMRequestLongAsync16(d, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, \
  a14, a15) GASNETI_HERE(gasnet_AMRequestLongAsync16, (d, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), \
  GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), \
  GASNETI_ARG(a8), GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13), \
  GASNETI_ARG(a14), GASNETI_ARG(a15)))

#define gasnet_AMReplyShort1(k, h, a0) GASNETI_HERE(gasnet_AMReplyShort1, (k, h, GASNETI_ARG(a0)))
#define gasnet_AMReplyShort2(k, h, a0, a1) GASNETI_HERE(gasnet_AMReplyShort2, (k, h, GASNETI_ARG(a0), \
  GASNETI_ARG(a1)))
#define gasnet_AMReplyShort3(k, h, a0, a1, a2) GASNETI_HERE(gasnet_AMReplyShort3, (k, h, GASNETI_ARG(a0), \
  GASNETI_ARG(a1), GASNETI_ARG(a2)))
#define gasnet_AMReplyShort4(k, h, a0, a1, a2, a3) GASNETI_HERE(gasnet_AMReplyShort4, (k, h, GASNETI_ARG(a0), \
  GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3)))
#define gasnet_AMReplyShort5(k, h, a0, a1, a2, a3, a4) GASNETI_HERE(gasnet_AMReplyShort5, (k, h, GASNETI_ARG(a0), \
  GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4)))
#define gasnet_AMReplyShort6(k, h, a0, a1, a2, a3, a4, a5) GASNETI_HERE(gasnet_AMReplyShort6, (k, h, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5)))
#define gasnet_AMReplyShort7(k, h, a0, a1, a2, a3, a4, a5, a6) GASNETI_HERE(gasnet_AMReplyShort7, (k, h, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), \
  GASNETI_ARG(a6)))
#define gasnet_AMReplyShort8(k, h, a0, a1, a2, a3, a4, a5, a6, a7) GASNETI_HERE(gasnet_AMReplyShort8, (k, h, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), \
  GASNETI_ARG(a6), GASNETI_ARG(a7)))
#define gasnet_AMReplyShort9(k, h, a0, a1, a2, a3, a4, a5, a6, a7, a8) GASNETI_HERE(gasnet_AMReplyShort9, (k, h, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), \
  GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8)))
#define gasnet_AMReplyShort10(k, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, \
  a9) GASNETI_HERE(gasnet_AMReplyShort10, (k, h, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9)))
#define gasnet_AMReplyShort11(k, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, \
  a10) GASNETI_HERE(gasnet_AMReplyShort11, (k, h, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10)))
#define gasnet_AMReplyShort12(k, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, \
  a11) GASNETI_HERE(gasnet_AMReplyShort12, (k, h, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11)))
#define gasnet_AMReplyShort13(k, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, \
  a12) GASNETI_HERE(gasnet_AMReplyShort13, (k, h, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12)))
#define gasnet_AMReplyShort14(k, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, \
  a13) GASNETI_HERE(gasnet_AMReplyShort14, (k, h, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13)))
#define gasnet_AMReplyShort15(k, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, \
  a14) GASNETI_HERE(gasnet_AMReplyShort15, (k, h, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13), GASNETI_ARG(a14)))
#define gasnet_AMReplyShort16(k, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, \
  a15) GASNETI_HERE(gasnet_AMReplyShort16, (k, h, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13), GASNETI_ARG(a14), \
  GASNETI_ARG(a15)))

#define gasnet_AMReplyMedium1(k, h, s, n, a0) GASNETI_HERE(gasnet_AMReplyMedium1, (k, h, s, n, GASNETI_ARG(a0)))
#define gasnet_AMReplyMedium2(k, h, s, n, a0, a1) GASNETI_HERE(gasnet_AMReplyMedium2, (k, h, s, n, \
  GASNETI_ARG(a0), GASNETI_ARG(a1)))
#define gasnet_AMReplyMedium3(k, h, s, n, a0, a1, a2) GASNETI_HERE(gasnet_AMReplyMedium3, (k, h, s, n, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2)))
#define gasnet_AMReplyMedium4(k, h, s, n, a0, a1, a2, a3) GASNETI_HERE(gasnet_AMReplyMedium4, (k, h, s, n, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3)))
#define gasnet_AMReplyMedium5(k, h, s, n, a0, a1, a2, a3, a4) GASNETI_HERE(gasnet_AMReplyMedium5, (k, h, s, n, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4)))
#define gasnet_AMReplyMedium6(k, h, s, n, a0, a1, a2, a3, a4, a5) GASNETI_HERE(gasnet_AMReplyMedium6, (k, h, s, n, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5)))
#define gasnet_AMReplyMedium7(k, h, s, n, a0, a1, a2, a3, a4, a5, a6) GASNETI_HERE(gasnet_AMReplyMedium7, (k, h, \
  s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), \
  GASNETI_ARG(a6)))
#define gasnet_AMReplyMedium8(k, h, s, n, a0, a1, a2, a3, a4, a5, a6, a7) GASNETI_HERE(gasnet_AMReplyMedium8, (k, \
  h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), \
  GASNETI_ARG(a6), GASNETI_ARG(a7)))
#define gasnet_AMReplyMedium9(k, h, s, n, a0, a1, a2, a3, a4, a5, a6, a7, \
  a8) GASNETI_HERE(gasnet_AMReplyMedium9, (k, h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8)))
#define gasnet_AMReplyMedium10(k, h, s, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, \
  a9) GASNETI_HERE(gasnet_AMReplyMedium10, (k, h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9)))
#define gasnet_AMReplyMedium11(k, h, s, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, \
  a10) GASNETI_HERE(gasnet_AMReplyMedium11, (k, h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10)))
#define gasnet_AMReplyMedium12(k, h, s, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, \
  a11) GASNETI_HERE(gasnet_AMReplyMedium12, (k, h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11)))
#define gasnet_AMReplyMedium13(k, h, s, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, \
  a12) GASNETI_HERE(gasnet_AMReplyMedium13, (k, h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12)))
#define gasnet_AMReplyMedium14(k, h, s, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, \
  a13) GASNETI_HERE(gasnet_AMReplyMedium14, (k, h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13)))
#define gasnet_AMReplyMedium15(k, h, s, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, \
  a14) GASNETI_HERE(gasnet_AMReplyMedium15, (k, h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13), GASNETI_ARG(a14)))
#define gasnet_AMReplyMedium16(k, h, s, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, \
  a15) GASNETI_HERE(gasnet_AMReplyMedium16, (k, h, s, n, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13), GASNETI_ARG(a14), \
  GASNETI_ARG(a15)))

#define gasnet_AMReplyLong1(k, h, s, n, t, a0) GASNETI_HERE(gasnet_AMReplyLong1, (k, h, s, n, t, GASNETI_ARG(a0)))
#define gasnet_AMReplyLong2(k, h, s, n, t, a0, a1) GASNETI_HERE(gasnet_AMReplyLong2, (k, h, s, n, t, \
  GASNETI_ARG(a0), GASNETI_ARG(a1)))
#define gasnet_AMReplyLong3(k, h, s, n, t, a0, a1, a2) GASNETI_HERE(gasnet_AMReplyLong3, (k, h, s, n, t, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2)))
#define gasnet_AMReplyLong4(k, h, s, n, t, a0, a1, a2, a3) GASNETI_HERE(gasnet_AMReplyLong4, (k, h, s, n, t, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3)))
#define gasnet_AMReplyLong5(k, h, s, n, t, a0, a1, a2, a3, a4) GASNETI_HERE(gasnet_AMReplyLong5, (k, h, s, n, t, \
  GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4)))
#define gasnet_AMReplyLong6(k, h, s, n, t, a0, a1, a2, a3, a4, a5) GASNETI_HERE(gasnet_AMReplyLong6, (k, h, s, n, \
  t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5)))
#define gasnet_AMReplyLong7(k, h, s, n, t, a0, a1, a2, a3, a4, a5, a6) GASNETI_HERE(gasnet_AMReplyLong7, (k, h, s, \
  n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), \
  GASNETI_ARG(a6)))
#define gasnet_AMReplyLong8(k, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7) GASNETI_HERE(gasnet_AMReplyLong8, (k, \
  h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), GASNETI_ARG(a3), GASNETI_ARG(a4), \
  GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7)))
#define gasnet_AMReplyLong9(k, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, \
  a8) GASNETI_HERE(gasnet_AMReplyLong9, (k, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8)))
#define gasnet_AMReplyLong10(k, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, \
  a9) GASNETI_HERE(gasnet_AMReplyLong10, (k, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9)))
#define gasnet_AMReplyLong11(k, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, \
  a10) GASNETI_HERE(gasnet_AMReplyLong11, (k, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10)))
#define gasnet_AMReplyLong12(k, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, \
  a11) GASNETI_HERE(gasnet_AMReplyLong12, (k, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11)))
#define gasnet_AMReplyLong13(k, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, \
  a12) GASNETI_HERE(gasnet_AMReplyLong13, (k, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12)))
#define gasnet_AMReplyLong14(k, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, \
  a13) GASNETI_HERE(gasnet_AMReplyLong14, (k, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13)))
#define gasnet_AMReplyLong15(k, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, \
  a14) GASNETI_HERE(gasnet_AMReplyLong15, (k, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13), GASNETI_ARG(a14)))
#define gasnet_AMReplyLong16(k, h, s, n, t, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, \
  a15) GASNETI_HERE(gasnet_AMReplyLong16, (k, h, s, n, t, GASNETI_ARG(a0), GASNETI_ARG(a1), GASNETI_ARG(a2), \
  GASNETI_ARG(a3), GASNETI_ARG(a4), GASNETI_ARG(a5), GASNETI_ARG(a6), GASNETI_ARG(a7), GASNETI_ARG(a8), \
  GASNETI_ARG(a9), GASNETI_ARG(a10), GASNETI_ARG(a11), GASNETI_ARG(a12), GASNETI_ARG(a13), GASNETI_ARG(a14), \
  GASNETI_ARG(a15)))

#if GASNETI_VARIADIC_MACROS && !defined(GASNETI_INSIDE_LIBRARY)
#define gasnet_AMRequestShort(...) GASNETI_HERE(gasnet_AMRequestShort, (__VA_ARGS__))
#define gasnet_AMRequestMedium(...) GASNETI_HERE(gasnet_AMRequestMedium, (__VA_ARGS__))
#define gasnet_AMRequestLong(...) GASNETI_HERE(gasnet_AMRequestLong, (__VA_ARGS__))
#define gasnet_AMRequestLongAsync(...) GASNETI_HERE(gasnet_AMRequestLongAsync, (__VA_ARGS__))
#define gasnet_AMReplyShort(...) GASNETI_HERE(gasnet_AMReplyShort, (__VA_ARGS__))
#define gasnet_AMReplyMedium(...) GASNETI_HERE(gasnet_AMReplyMedium, (__VA_ARGS__))
#define gasnet_AMReplyLong(...) GASNETI_HERE(gasnet_AMReplyLong, (__VA_ARGS__))
#endif

#endif
