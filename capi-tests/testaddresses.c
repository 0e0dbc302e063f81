/* testaddresses: segments start at the same address in all ranks, each as its owner sees it.
 *
 * `testaddresses` attaches segments of different sizes, compares their addresses and puts to
 * each peer at an address of its own segment.
 * `testaddresses apart`, on x86-64: each rank first reserves all addresses but a range of its own.
 * So no range is free in all ranks, the segments have different addresses, and puts arrive all the
 * same. */
/* args: */
/* nodes: any */
/* threads: both */
#include "check.h"

#include <sys/mman.h>

#define PAGES(n) ((n) * (size_t)GASNET_PAGESIZE)

/* All segments start where ours does, or none does but ours. */
static void compare(int apart) {
    gasnet_node_t i, me = gasnet_mynode();
    for (i = 0; i < gasnet_nodes(); i++) {
        int same = check_seg[i].addr == check_seg[me].addr;
        CHECK(i == me || same != apart, "the segment of rank %d is at %p, that of rank %d at %p", (int)me,
              check_seg[me].addr, (int)i, check_seg[i].addr);
    }
}

/* Each rank writes its number to each rank; a single-address program uses its own address. */
static void put_to_all(int apart) {
    gasnet_node_t i, me = gasnet_mynode();
    for (i = 0; i < gasnet_nodes(); i++)
        gasnet_put_val(i, check_at(apart ? i : me, 8 * (size_t)me), 1000 + (gasnet_register_value_t)me, 8);
    check_barrier();
    for (i = 0; i < gasnet_nodes(); i++) {
        uint64_t got;
        memcpy(&got, check_at(me, 8 * (size_t)i), 8);
        CHECK(got == 1000 + (uint64_t)i, "rank %d wrote %d, and not %d", (int)i, (int)got, 1000 + (int)i);
    }
}

#ifdef __x86_64__
#define TIB ((uintptr_t)1 << 40)
/* Below the address of the first program, and above it the stack grows. */
#define STACK ((uintptr_t)64 << 20)

/* Reserves the addresses from `first` up to `end`. */
static void reserve(uintptr_t first, uintptr_t end) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    void *p = first < end ? mmap((void *)first, end - first, PROT_NONE, flags, -1, 0) : NULL;
    CHECK(p != MAP_FAILED, "%lx-%lx: %s", (unsigned long)first, (unsigned long)end, strerror(errno));
}

/* Reserves all free addresses but 1 TiB, at a place of this rank. */
static void reserve_others(void) {
    static char maps[1 << 20];
    const uintptr_t window = (8 + (uintptr_t)gasnet_mynode()) * TIB;
    uintptr_t free_from = (uintptr_t)1 << 20;
    FILE *f = fopen("/proc/self/maps", "r");
    char *line = maps, *next;
    size_t n = f ? fread(maps, 1, sizeof maps - 1, f) : 0;
    CHECK(n > 0 && n < sizeof maps - 1, "/proc/self/maps has %lu bytes", (unsigned long)n);
    if (f) fclose(f);
    for (; (next = strchr(line, '\n')) != NULL; line = next + 1) {
        unsigned long first, end;
        *next = 0;
        if (sscanf(line, "%lx-%lx", &first, &end) != 2 || first > 127 * TIB + (TIB - 1)) continue;
        if (strstr(line, "[stack]")) first -= STACK;
        reserve(free_from, first < window ? first : window);
        reserve(free_from > window + TIB ? free_from : window + TIB, first);
        if (strstr(line, "[stack]")) break;
        free_from = end;
    }
}
#endif

int main(int argc, char **argv) {
    int apart = argc == 2 && !strcmp(argv[1], "apart");
    check_init("testaddresses", &argc, &argv);
    if (argc != 1 && !apart) check_usage("[apart]");
#ifdef __x86_64__
    if (apart) reserve_others();
#endif
    check_attach(NULL, 0, PAGES(1 + gasnet_mynode() % 3));
    compare(apart);
    put_to_all(apart);
    check_barrier();
    check_done();
}
