/* barrierend: one barrier, the first messages of all ranks, and then the end of the job. The last
 * message of a rank waits for its connection when the rank exits. Run by the cases of several
 * hosts. */
#include <gasnet.h>

int main(int argc, char **argv) {
    if (gasnet_init(&argc, &argv) != GASNET_OK) return 1;
    if (gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0) != GASNET_OK) return 2;
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    if (gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) != GASNET_OK) return 3;
    gasnet_exit(0);
    return 4;
}
