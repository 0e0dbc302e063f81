/* startup: a job that starts, attaches a page, passes one barrier and ends. The time is
 * measured from outside.
 *
 * usage: startup */
#include <gasnet.h>

int main(int argc, char **argv) {
    if (gasnet_init(&argc, &argv) || gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0)) return 1;
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_exit(0);
    return 0;
}
