/* What contrary.c needs of libportals3, in types of neither: the two headers cannot be included
 * together. The lists below number errors, event kinds and options. */
#ifndef BELOW_H
#define BELOW_H

#include <stdint.h>

#define BELOW_ERRORS(X)                                                                                                      \
    X(OK) X(AC_INDEX_INVALID) X(EQ_DROPPED) X(EQ_EMPTY) X(EQ_INVALID) X(FAIL) X(HANDLE_INVALID) X(IFACE_INVALID)             \
    X(MD_ILLEGAL) X(MD_INVALID) X(MD_IN_USE) X(MD_NO_UPDATE) X(ME_INVALID) X(ME_IN_USE) X(ME_LIST_TOO_LONG) X(NI_INVALID)    \
    X(NO_INIT) X(NO_SPACE) X(PID_INVALID) X(PROCESS_INVALID) X(PT_FULL) X(PT_INDEX_INVALID) X(SEGV) X(SR_INDEX_INVALID)
#define BELOW_EVENTS(X)                                                                                                      \
    X(GET_START) X(GET_END) X(PUT_START) X(PUT_END) X(GETPUT_START) X(GETPUT_END) X(REPLY_START) X(REPLY_END) X(SEND_START)  \
    X(SEND_END) X(ACK) X(UNLINK)
#define BELOW_OPTIONS(X)                                                                                                     \
    X(OP_PUT) X(OP_GET) X(MANAGE_REMOTE) X(TRUNCATE) X(ACK_DISABLE) X(MAX_SIZE) X(EVENT_START_DISABLE) X(EVENT_END_DISABLE)

#define BELOW_ENUM(name) BELOW_##name,
#define BELOW_EVENT_ENUM(name) BELOW_EVENT_##name,
#define BELOW_OPTION_ENUM(name) BELOW_MD_##name,
enum { BELOW_ERRORS(BELOW_ENUM) BELOW_UNKNOWN };
enum { BELOW_EVENTS(BELOW_EVENT_ENUM) BELOW_EVENT_UNKNOWN };
/* Bits are 1 << these. */
enum { BELOW_OPTIONS(BELOW_OPTION_ENUM) BELOW_MD_UNKNOWN };

#define BELOW_NO_EQ UINT32_MAX

struct below_md {
    void *start;
    uint64_t length;
    int infinite;
    int threshold;
    uint64_t max_size;
    unsigned options;
    void *user_ptr;
    uint32_t eq;
};

struct below_event {
    int kind;
    uint32_t nid, pid;
    uint64_t match_bits, rlength, mlength, offset, hdr_data;
    void *start, *user_ptr;
    int failed;
};

/* mes, mds, eqs, pt_index: wanted, then granted. */
int below_open(int limits[4]);
int below_id(uint32_t *nid, uint32_t *pid);
uint64_t below_dropped(void);
/* where: 0 head of the list of pt, 1 tail of it, 2 before base. */
int below_me(int where, uint32_t pt, uint32_t base, uint64_t match_bits, uint64_t ignore_bits, int unlink, uint32_t *me);
int below_me_unlink(uint32_t me);
/* attached: to me; else bound. */
int below_md(int attached, uint32_t me, const struct below_md *md, int unlink, uint32_t *made);
int below_md_unlink(uint32_t md);
int below_eq(uint64_t count, uint32_t *eq);
int below_eq_free(uint32_t eq);
int below_eq_get(uint32_t eq, struct below_event *event);
int below_put(uint32_t md, uint64_t from, uint64_t length, int ack, uint32_t nid, uint32_t pid, uint32_t pt, uint64_t match_bits,
              uint64_t to, uint64_t hdr_data);
int below_get(uint32_t md, uint64_t to, uint64_t length, uint32_t nid, uint32_t pid, uint32_t pt, uint64_t match_bits,
              uint64_t from);

#endif
