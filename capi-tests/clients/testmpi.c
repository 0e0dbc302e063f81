/* testmpi: MPI and GASNet in one process. Both have the same ranks, both communicate, in turn
 * and interleaved, and both end properly.
 *
 * testmpi mpi|gasnet code [alone]
 * The first word names the one that is initialised first; the code is that of the job. `alone`:
 * each rank is an MPI job of its own; it prints its rank there. */
#include <gasnet.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 200
#define WORDS 1024

static volatile int came;
static void token_h(gasnet_token_t token, gasnet_handlerarg_t round) {
    (void)token;
    came = round;
}
static gasnet_handlerentry_t table[] = {{201, token_h}};

static int rank, size, errors;
static void check(int good, const char *what) {
    if (good) return;
    errors++;
    printf("testmpi: ERROR on process %d: %s\n", rank, what);
    fflush(stdout);
}

static void meet(void) {
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    check(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) == GASNET_OK, "the barrier failed");
}

static void start_gasnet(int *argc, char ***argv) {
    check(gasnet_init(argc, argv) == GASNET_OK, "gasnet_init failed");
    check(gasnet_attach(table, 1, GASNET_PAGESIZE * 16, 0) == GASNET_OK, "gasnet_attach failed");
}

/* GASNet: a put and a message to the next rank. MPI: a block to the next rank and a sum. */
static void turn(gasnet_seginfo_t *seg, int next, int before, int round) {
    static int out[WORDS], in[WORDS];
    int i, sum = 0, *mine = (int *)seg[gasnet_mynode()].addr;
    for (i = 0; i < WORDS; i++) out[i] = rank * 1000003 + round * 7 + i;
    gasnet_put(next, seg[next].addr, out, sizeof out);
    gasnet_AMRequestShort1(next, 201, round);
    memset(in, 0, sizeof in);
    MPI_Sendrecv(out, WORDS, MPI_INT, next, round, in, WORDS, MPI_INT, before, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    GASNET_BLOCKUNTIL(came == round);
    for (i = 0; i < WORDS; i++) {
        int want = before * 1000003 + round * 7 + i;
        if (in[i] != want) break;
        if (mine[i] != want) break;
    }
    check(i == WORDS, "a block has arrived with other bytes");
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(sum == size * (size - 1) / 2, "the sum is wrong");
    meet();
}

int main(int argc, char **argv) {
    int mpi_first = argc > 1 && !strcmp(argv[1], "mpi");
    int code = argc > 2 ? atoi(argv[2]) : 0;
    int round, all, flag = 0;
    gasnet_seginfo_t *seg;
    if (!mpi_first) start_gasnet(&argc, &argv);
    if (argc > 3) {
        /* One at a time: Open MPI's jobs that start together fight for one folder. */
        for (round = 0; round < (int)gasnet_nodes(); round++) {
            if (round == (int)gasnet_mynode()) MPI_Init(&argc, &argv);
            meet();
        }
    } else {
        MPI_Init(&argc, &argv);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (mpi_first) start_gasnet(&argc, &argv);
    if (argc > 3) {
        printf("testmpi: rank %d of %d of MPI\n", rank, size);
        fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Finalize();
        meet();
        gasnet_exit(code);
    }
    check((int)gasnet_nodes() == size, "GASNet has another number of processes than MPI");
    check((int)gasnet_mynode() == rank, "GASNet gives this process another number than MPI");
    check(argc > 2, "the arguments are lost");
    if (errors) gasnet_exit(1);
    seg = (gasnet_seginfo_t *)malloc(sizeof *seg * (size_t)size);
    gasnet_getSegmentInfo(seg, size);
    meet();
    for (round = 1; round <= ROUNDS; round++) turn(seg, (rank + 1) % size, (rank + size - 1) % size, round);
    MPI_Allreduce(&errors, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    MPI_Finalized(&flag);
    check(flag, "MPI is not finalised");
    /* GASNet goes on without MPI. */
    meet();
    if (rank == 0) printf("testmpi: %s with %d processes\n", all + errors ? "FAIL" : "PASS", size);
    fflush(stdout);
    meet();
    gasnet_exit(all + errors ? 1 : code);
}
