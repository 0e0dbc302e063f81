/* Connections over below.h: a HELLO to the target, which answers with WELCOME in its next call. */
#include "connect.h"
#include "below.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELLO = 1, WELCOME = 2 };
/* Each process sends this one a HELLO and a WELCOME at most. */
enum { EVENTS = 2 * PROCESSES };

/* A message that waits for a connection. */
struct waiting {
    struct waiting *next;
    struct connect_message message;
};

/* By process id: those of a job of libportals3 are its ranks. */
static struct {
    enum { NONE, ASKED, OPEN } state;
    struct waiting *first, **end;
} peers[PROCESSES];

static uint32_t queue, source;
static int lock, is_open;

/* Ends the process, which no caller can report an error to, unless the call below succeeded. */
static void must(int rc, const char *what) {
    if (rc != BELOW_OK) {
        fprintf(stderr, "libportals-contrary: %s failed: %d\n", what, rc);
        abort();
    }
}

static void enter(void) {
    while (__sync_lock_test_and_set(&lock, 1)) {
    }
}

static void leave(void) {
    __sync_lock_release(&lock);
}

int connect_open(void) {
    struct below_md md;
    uint32_t me, made;
    int rc;
    if (is_open)
        return BELOW_OK;
    rc = below_eq(EVENTS, &queue);
    if (rc != BELOW_OK)
        return rc;
    memset(&md, 0, sizeof md);
    md.infinite = 1;
    md.eq = BELOW_NO_EQ;
    rc = below_md(0, 0, &md, 0, &source);
    md.options = 1U << BELOW_MD_OP_PUT | 1U << BELOW_MD_MANAGE_REMOTE | 1U << BELOW_MD_ACK_DISABLE |
                 1U << BELOW_MD_EVENT_START_DISABLE;
    md.eq = queue;
    if (rc == BELOW_OK)
        rc = below_me(0, CONNECT_PT, 0, 0, ~(uint64_t)0, 0, &me);
    if (rc == BELOW_OK)
        rc = below_md(1, me, &md, 0, &made);
    is_open = rc == BELOW_OK;
    return rc;
}

static int pass_on(const struct connect_message *m) {
    if (m->get)
        return below_get(m->md, m->local, m->length, m->nid, m->pid, m->pt, m->match_bits, m->remote);
    return below_put(m->md, m->local, m->length, m->ack, m->nid, m->pid, m->pt, m->match_bits, m->remote, m->hdr_data);
}

static int say(int what, uint32_t nid, uint32_t pid) {
    return below_put(source, 0, 0, 0, nid, pid, CONNECT_PT, what, 0, 0);
}

void connect_progress(void) {
    struct below_event e;
    if (!is_open)
        return;
    enter();
    while (below_eq_get(queue, &e) == BELOW_OK) {
        if (e.pid >= PROCESSES || e.kind != BELOW_EVENT_PUT_END)
            abort();
        if (e.match_bits == HELLO)
            must(say(WELCOME, e.nid, e.pid), "accepting a connection");
        if (e.match_bits == WELCOME || peers[e.pid].state == NONE) {
            peers[e.pid].state = OPEN;
            while (peers[e.pid].first != NULL) {
                struct waiting *first = peers[e.pid].first;
                peers[e.pid].first = first->next;
                must(pass_on(&first->message), "a message that waited for a connection");
                free(first);
            }
        }
    }
    leave();
}

int connect_send(const struct connect_message *message) {
    struct waiting *waiting;
    int rc = BELOW_OK;
    if (!is_open || message->pid >= PROCESSES)
        return pass_on(message);
    enter();
    if (peers[message->pid].state == OPEN) {
        rc = pass_on(message);
    } else {
        if (peers[message->pid].state == NONE) {
            peers[message->pid].state = ASKED;
            peers[message->pid].end = &peers[message->pid].first;
            rc = say(HELLO, message->nid, message->pid);
        }
        waiting = calloc(1, sizeof *waiting);
        if (waiting == NULL)
            abort();
        waiting->message = *message;
        *peers[message->pid].end = waiting;
        peers[message->pid].end = &waiting->next;
    }
    leave();
    return rc;
}
