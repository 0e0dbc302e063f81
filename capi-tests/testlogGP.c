/* testlogGP: the LogGP parameters of puts and gets: overheads, latency, gaps. */
/* faults: flip_put flip_get skip_sync:portals */
/* args: 200 0 8 1024 16384 */
/* nodes: any */
/* threads: both */
#include "check.h"

#define USAGE "[iterations 1000] [polls between messages 0] [sizes 8 65536 ...]"
#define SIZES 16

static gasnet_node_t peer;
static char *local, *mine, *remote;
static int iters, polls, sender;
static gasnet_handle_t *handles;

/* One kind of operation and size; times in microseconds. */
struct logp {
    size_t size;
    double eel; /* from start to completion, one at a time */
    double os;  /* to start one that is finished later */
    double or_; /* to finish one after it had time to complete */
    double g;   /* between starts, all in flight */
};

static gasnet_handle_t start(int is_put, size_t size) {
    return is_put ? gasnet_put_nb_bulk(peer, remote, local, size) : gasnet_get_nb_bulk(local, peer, remote, size);
}

/* Time until an operation completes; the library is called meanwhile only if the user says so. */
static void pass(double us) {
    double until = check_now() + us * 1000;
    int i;
    for (i = 0; i < polls; i++) gasnet_AMPoll();
    while (check_now() < until) {
    }
}

static void measure(int is_put, struct logp *p) {
    uint64_t seed = check_mix(p->size * 2 + (size_t)is_put);
    double t, os = 0, or_ = 0;
    int i;

    check_alive(is_put ? "puts" : "gets");
    memset(is_put ? mine : local, 0, p->size);
    check_fill(is_put ? local : mine, p->size, seed);
    check_barrier();
    if (sender) {
        gasnet_wait_syncnb(start(is_put, p->size));
        if (!is_put) {
            char *outside = (char *)calloc(p->size, 1);
            check_same(local, p->size, seed, "a get");
            gasnet_wait_syncnb(gasnet_get_nb_bulk(outside, peer, remote, p->size));
            check_same(outside, p->size, seed, "a get to memory outside the segment");
            free(outside);
        }

        t = check_now();
        for (i = 0; i < iters; i++) gasnet_wait_syncnb(start(is_put, p->size));
        p->eel = (check_now() - t) / iters / 1000;

        for (i = 0; i < iters; i++) {
            gasnet_handle_t h;
            double a = check_now(), b, c;
            h = start(is_put, p->size);
            b = check_now();
            pass(2 * p->eel);
            c = check_now();
            gasnet_wait_syncnb(h);
            os += b - a;
            or_ += check_now() - c;
        }
        p->os = os / iters / 1000;
        p->or_ = or_ / iters / 1000;

        t = check_now();
        for (i = 0; i < iters; i++) {
            int k;
            handles[i] = start(is_put, p->size);
            for (k = 0; k < polls; k++) gasnet_AMPoll();
        }
        gasnet_wait_syncnb_all(handles, (size_t)iters);
        p->g = (check_now() - t) / iters / 1000;
    }
    check_barrier();
    if (is_put ? !sender || peer == gasnet_mynode() : sender)
        check_same(is_put ? mine : local, p->size, seed, is_put ? "a put" : "a get");
    check_barrier();
}

static void report(const char *kind, const struct logp *all, int n) {
    int i;
    if (gasnet_mynode() != 0) return;
    for (i = 0; i < n; i++) {
        double latency = all[i].eel - all[i].os - all[i].or_;
        printf("%-4s %9lu %11.3f %11.3f %11.3f %11.3f %11.3f\n", kind, (unsigned long)all[i].size, all[i].eel,
               all[i].os, all[i].or_, latency > 0 ? latency : 0, all[i].g);
    }
    if (n > 1 && all[n - 1].size > all[0].size)
        printf("%-4s G = %.4f ns per byte\n", kind,
               (all[n - 1].g - all[0].g) * 1000 / (double)(all[n - 1].size - all[0].size));
}

int main(int argc, char **argv) {
    struct logp put[SIZES], get[SIZES];
    size_t max = 0;
    int n = 0, i;

    check_init("testlogGP", &argc, &argv);
    if (argc > 3 + SIZES) check_usage(USAGE);
    iters = (int)check_arg(argc, argv, 1, 1000);
    polls = (int)check_arg(argc, argv, 2, 0);
    memset(put, 0, sizeof put);
    for (i = 3; i < argc; i++) put[n++].size = check_arg(argc, argv, i, 0);
    if (n == 0) {
        put[n++].size = 8;
        put[n++].size = 65536;
    }
    for (i = 0; i < n; i++) {
        if (put[i].size < 1) check_usage(USAGE);
        if (put[i].size > max) max = put[i].size;
    }
    if (iters < 1 || polls < 0) check_usage(USAGE);
    memcpy(get, put, sizeof put);
    check_attach(NULL, 0, 2 * check_round(max));
    peer = check_peer();
    sender = gasnet_mynode() % 2 == 0;
    mine = check_at(gasnet_mynode(), 0);
    remote = check_at(peer, 0);
    local = check_at(gasnet_mynode(), check_round(max));
    handles = (gasnet_handle_t *)calloc((size_t)iters, sizeof *handles);

    for (i = 0; i < n; i++) measure(1, &put[i]);
    for (i = 0; i < n; i++) measure(0, &get[i]);
    if (gasnet_mynode() == 0)
        printf("testlogGP: us, %d processes, %d iterations; EEL = os + L + or, g = gap with all in flight\n"
               "%-4s %9s %11s %11s %11s %11s %11s\n", (int)gasnet_nodes(), iters, "", "bytes", "EEL", "os", "or", "L",
               "g");
    report("put", put, n);
    report("get", get, n);
    check_done();
}
