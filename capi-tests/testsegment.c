/* testsegment: the largest segment takes no memory before it is used, and an unavailable page
 * is reported.
 *
 * `testsegment` attaches the largest segment and passes if that touched no page, and if a peer's
 * first word is zero. No page of it may be mapped in this process (RssShmem of
 * /proc/self/status), or allocated in the memory file of all segments of the host.
 * `testsegment touch` also writes to 8 MiB of the segment of rank 0, and must fail.
 * `testsegment lack own|peer`: the memory file loses all its pages, as if memory had run out.
 * Then the last rank (own) or rank 0 (peer) writes to the segment of the last rank. It must die
 * of SIGBUS, and the library must say why.
 * `testsegment beyond`, in LARGE: the segments exceed the memory of the machine, and their first
 * and last pages can be used.
 * `testsegment locked`: the local sides of puts, gets and reply Longs, outside the segment, are
 * larger than what the rank may register (GASNET_PORTAL_PIN, GASNET_PHYSMEM_MAX). It never has
 * more locked than that.
 * `testsegment huge` touches 8 MiB of its segment and prints `testsegment: huge pages: N kB`,
 * those mapped there. */
/* args: */
/* nodes: any */
/* threads: both */
#include "check.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#define MIB ((uintptr_t)1 << 20)
/* Smallest segment whose pages stand out from all other memory. */
#define LEAST (64 * MIB)
/* What the library itself may touch meanwhile. Its own structures are shared memory too, and
 * around each touched page of a peer the kernel maps up to 64 KiB of present pages. */
#define SLACK(peers) (MIB + (peers) * (MIB / 16))
#define TOUCHED (8 * MIB)

/* Bytes of shared memory mapped and present in this process. */
static uintptr_t resident(void) { return check_status_bytes("RssShmem: %lu kB"); }

/* The descriptor of the memory file that is mapped at `address`, or -1. */
static int memory_file(const void *address) {
    FILE *f = fopen("/proc/self/maps", "r");
    char line[600];
    unsigned long first, end, inode = 0;
    struct stat st;
    int found = 0, fd;
    while (f && !found && fgets(line, sizeof line, f))
        found = sscanf(line, "%lx-%lx %*s %*s %*s %lu", &first, &end, &inode) == 3 && (uintptr_t)address >= first &&
                (uintptr_t)address < end;
    if (f) fclose(f);
    for (fd = 0; found && fd < 1024; fd++)
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == inode) return fd;
    return -1;
}

static void untouched(uintptr_t before, int fd) {
    uintptr_t after = resident();
    struct stat st;
    CHECK(after < before + SLACK(gasnet_nodes()), "RssShmem grew from %lu to %lu bytes", (unsigned long)before, (unsigned long)after);
    CHECK(fstat(fd, &st) == 0 && (uintptr_t)st.st_size >= check_seg[gasnet_mynode()].size,
          "%ld bytes are no memory file of segments", (long)st.st_size);
    CHECK(st.st_blocks == 0, "the memory file of the segments has %ld blocks", (long)st.st_blocks);
}

/* Kilobytes in huge pages of the mapping of this address. */
static unsigned long huge_at(const void *address) {
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[600];
    unsigned long first, end, kib = 0;
    int inside = 0;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
            inside = (uintptr_t)address >= first && (uintptr_t)address < end;
        else if (inside && sscanf(line, "ShmemPmdMapped: %lu kB", &kib) == 1)
            break;
    }
    if (f) fclose(f);
    return kib;
}

/* Does not return. */
static void lack(int fd, const char *whose) {
    gasnet_node_t last = gasnet_nodes() - 1, toucher = strcmp(whose, "peer") ? last : 0;
    static volatile int never;
    char eight[8] = "present";
    if (gasnet_mynode() == toucher) {
        char *address = check_at(last, 5 * GASNET_PAGESIZE);
        CHECK(ftruncate(fd, 0) == 0, "ftruncate: %s", strerror(errno));
        if (toucher == last)
            memcpy(address, eight, sizeof eight);
        else
            gasnet_put_bulk(last, address, eight, sizeof eight);
        printf("testsegment: FAIL (there was memory)\n");
        fflush(stdout);
        gasnet_exit(0);
    }
    GASNET_BLOCKUNTIL(never);
}

/* Words at both ends of the segment of the peer, which is larger than the memory. */
static void beyond(uintptr_t bytes) {
    const gasnet_node_t peer = check_peer();
    const uintptr_t memory = (uintptr_t)sysconf(_SC_PHYS_PAGES) * (uintptr_t)sysconf(_SC_PAGESIZE);
    uint64_t word = gasnet_mynode() + 1;
    const uint64_t due = (uint64_t)peer + 1;
    const uint64_t *first = (uint64_t *)check_at(gasnet_mynode(), 0);
    const uint64_t *last = (uint64_t *)check_at(gasnet_mynode(), bytes - sizeof word);
    CHECK(bytes > 4 * memory, "a segment has at most %lu bytes", (unsigned long)bytes);
    gasnet_put(peer, check_at(peer, 0), &word, sizeof word);
    gasnet_put(peer, check_at(peer, bytes - sizeof word), &word, sizeof word);
    check_barrier();
    CHECK(*first == due && *last == due, "the words are %lu and %lu", (unsigned long)*first, (unsigned long)*last);
}

#define LARGE_SIDE (6 * MIB)
static char *side;
static const char *doing = "attach";

/* In place of that of the C library: reads what is locked each time that more is. */
int mlock(const void *at, size_t bytes) {
    int rc = (int)syscall(SYS_mlock, at, bytes);
    if (check_share) check_locked(doing);
    return rc;
}

static volatile int replies;

static void on_ask(gasnet_token_t token, gasnet_handlerarg_t n) {
    gasnet_node_t from;
    gasnet_AMGetMsgSource(token, &from);
    doing = "a reply Long";
    gasnet_AMReplyLong0(token, 202, side, (size_t)n, check_at(from, 0));
}

static void on_data(gasnet_token_t token, void *data, size_t n) {
    (void)token;
    check_same(data, n, 5, "a reply Long");
    replies++;
}

/* Transfers whose local sides are outside the segment and larger than the share. */
static void beyond_share(void) {
    const gasnet_node_t peer = check_peer();
    const size_t reply = gasnet_AMMaxLongReply() < LARGE_SIDE ? gasnet_AMMaxLongReply() : LARGE_SIDE;
    gasnet_handle_t handles[4];
    int i;
    check_find_share();
    CHECK(check_share < LARGE_SIDE, "the share of %lu bytes is too large for this test", (unsigned long)check_share);
    side = (char *)malloc(LARGE_SIDE);
    check_fill(side, LARGE_SIDE, 5);
    check_barrier();
    doing = "a put";
    for (i = 0; i < 4; i++) handles[i] = gasnet_put_nb_bulk(peer, check_at(peer, 4 * MIB), side, LARGE_SIDE);
    gasnet_wait_syncnb_all(handles, 4);
    memset(side, 0, LARGE_SIDE);
    doing = "a get";
    for (i = 0; i < 2; i++) handles[i] = gasnet_get_nb_bulk(side, peer, check_at(peer, 4 * MIB), LARGE_SIDE);
    gasnet_wait_syncnb_all(handles, 2);
    check_same(side, LARGE_SIDE, 5, "a get");
    check_barrier();
    gasnet_AMRequestShort1(peer, 201, (gasnet_handlerarg_t)reply);
    GASNET_BLOCKUNTIL(replies == 1);
    check_barrier();
    CHECK(check_most_locked > 0, "nothing was ever locked");
}

int main(int argc, char **argv) {
    uintptr_t before, bytes;
    gasnet_handlerentry_t handlers[] = {{201, (void (*)())on_ask}, {202, (void (*)())on_data}};
    int fd;

    check_init("testsegment", &argc, &argv);
    before = resident();
    bytes = gasnet_getMaxLocalSegmentSize();
    CHECK(bytes >= LEAST, "a segment of %lu bytes is too small for this test", (unsigned long)bytes);
    check_attach(handlers, 2, bytes);
    CHECK(check_seg[gasnet_mynode()].size == bytes, "the segment has %lu bytes instead of %lu",
          (unsigned long)check_seg[gasnet_mynode()].size, (unsigned long)bytes);
    fd = memory_file(check_seg[gasnet_mynode()].addr);
    CHECK(fd >= 0, "no descriptor is that of the segments");
    if (argc == 2 && !strcmp(argv[1], "touch")) {
        if (gasnet_mynode() == 0) memset(check_at(0, 0), 1, TOUCHED);
    } else if (argc == 3 && !strcmp(argv[1], "lack")) {
        check_barrier();
        lack(fd, argv[2]);
    } else if (argc == 2 && !strcmp(argv[1], "beyond")) {
        beyond(bytes);
        check_barrier();
        check_done();
    } else if (argc == 2 && !strcmp(argv[1], "locked")) {
        beyond_share();
        check_done();
    } else if (argc == 2 && !strcmp(argv[1], "huge")) {
        char *mine = check_at(gasnet_mynode(), 0);
        memset(mine, 1, TOUCHED);
        printf("testsegment: huge pages: %lu kB\n", huge_at(mine));
        check_barrier();
        check_done();
    } else if (argc != 1) {
        check_usage("[touch | huge | beyond | locked | lack own|peer]");
    }
    check_barrier();
    untouched(before, fd);
    check_barrier();
    CHECK(gasnet_get_val(check_peer(), check_at(check_peer(), 0), 8) == 0, "a page that is new is not zero");
    check_done();
}
