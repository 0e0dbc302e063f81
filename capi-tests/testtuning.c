/* testtuning: gasnet_coll_init takes the algorithms of a file that only rank 0 can read, in all
 * ranks and, in PAR, for all images of a rank. With others a broadcast of this size hangs. */
/* faults: flip_coll */
/* nodes: any */
/* threads: both */
#include "images.h"

#define DESCRIPTOR 100
#define FILE_NAME "/proc/self/fd/100"
#define BLOCK 10000

static void body(int local) {
    const gasnet_image_t mine = first + (gasnet_image_t)local;
    char *from = (char *)malloc(BLOCK), *to = (char *)calloc(1, BLOCK);
    gasnet_image_t root;
    open_image(local);
    for (root = 0; root < images; root++) {
        if (mine == root) check_fill(from, BLOCK, root);
        gasnet_coll_broadcast(GASNET_TEAM_ALL, to, root, from, BLOCK,
                              GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC | GASNET_COLL_LOCAL);
        check_same(to, BLOCK, root, "a broadcast");
    }
    images_barrier(1);
    free(from);
    free(to);
}

int main(int argc, char **argv) {
    FILE *file;
    if (setenv("GASNET_COLL_TUNING_FILE", FILE_NAME, 1)) return 1;
    check_init("testtuning", &argc, &argv);
    lay_out_images();
    check_attach(NULL, 0, 4096);
    if (gasnet_mynode() == 0) {
        file = tmpfile();
        CHECK(file && fputs("BROADCAST NARY_TREE,1 0\n", file) >= 0 && fflush(file) == 0, "no temporary file");
        CHECK(dup2(fileno(file), DESCRIPTOR) == DESCRIPTOR, "no descriptor %d", DESCRIPTOR);
    }
    check_barrier();
    run_images(body);
    check_barrier();
    check_done();
}
