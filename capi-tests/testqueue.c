/* testqueue: many operations of every kind in flight at once, and the time to start and to
 * finish them. One thread has up to 65,535 in flight; in PAR it is the 200th thread of its
 * process. */
/* faults: flip_put flip_get flip_am skip_sync:portals drop_am drop_op:portals */
/* args: 1 256 4096 */
/* nodes: any */
/* threads: both */
#include "check.h"

#define USAGE "[-in|-out] [iterations 1] [largest depth 256] [largest size 64K] [operations in flight 65535]"
#define H_MEDIUM 201
#define H_LONG 202
#define H_BACK 203

/* The number of the thread that has all its operations in flight. */
#define THREAD_NUMBER 200

enum kind { PUT_NB, GET_NB, PUT_NBI, GET_NBI, PUT_VAL, GET_VAL, MEDIUM, LONG, KINDS };
static const char *const kinds[] = {"put_nb",     "get_nb",     "put_nbi", "get_nbi",
                                    "put_nb_val", "get_nb_val", "Medium",  "Long"};

static size_t max = 64 * 1024, in_flight = 65535;
static gasnet_node_t peer;
static char *local, *mine, *remote;
static gasnett_atomic_t answers = gasnett_atomic_init(0), requests = gasnett_atomic_init(0);

static void medium_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t pattern) {
    check_same(buf, n, (uint64_t)(uint32_t)pattern, "a Medium");
    gasnett_atomic_increment(&requests, 0);
    CHECK_OK(gasnet_AMReplyShort0(token, H_BACK));
}

static void long_h(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t pattern) {
    check_same(buf, n, (uint64_t)(uint32_t)pattern, "a Long");
    gasnett_atomic_increment(&requests, 0);
    CHECK_OK(gasnet_AMReplyShort0(token, H_BACK));
}

static void back_h(gasnet_token_t token) {
    (void)token;
    gasnett_atomic_increment(&answers, 0);
}

/* `depth` operations of `size` bytes, all started before the first sync; the times go to us[0]
 * and us[1]. */
static void queue(enum kind kind, int depth, size_t size, int round, double *us) {
    gasnet_handle_t *handles = (gasnet_handle_t *)calloc((size_t)depth, sizeof *handles);
    gasnet_valget_handle_t *values = (gasnet_valget_handle_t *)calloc((size_t)depth, sizeof *values);
    uint32_t pattern = (uint32_t)check_mix(size * 1000 + (size_t)round) | 1;
    int is_get = kind == GET_NB || kind == GET_NBI || kind == GET_VAL, i;
    double t[3];

    gasnett_atomic_set(&answers, 0, 0);
    check_fill(is_get ? mine : local, size, pattern);
    memset(is_get ? local : mine, 0, size);
    check_barrier();
    t[0] = check_now();
    for (i = 0; i < depth; i++) {
        switch (kind) {
            case PUT_NB: handles[i] = gasnet_put_nb_bulk(peer, remote, local, size); break;
            case GET_NB: handles[i] = gasnet_get_nb_bulk(local, peer, remote, size); break;
            case PUT_NBI: gasnet_put_nbi_bulk(peer, remote, local, size); break;
            case GET_NBI: gasnet_get_nbi_bulk(local, peer, remote, size); break;
            case PUT_VAL: {
                gasnet_register_value_t value;
                memcpy(&value, local, sizeof value);
                handles[i] = gasnet_put_nb_val(peer, remote, value, sizeof value);
                break;
            }
            case GET_VAL: values[i] = gasnet_get_nb_val(peer, remote, sizeof(gasnet_register_value_t)); break;
            case MEDIUM:
                CHECK_OK(gasnet_AMRequestMedium1(peer, H_MEDIUM, local, size, (gasnet_handlerarg_t)pattern));
                break;
            default:
                CHECK_OK(gasnet_AMRequestLong1(peer, H_LONG, local, size, remote, (gasnet_handlerarg_t)pattern));
                break;
        }
    }
    t[1] = check_now();
    switch (kind) {
        case PUT_NB:
        case GET_NB:
        case PUT_VAL: gasnet_wait_syncnb_all(handles, (size_t)depth); break;
        case PUT_NBI: gasnet_wait_syncnbi_puts(); break;
        case GET_NBI: gasnet_wait_syncnbi_gets(); break;
        case GET_VAL:
            for (i = 0; i < depth; i++) {
                gasnet_register_value_t value = gasnet_wait_syncnb_valget(values[i]);
                memcpy(local, &value, sizeof value);
            }
            break;
        default: GASNET_BLOCKUNTIL((int)gasnett_atomic_read(&answers, 0) == depth); break;
    }
    t[2] = check_now();
    us[0] += (t[1] - t[0]) / depth / 1000;
    us[1] += (t[2] - t[0]) / depth / 1000;
    if (is_get) check_same(local, size, pattern, kinds[kind]);
    check_barrier();
    if (kind == MEDIUM || kind == LONG)
        CHECK(gasnett_atomic_read(&requests, 0) == (unsigned)depth, "%d %ss came instead of %d",
              (int)gasnett_atomic_read(&requests, 0), kinds[kind], depth);
    if (!is_get && kind != MEDIUM) check_same(mine, size, pattern, kinds[kind]);
    gasnett_atomic_set(&requests, 0, 0);
    check_barrier();
    free(handles);
    free(values);
}

/* ---- all operations of one thread in flight ---- */

static uint64_t word(gasnet_node_t node, size_t i) { return check_mix(node * UINT64_C(1000003) + i); }

/* Puts and gets of 8 bytes, `in_flight` at once, synced one by one in another order, by some,
 * and all together. Only this thread calls the barriers. */
static void all_in_flight(int id) {
    gasnet_handle_t *handles = (gasnet_handle_t *)calloc(in_flight, sizeof *handles);
    uint64_t *words = (uint64_t *)calloc(in_flight, 8), *segment = (uint64_t *)check_at(gasnet_mynode(), 0);
    size_t i, n = in_flight, left, bad;
    double began = check_now();
    (void)id;

    for (i = 0; i < n; i++) words[i] = word(gasnet_mynode(), i);
    memset(segment, 0, 8 * n);
    check_alive("puts in flight");
    check_barrier();
    for (i = 0; i < n; i++) {
        handles[i] = gasnet_put_nb_bulk(peer, check_at(peer, 8 * i), &words[i], 8);
        if (i % 4096 == 0) check_alive("puts in flight");
    }
    for (i = 0; i < n; i += 2) gasnet_wait_syncnb(handles[n - 1 - i]); /* every second */
    for (i = 0; i < n; i += 2) handles[n - 1 - i] = GASNET_INVALID_HANDLE;
    for (left = n; left;) { /* the others, some at a time */
        gasnet_wait_syncnb_some(handles, n);
        for (i = left = 0; i < n; i++) left += handles[i] != GASNET_INVALID_HANDLE;
        check_alive("wait_syncnb_some");
    }
    check_barrier();
    for (i = bad = 0; i < n; i++) bad += segment[i] != word(peer, i);
    CHECK(!bad, "%lu of %lu words put are wrong", (unsigned long)bad, (unsigned long)n);

    check_alive("gets in flight");
    memset(words, 0, 8 * n);
    for (i = 0; i < n; i++) {
        handles[i] = gasnet_get_nb_bulk(&words[i], peer, check_at(peer, 8 * i), 8);
        if (i % 4096 == 0) check_alive("gets in flight");
    }
    gasnet_wait_syncnb_all(handles, n);
    for (i = bad = 0; i < n; i++) bad += handles[i] != GASNET_INVALID_HANDLE;
    CHECK(!bad, "%lu handles are still there after gasnet_wait_syncnb_all", (unsigned long)bad);
    for (i = bad = 0; i < n; i++) bad += words[i] != word(gasnet_mynode(), i);
    CHECK(!bad, "%lu of %lu words got are wrong", (unsigned long)bad, (unsigned long)n);
    check_barrier();

    check_alive("implicit operations in flight");
    memset(words, 0, 8 * n);
    memset(segment, 0, 8 * n);
    check_barrier();
    for (i = 0; i < n; i++) gasnet_put_nbi_val(peer, check_at(peer, 8 * i), word(gasnet_mynode(), i + 1), 8);
    gasnet_wait_syncnbi_puts();
    for (i = 0; i < n; i++) gasnet_get_nbi(&words[i], peer, check_at(peer, 8 * i), 8);
    gasnet_wait_syncnbi_all();
    for (i = bad = 0; i < n; i++) bad += words[i] != word(gasnet_mynode(), i + 1);
    CHECK(!bad, "%lu of %lu words put and got by implicit operations are wrong", (unsigned long)bad, (unsigned long)n);
    check_barrier();
    if (gasnet_mynode() == 0)
        printf("testqueue: %lu operations of 8 bytes in flight of one thread, three times: %.0f ms\n",
               (unsigned long)n, (check_now() - began) / 1e6);
    /* `words` are not freed: gets that a planted fault does not wait for store there later. */
    free(handles);
}

#if CHECK_PAR
/* Threads 1 to THREAD_NUMBER - 1 use the library once and stay alive, then the last one begins;
 * the main thread is 0. */
static gasnett_atomic_t present = gasnett_atomic_init(0);
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static int leave;

static void bystander(int id) {
    uint64_t value = 0;
    gasnet_wait_syncnb(gasnet_get_nb_bulk(&value, peer, check_at(peer, 8 * (size_t)id), 8));
    gasnett_atomic_increment(&present, 0);
    pthread_mutex_lock(&door);
    while (!leave) pthread_cond_wait(&opened, &door);
    pthread_mutex_unlock(&door);
}

static void most_threads(void) {
    struct check_thread *others = check_start(THREAD_NUMBER - 1, 1, bystander), *last;
    check_alive("starting threads");
    GASNET_BLOCKUNTIL(gasnett_atomic_read(&present, 0) == THREAD_NUMBER - 1);
    last = check_start(1, THREAD_NUMBER, all_in_flight);
    check_join(last, 1);
    pthread_mutex_lock(&door);
    leave = 1;
    pthread_cond_broadcast(&opened);
    pthread_mutex_unlock(&door);
    check_join(others, THREAD_NUMBER - 1);
}
#endif

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {{H_MEDIUM, medium_h}, {H_LONG, long_h}, {H_BACK, back_h}};
    int in = 1, i, iters, depth, most, kind;
    size_t size, bytes;

    check_init("testqueue", &argc, &argv);
    for (i = 1; i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "-in")) in = 1;
        else if (!strcmp(argv[i], "-out")) in = 0;
        else check_usage(USAGE);
    }
    iters = (int)check_arg(argc, argv, i, 1);
    most = (int)check_arg(argc, argv, i + 1, 256);
    max = check_arg(argc, argv, i + 2, max);
    in_flight = check_arg(argc, argv, i + 3, in_flight);
    if (iters < 1 || most < 1 || max < 8 || in_flight < 1 || argc > i + 4) check_usage(USAGE);
    bytes = 2 * check_round(max);
    if (bytes < 8 * in_flight) bytes = 8 * in_flight;
    if (bytes < 8 * (THREAD_NUMBER + 1)) bytes = 8 * (THREAD_NUMBER + 1);
    check_attach(table, 3, bytes);
    peer = check_peer();
    mine = check_at(gasnet_mynode(), 0);
    remote = check_at(peer, 0);
    local = in ? mine + check_round(max) : (char *)malloc(max);

    if (gasnet_mynode() == 0)
        printf("testqueue: us of an operation, to start it and until it is finished; %d processes\n"
               "%-12s %9s %7s %11s %11s\n", (int)gasnet_nodes(), "kind", "bytes", "depth", "start", "finished");
    for (kind = 0; kind < KINDS; kind++) {
        int values = kind == PUT_VAL || kind == GET_VAL;
        for (size = 8; size <= max; size *= 8) {
            if ((values && size > 8) || (kind == MEDIUM && size > gasnet_AMMaxMedium()) ||
                (kind == LONG && size > gasnet_AMMaxLongRequest()))
                break;
            for (depth = 1; depth <= most; depth *= 16) {
                double us[2] = {0, 0};
                check_alive(kinds[kind]);
                for (i = 0; i < iters; i++) queue((enum kind)kind, depth, size, i, us);
                if (gasnet_mynode() == 0)
                    printf("%-12s %9lu %7d %11.3f %11.3f\n", kinds[kind], (unsigned long)size, depth, us[0] / iters,
                           us[1] / iters);
            }
        }
    }
#if CHECK_PAR
    most_threads();
#else
    all_in_flight(0);
#endif
    check_done();
}
