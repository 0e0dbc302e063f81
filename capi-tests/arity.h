/* Lists of 0 to 16 active message arguments. They serve programs that have one handler or call per
 * number of arguments: testcore4 (and so testcore5) and testgasnet. Each list begins with its
 * comma, so that it can follow other arguments:
 *   ARITY_PARAMS_n      parameters of a handler, a0 to a(n-1)
 *   ARITY_NAMES_n       the same as an expression list
 *   ARITY_VALUES_n(v)   the first n elements of the array v
 *   ARITIES(X)          X(0) X(1) ... X(16)
 *   ARITY_CALL(f, ...)  calls f, possibly a macro that counts its arguments, with such lists */
#ifndef CAPI_TESTS_ARITY_H
#define CAPI_TESTS_ARITY_H

#define ARITY_MAX 16
#define ARITY_CALL(f, ...) f(__VA_ARGS__)
#define ARITIES(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)

#define ARITY_PARAMS_0
#define ARITY_PARAMS_1 ARITY_PARAMS_0, gasnet_handlerarg_t a0
#define ARITY_PARAMS_2 ARITY_PARAMS_1, gasnet_handlerarg_t a1
#define ARITY_PARAMS_3 ARITY_PARAMS_2, gasnet_handlerarg_t a2
#define ARITY_PARAMS_4 ARITY_PARAMS_3, gasnet_handlerarg_t a3
#define ARITY_PARAMS_5 ARITY_PARAMS_4, gasnet_handlerarg_t a4
#define ARITY_PARAMS_6 ARITY_PARAMS_5, gasnet_handlerarg_t a5
#define ARITY_PARAMS_7 ARITY_PARAMS_6, gasnet_handlerarg_t a6
#define ARITY_PARAMS_8 ARITY_PARAMS_7, gasnet_handlerarg_t a7
#define ARITY_PARAMS_9 ARITY_PARAMS_8, gasnet_handlerarg_t a8
#define ARITY_PARAMS_10 ARITY_PARAMS_9, gasnet_handlerarg_t a9
#define ARITY_PARAMS_11 ARITY_PARAMS_10, gasnet_handlerarg_t a10
#define ARITY_PARAMS_12 ARITY_PARAMS_11, gasnet_handlerarg_t a11
#define ARITY_PARAMS_13 ARITY_PARAMS_12, gasnet_handlerarg_t a12
#define ARITY_PARAMS_14 ARITY_PARAMS_13, gasnet_handlerarg_t a13
#define ARITY_PARAMS_15 ARITY_PARAMS_14, gasnet_handlerarg_t a14
#define ARITY_PARAMS_16 ARITY_PARAMS_15, gasnet_handlerarg_t a15

#define ARITY_NAMES_0
#define ARITY_NAMES_1 ARITY_NAMES_0, a0
#define ARITY_NAMES_2 ARITY_NAMES_1, a1
#define ARITY_NAMES_3 ARITY_NAMES_2, a2
#define ARITY_NAMES_4 ARITY_NAMES_3, a3
#define ARITY_NAMES_5 ARITY_NAMES_4, a4
#define ARITY_NAMES_6 ARITY_NAMES_5, a5
#define ARITY_NAMES_7 ARITY_NAMES_6, a6
#define ARITY_NAMES_8 ARITY_NAMES_7, a7
#define ARITY_NAMES_9 ARITY_NAMES_8, a8
#define ARITY_NAMES_10 ARITY_NAMES_9, a9
#define ARITY_NAMES_11 ARITY_NAMES_10, a10
#define ARITY_NAMES_12 ARITY_NAMES_11, a11
#define ARITY_NAMES_13 ARITY_NAMES_12, a12
#define ARITY_NAMES_14 ARITY_NAMES_13, a13
#define ARITY_NAMES_15 ARITY_NAMES_14, a14
#define ARITY_NAMES_16 ARITY_NAMES_15, a15

#define ARITY_VALUES_0(v)
#define ARITY_VALUES_1(v) ARITY_VALUES_0(v), (v)[0]
#define ARITY_VALUES_2(v) ARITY_VALUES_1(v), (v)[1]
#define ARITY_VALUES_3(v) ARITY_VALUES_2(v), (v)[2]
#define ARITY_VALUES_4(v) ARITY_VALUES_3(v), (v)[3]
#define ARITY_VALUES_5(v) ARITY_VALUES_4(v), (v)[4]
#define ARITY_VALUES_6(v) ARITY_VALUES_5(v), (v)[5]
#define ARITY_VALUES_7(v) ARITY_VALUES_6(v), (v)[6]
#define ARITY_VALUES_8(v) ARITY_VALUES_7(v), (v)[7]
#define ARITY_VALUES_9(v) ARITY_VALUES_8(v), (v)[8]
#define ARITY_VALUES_10(v) ARITY_VALUES_9(v), (v)[9]
#define ARITY_VALUES_11(v) ARITY_VALUES_10(v), (v)[10]
#define ARITY_VALUES_12(v) ARITY_VALUES_11(v), (v)[11]
#define ARITY_VALUES_13(v) ARITY_VALUES_12(v), (v)[12]
#define ARITY_VALUES_14(v) ARITY_VALUES_13(v), (v)[13]
#define ARITY_VALUES_15(v) ARITY_VALUES_14(v), (v)[14]
#define ARITY_VALUES_16(v) ARITY_VALUES_15(v), (v)[15]

#endif
