/* wire_tcp: what TCP costs between two hosts, without any library. Round trips of a message and an
 * answer of 8 bytes, while the other process spins or sleeps in the system, and the bandwidth of a
 * window of messages that is answered once.
 *
 * usage: wire_tcp [options] [measurement ...]      options: see figures.h; hosts: see wire.h */
#include "wire.h"

#include <poll.h>

static void trip(size_t n, long times) {
    char answer[WIRE_ANSWER];
    wire_buffer[0] = WIRE_MORE;
    while (times--) {
        wire_send(wire_buffer, n);
        wire_receive(answer, sizeof answer);
    }
}
static void last_trip(size_t n) {
    wire_buffer[0] = WIRE_LAST;
    wire_send(wire_buffer, n);
}
static void answer_trip(size_t n) {
    static const char answer[WIRE_ANSWER];
    for (;;) {
        wire_receive(wire_buffer, n);
        if (wire_buffer[0] == WIRE_LAST) return;
        wire_send(answer, sizeof answer);
    }
}

/* Sleeps until something has arrived. */
static void answer_asleep(size_t n) {
    static const char answer[WIRE_ANSWER];
    for (;;) {
        struct pollfd entry = {wire_socket, POLLIN, 0};
        if (poll(&entry, 1, -1) < 0 && errno != EINTR) wire_fail("poll");
        wire_receive(wire_buffer, n);
        if (wire_buffer[0] == WIRE_LAST) return;
        wire_send(answer, sizeof answer);
    }
}

static void window(size_t n, long times) {
    char answer[WIRE_ANSWER];
    int i;
    wire_buffer[0] = WIRE_MORE;
    while (times--) {
        for (i = 0; i < BENCH_WINDOW; i++) wire_send(wire_buffer, n);
        wire_receive(answer, sizeof answer);
    }
}
static void answer_window(size_t n) {
    static const char answer[WIRE_ANSWER];
    int seen;
    for (seen = 1;; seen++) {
        wire_receive(wire_buffer, n);
        if (wire_buffer[0] == WIRE_LAST) return;
        if (seen % BENCH_WINDOW == 0) wire_send(answer, sizeof answer);
    }
}

int main(int argc, char **argv) {
    size_t n;
    if (!bench_options(argc, argv)) return 2;
    wire_init(argc, argv);
    if (bench_wants("wire_trip", "Round trip (us)"))
        for (n = bench_min; n <= bench_max; n *= 2) bench_row(n, wire_alone(trip, answer_trip, last_trip, n) / 1000);
    if (bench_wants("wire_asleep", "Round trip (us)")) bench_row(8, wire_alone(trip, answer_asleep, last_trip, 8) / 1000);
    if (bench_wants("wire_bandwidth", "Bandwidth (MB/s)"))
        for (n = bench_min; n <= bench_max; n *= 2)
            bench_row(n, (double)n * BENCH_WINDOW * 1000 / wire_alone(window, answer_window, last_trip, n));
    return wire_end();
}
