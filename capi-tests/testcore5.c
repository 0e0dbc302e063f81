/* testcore5: testcore4 with the variadic calls, which take the number of arguments as an
 * argument. */
/* faults: flip_am flip_arg drop_am */
/* args: 3 32K */
/* nodes: any */
/* threads: both */
#define TEST_NAME "testcore5"
#define REQUEST_SHORT(n, node, h) gasnet_AMRequestShort(node, h, n ARITY_VALUES_##n(v))
#define REQUEST_MEDIUM(n, node, h, src, len) gasnet_AMRequestMedium(node, h, src, len, n ARITY_VALUES_##n(v))
#define REQUEST_LONG(n, node, h, src, len, to) gasnet_AMRequestLong(node, h, src, len, to, n ARITY_VALUES_##n(v))
#define REQUEST_ASYNC(n, node, h, src, len, to) gasnet_AMRequestLongAsync(node, h, src, len, to, n ARITY_VALUES_##n(v))
#define REPLY_SHORT(n, token, h) gasnet_AMReplyShort(token, h, n ARITY_VALUES_##n(v))
#define REPLY_MEDIUM(n, token, h, src, len) gasnet_AMReplyMedium(token, h, src, len, n ARITY_VALUES_##n(v))
#define REPLY_LONG(n, token, h, src, len, to) gasnet_AMReplyLong(token, h, src, len, to, n ARITY_VALUES_##n(v))
#include "testcore4.c"
