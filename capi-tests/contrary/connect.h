/* The habit of networks over TCP: the first message to a process makes a connection, which takes
 * a call there and another one here. Later messages wait for it, in order. */
#ifndef CONNECT_H
#define CONNECT_H

#include <stdint.h>

/* Most processes of a job with this habit. */
#define PROCESSES 256
/* The portal table entry, of the library below, of the messages that make connections. */
#define CONNECT_PT 61

/* A put or a get, with the addresses of the library below. */
struct connect_message {
    int get, ack;
    uint32_t md, nid, pid, pt;
    uint64_t local, length, match_bits, remote, hdr_data;
};

/* Makes the process ready for connections. BELOW_OK, or an error of below.h. */
int connect_open(void);
/* Accepts connections of others, and sends what waited for those that have been accepted. */
void connect_progress(void);
/* Sends a message, or keeps it until there is a connection. BELOW_OK, or an error of below.h. */
int connect_send(const struct connect_message *message);

#endif
