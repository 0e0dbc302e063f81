/* Two processes on two hosts, the first two of the variable HOSTS, for measuring what a wire costs
 * without GASNet. The first process starts the second by the command GASNET_SSH_CMD, and keeps a
 * TCP connection to it. */
#ifndef WIRE_H
#define WIRE_H

#include "figures.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* What the first byte of a message says. */
#define WIRE_MORE 0
#define WIRE_LAST 1
/* The most bytes that one call of the system takes. With longer calls 1 MiB took up to three times
 * as long. */
#define WIRE_PIECE ((size_t)256 << 10)
/* How long the second process may take to connect, and how often is looked whether its command has
 * ended. */
#define WIRE_CONNECT_MS 30000
#define WIRE_LOOK_MS 100
/* The bytes of an answer. */
#define WIRE_ANSWER 8

static int wire_socket;
static pid_t wire_child;
static char *wire_buffer; /* bench_max bytes */

static inline void wire_fail(const char *what) {
    fprintf(stderr, "process %d: %s: %s\n", bench_me, what, strerror(errno));
    exit(1);
}

/* Both spin, as a library that polls does. */
static inline void wire_send(const char *from, size_t n) {
    while (n > 0) {
        ssize_t done = write(wire_socket, from, n < WIRE_PIECE ? n : WIRE_PIECE);
        if (done < 0 && errno != EAGAIN && errno != EINTR) wire_fail("write");
        if (done > 0) from += done, n -= (size_t)done;
    }
}
static inline void wire_receive(char *to, size_t n) {
    while (n > 0) {
        ssize_t done = read(wire_socket, to, n);
        if (done == 0) errno = ECONNRESET;
        if (done == 0 || (done < 0 && errno != EAGAIN && errno != EINTR)) wire_fail("read");
        if (done > 0) to += done, n -= (size_t)done;
    }
}

static inline void bench_barrier(void) {
    char byte = 0;
    wire_send(&byte, 1);
    wire_receive(&byte, 1);
}

/* The name at this place of the list in HOSTS. */
static inline void wire_host(int place, char *name, size_t room) {
    const char *list = getenv("HOSTS");
    size_t n = 0;
    while (list && place > 0)
        if ((list = strchr(list, ',')) != NULL) list++, place--;
    if (list) n = strcspn(list, ",");
    if (n == 0 || n >= room) {
        fprintf(stderr, "HOSTS must name two hosts: HOSTS=host1,host2\n");
        exit(2);
    }
    memcpy(name, list, n);
    name[n] = 0;
}

/* Starts this program again on the second host, which connects to the address in the variable
 * WIRE_TO. */
static inline void wire_start(int argc, char **argv, const char *to) {
    char host[256], folder[4096], words[8192];
    const char *command = getenv("GASNET_SSH_CMD");
    int used, i;
    wire_host(1, host, sizeof host);
    if (!getcwd(folder, sizeof folder)) wire_fail("getcwd");
    used = snprintf(words, sizeof words, "exec %s %s 'cd %s && WIRE_TO=%s exec", command ? command : "ssh", host, folder, to);
    /* Words of this folder's programs have no quotes. */
    for (i = 0; i < argc && used < (int)sizeof words; i++)
        used += snprintf(words + used, sizeof words - (size_t)used, " \"%s\"", argv[i]);
    if (used + 2 > (int)sizeof words) wire_fail("the command is too long");
    strcat(words, "'");
    wire_child = fork();
    if (wire_child < 0) wire_fail("fork");
    if (wire_child > 0) return;
    execl("/bin/sh", "sh", "-c", words, (char *)NULL);
    wire_fail("/bin/sh");
}

/* The connection of the second process. The end of the command that starts it, or a long wait,
 * ends this process. */
static inline int wire_accept(int listening) {
    struct pollfd entry = {listening, POLLIN, 0};
    int waited, status, ready, taken;
    for (waited = 0; waited < WIRE_CONNECT_MS; waited += WIRE_LOOK_MS) {
        ready = poll(&entry, 1, WIRE_LOOK_MS);
        if (ready < 0 && errno != EINTR) wire_fail("poll");
        if (ready > 0) {
            taken = accept(listening, NULL, NULL);
            if (taken < 0) wire_fail("accept");
            return taken;
        }
        if (waitpid(wire_child, &status, WNOHANG) == wire_child) {
            fprintf(stderr, "the command that starts the second process has ended before it connected\n");
            exit(1);
        }
    }
    fprintf(stderr, "the second process did not connect within %d s\n", WIRE_CONNECT_MS / 1000);
    kill(wire_child, SIGTERM);
    exit(1);
}

static inline void wire_connect(int argc, char **argv) {
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    int one = 1, listening;
    unsigned port;
    const char *to = getenv("WIRE_TO");
    char text[256], name[256];
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    if (to) {
        bench_me = 1;
        if (sscanf(to, "%255[^:]:%u", text, &port) != 2 || inet_pton(AF_INET, text, &address.sin_addr) != 1) wire_fail("WIRE_TO");
        address.sin_port = htons((uint16_t)port);
        wire_socket = socket(AF_INET, SOCK_STREAM, 0);
        if (wire_socket < 0 || connect(wire_socket, (struct sockaddr *)&address, length)) wire_fail("connect");
    } else {
        struct addrinfo hints, *found;
        memset(&hints, 0, sizeof hints);
        hints.ai_family = AF_INET;
        wire_host(0, name, sizeof name);
        if (getaddrinfo(name, NULL, &hints, &found)) wire_fail(name);
        address.sin_addr = ((struct sockaddr_in *)(void *)found->ai_addr)->sin_addr;
        freeaddrinfo(found);
        listening = socket(AF_INET, SOCK_STREAM, 0);
        if (listening < 0 || bind(listening, (struct sockaddr *)&address, length) || listen(listening, 1) ||
            getsockname(listening, (struct sockaddr *)&address, &length))
            wire_fail("listen");
        if (!inet_ntop(AF_INET, &address.sin_addr, name, sizeof name)) wire_fail("inet_ntop");
        snprintf(text, sizeof text, "%.64s:%u", name, (unsigned)ntohs(address.sin_port));
        wire_start(argc, argv, text);
        wire_socket = wire_accept(listening);
        close(listening);
    }
    if (setsockopt(wire_socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one)) wire_fail("TCP_NODELAY");
    if (fcntl(wire_socket, F_SETFL, O_NONBLOCK)) wire_fail("O_NONBLOCK");
}

/* Connects both processes. The options were read before. */
static inline void wire_init(int argc, char **argv) {
    bench_nodes = 2;
    wire_buffer = (char *)calloc(1, bench_max);
    if (!wire_buffer) wire_fail("calloc");
    wire_connect(argc, argv);
    if (bench_pinned) bench_pin(bench_me);
    bench_barrier();
}

/* The time of one repetition while the other process answers, and the last message to it. */
static inline double wire_alone(void (*run)(size_t size, long times), void (*answer)(size_t size), void (*last)(size_t size),
                                size_t n) {
    double ns = 0;
    bench_barrier();
    if (bench_me == 0) {
        ns = bench_timed(run, n);
        last(n);
    } else answer(n);
    bench_barrier();
    return ns;
}

/* Ends both processes. */
static inline int wire_end(void) {
    int status = 0;
    bench_barrier();
    if (bench_me == 0 && (waitpid(wire_child, &status, 0) != wire_child || status != 0)) {
        fprintf(stderr, "the process on the other host has failed\n");
        return 1;
    }
    return 0;
}

#endif
