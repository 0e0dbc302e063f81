/* testval: latency and flood rate of the value forms of put and get, for 1 to 8 bytes,
 * checked, in a table. */
/* faults: flip_put flip_get skip_sync:portals */
/* args: 500 */
/* nodes: any */
/* threads: both */
#include "pairs.h"

static gasnet_handle_t *handles;
static gasnet_valget_handle_t *valgets;

/* The low `size` bytes at pairs.local as a value, and a value stored there. */
static gasnet_register_value_t load(size_t size) {
    gasnet_register_value_t value = 0;
#if PLATFORM_ARCH_BIG_ENDIAN
    memcpy((char *)&value + sizeof value - size, pairs.local, size);
#else
    memcpy(&value, pairs.local, size);
#endif
    return value;
}

static void store(gasnet_register_value_t value, size_t size) {
    gasnet_register_value_t low = size == sizeof value ? value : value & (((gasnet_register_value_t)1 << size * 8) - 1);
    CHECK(value == low, "a value of %lu bytes is not zero-extended: 0x%lx", (unsigned long)size, (unsigned long)value);
#if PLATFORM_ARCH_BIG_ENDIAN
    memcpy(pairs.local, (char *)&value + sizeof value - size, size);
#else
    memcpy(pairs.local, &value, size);
#endif
}

/* Bits above the size must be ignored, so they are set here. */
static gasnet_register_value_t noisy(size_t size) {
    gasnet_register_value_t value = load(size);
    if (size < sizeof value) value |= ~(gasnet_register_value_t)0 << size * 8;
    return value;
}

static void put_val(size_t size, int n) {
    gasnet_register_value_t value = noisy(size);
    while (n--) gasnet_put_val(pairs.peer, pairs.remote, value, size);
}

static void get_val(size_t size, int n) {
    gasnet_register_value_t value = 0;
    while (n--) value = gasnet_get_val(pairs.peer, pairs.remote, size);
    store(value, size);
}

static void put_nb_val(size_t size, int n) {
    gasnet_register_value_t value = noisy(size);
    while (n--) gasnet_wait_syncnb(gasnet_put_nb_val(pairs.peer, pairs.remote, value, size));
}

static void get_nb_val(size_t size, int n) {
    gasnet_register_value_t value = 0;
    while (n--) value = gasnet_wait_syncnb_valget(gasnet_get_nb_val(pairs.peer, pairs.remote, size));
    store(value, size);
}

static void put_nb_flood(size_t size, int n) {
    gasnet_register_value_t value = noisy(size);
    int i;
    for (i = 0; i < n; i++) handles[i] = gasnet_put_nb_val(pairs.peer, pairs.remote, value, size);
    gasnet_wait_syncnb_all(handles, (size_t)n);
}

static void put_nbi_flood(size_t size, int n) {
    gasnet_register_value_t value = noisy(size);
    while (n--) gasnet_put_nbi_val(pairs.peer, pairs.remote, value, size);
    gasnet_wait_syncnbi_puts();
}

static void get_nb_flood(size_t size, int n) {
    gasnet_register_value_t first = 0, value;
    int i;
    for (i = 0; i < n; i++) valgets[i] = gasnet_get_nb_val(pairs.peer, pairs.remote, size);
    for (i = n; i-- > 0;) { /* in the opposite order */
        value = gasnet_wait_syncnb_valget(valgets[i]);
        if (i == n - 1) first = value;
        CHECK(value == first, "get_nb_val %d of %d differs", i, n);
    }
    store(first, size);
}

int main(int argc, char **argv) {
    static const struct pairs_op ops[] = {
        {'A', PAIRS_PUT, "put_val", put_val},
        {'B', PAIRS_GET, "get_val", get_val},
        {'C', PAIRS_PUT, "put_nb_val", put_nb_val},
        {'D', PAIRS_GET, "get_nb_val", get_nb_val},
        {'E', PAIRS_PUT, "put_nb_val*", put_nb_flood},
        {'F', PAIRS_PUT, "put_nbi_val*", put_nbi_flood},
        {'G', PAIRS_GET, "get_nb_val*", get_nb_flood},
    };
    size_t size;
    pairs_start("testval", argc, argv, 1000, sizeof(gasnet_register_value_t), 1);
    handles = (gasnet_handle_t *)calloc((size_t)pairs.iters + 1, sizeof *handles);
    valgets = (gasnet_valget_handle_t *)calloc((size_t)pairs.iters + 1, sizeof *valgets);
    if (pairs.max > sizeof(gasnet_register_value_t)) check_usage(PAIRS_USAGE);
    for (size = 1; size <= pairs.max; size++) {
        if (size < 3 || size == pairs.max) continue;
        pairs_measure(&ops[0], size); /* the sizes that the table leaves out */
        pairs_measure(&ops[1], size);
    }
    pairs_table(ops, (int)(sizeof ops / sizeof *ops), 1, 2);
    if (gasnet_mynode() == 0) printf("(* = all in flight at once)\n");
    check_done();
}
