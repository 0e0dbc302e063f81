/* testteam: teams of rows and columns, teams of teams and teams in reverse order. It checks
 * sizes, ranks, barriers with and without names, collectives in several teams at once, and
 * tuning by team. */
/* faults: flip_coll skip_barrier skip_mismatch drop_am skip_sync */
/* args: 12 */
/* nodes: any */
/* threads: seq */
#include "check.h"

#include <gasnet_coll.h>

#define USAGE "[rounds]\n"
#define FLAGS (GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC | GASNET_COLL_LOCAL)
#define WORDS 700
#define MOST 64

static size_t rounds;

/* A team and its expected members. */
struct team {
    gasnet_team_handle_t handle;
    gasnet_node_t members[MOST], n, me;
};

static void add(void *results, size_t result_count, const void *left, size_t left_count, const void *right,
                size_t elem_size, int flags, int arg) {
    uint64_t *to = (uint64_t *)results;
    const uint64_t *l = (const uint64_t *)left, *r = (const uint64_t *)right;
    size_t i;
    (void)left_count, (void)elem_size, (void)flags, (void)arg;
    for (i = 0; i < result_count; i++) to[i] = l[i] + r[i];
}

static void check_team(struct team *t, const char *what) {
    gasnet_node_t r;
    CHECK(gasnet_coll_team_size(t->handle) == t->n, "%s: %d members", what, (int)gasnet_coll_team_size(t->handle));
    for (r = 0; r < t->n; r++) {
        CHECK(gasnet_coll_team_rank2node(t->handle, (int)r) == t->members[r], "%s: rank %d is %d", what, (int)r,
              (int)gasnet_coll_team_rank2node(t->handle, (int)r));
        CHECK(gasnet_coll_team_node2rank(t->handle, t->members[r]) == r, "%s: %d has rank %d", what,
              (int)t->members[r], (int)gasnet_coll_team_node2rank(t->handle, t->members[r]));
        if (t->members[r] == gasnet_mynode()) t->me = r;
    }
}

static uint64_t word(gasnet_node_t node, size_t round, size_t i) { return check_mix(node * 7919 + round * 131071 + i); }

/* Each member puts to the next; after a barrier the value must have arrived. */
static void barriers(struct team *t, size_t round, size_t offset) {
    uint64_t value = round * MOST + t->me, *slot = (uint64_t *)check_at(gasnet_mynode(), offset);
    gasnet_node_t next = t->members[(t->me + 1) % t->n], last = (t->me + t->n - 1) % t->n;
    int name = 99, rc;
    gasnet_put(next, check_at(next, offset), &value, sizeof value);
    if (round % 2) {
        CHECK_OK(gasnet_coll_barrier(t->handle, (int)round, 0));
    } else {
        gasnet_coll_barrier_notify(t->handle, 0, GASNET_BARRIERFLAG_ANONYMOUS);
        do rc = gasnet_coll_barrier_try(t->handle, 0, GASNET_BARRIERFLAG_ANONYMOUS);
        while (rc == GASNET_ERR_NOT_READY);
        CHECK_OK(rc);
    }
    rc = gasnet_coll_barrier_result(t->handle, &name);
    CHECK(round % 2 ? rc == 0 && name == (int)round : rc == 1, "the result is %d, the name %d", rc, name);
    value = *(volatile uint64_t *)slot;
    CHECK(value == round * MOST + last, "round %lu: %lu from the member before", (unsigned long)round,
          (unsigned long)value);
    /* Two names: every member gets the mismatch. */
    gasnet_coll_barrier_notify(t->handle, t->me == 0, 0);
    rc = gasnet_coll_barrier_wait(t->handle, t->me == 0, 0);
    CHECK(rc == (t->n > 1 ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK), "two names: %d", rc);
}

/* Collectives in two teams, all in flight together. */
static void collectives(struct team *a, struct team *b, size_t round) {
    struct team *teams[2];
    gasnet_coll_handle_t h[6];
    static uint64_t src[2][WORDS], cast[2][WORDS], all[2][MOST * WORDS], sum[2][WORDS];
    size_t t, i, n = 1 + round * 37 % WORDS;
    gasnet_node_t r;
    teams[0] = a;
    teams[1] = b;
    for (t = 0; t < 2; t++) {
        gasnet_node_t root = (gasnet_node_t)(round % teams[t]->n);
        for (i = 0; i < n; i++) src[t][i] = word(gasnet_mynode(), round, i + t);
        memset(cast[t], 0, sizeof cast[t]);
        memset(all[t], 0, sizeof all[t]);
        h[t] = gasnet_coll_broadcast_nb(teams[t]->handle, cast[t], root, src[t], n * 8, FLAGS);
        h[2 + t] = gasnet_coll_gather_all_nb(teams[t]->handle, all[t], src[t], n * 8, FLAGS);
        h[4 + t] = gasnet_coll_reduce_nb(teams[t]->handle, root, sum[t], src[t], 0, 0, 8, n, 0, 0, FLAGS);
    }
    gasnet_coll_wait_sync_all(h, 6);
    for (t = 0; t < 2; t++) {
        gasnet_node_t root = (gasnet_node_t)(round % teams[t]->n);
        for (i = 0; i < n; i++) {
            uint64_t want = 0;
            if (cast[t][i] != word(teams[t]->members[root], round, i + t)) break;
            for (r = 0; r < teams[t]->n; r++) {
                want += word(teams[t]->members[r], round, i + t);
                if (all[t][r * n + i] != word(teams[t]->members[r], round, i + t)) break;
            }
            if (r < teams[t]->n || (teams[t]->me == root && sum[t][i] != want)) break;
        }
        CHECK(i == n, "round %lu, team %lu: word %lu of %lu is wrong", (unsigned long)round, (unsigned long)t,
              (unsigned long)i, (unsigned long)n);
    }
}

/* The trees of a team: any of them is correct. */
static void tuning(struct team *t) {
    gasnet_coll_args_t args = GASNET_COLL_ARGS_INITIALIZER;
    uint64_t value = 5, result = 0;
    uint8_t *dst = (uint8_t *)&result, *src = (uint8_t *)&value;
    uint32_t kind = 99, params = 99, *param = NULL;
    char *name = NULL;
    int k, classes = gasnet_coll_get_num_tree_classes(t->handle, GASNET_COLL_REDUCE_OP);
    CHECK(classes > 0, "%d kinds of trees", classes);
    for (k = 0; k < classes; k++) {
        gasnet_coll_set_tree_kind(t->handle, k, 2, GASNET_COLL_REDUCE_OP);
        result = 0;
        gasnet_coll_reduce(t->handle, 0, &result, &value, 0, 0, 8, 1, 0, 0, FLAGS);
        CHECK(t->me != 0 || result == (uint64_t)5 * t->n, "kind %d: %lu", k, (unsigned long)result);
    }
    args.dst = &dst;
    args.src = &src;
    args.nbytes = args.elem_size = 8;
    gasnet_coll_tune_generic_op(t->handle, GASNET_COLL_REDUCE_OP, args, FLAGS, NULL, NULL, &kind, &params, &param, &name);
    CHECK((int)kind < classes && params <= 1 && name, "tuned to kind %u, %u parameters", kind, params);
    CHECK((params == 1) == (param != NULL) && (params == 0) == !strcmp(name, "BY_SIZE"), "tuned to %s, %u parameters", name,
          params);
    free(param);
    free(name);
    gasnet_coll_set_dissem_limit(t->handle, 0, GASNET_COLL_GATHER_ALL_OP);
    gasnet_coll_dumpTuningState(NULL, t->handle);
    gasnet_coll_loadTuningState(NULL, t->handle);
    gasnet_coll_dumpProfile(NULL, t->handle);
}

/* A tree that is chosen while a broadcast is in flight is that of later ones, whichever rank is
 * late. The memory is not in the segment, and too large for the slots of the library. */
static void chosen_in_flight(struct team *t) {
    const size_t n = 20000;
    unsigned char *from = (unsigned char *)malloc(n), *to = (unsigned char *)calloc(1, n);
    const unsigned char root = (unsigned char)(t->n > 1);
    gasnet_coll_handle_t h;
    memset(from, 7 + (int)t->me, n);
    if (t->me == root) usleep(50000);
    h = gasnet_coll_broadcast_nb(t->handle, to, root, from, n, FLAGS);
    gasnet_coll_set_tree_kind(t->handle, 0, 1, GASNET_COLL_BROADCAST_OP);
    gasnet_coll_wait_sync(h);
    CHECK(to[0] == 7 + root && to[n - 1] == 7 + root, "broadcast %d to %d of %d", to[0], to[n - 1], 7 + root);
    free(from);
    free(to);
}

int main(int argc, char **argv) {
    gasnet_coll_fn_entry_t table[1];
    struct team world, row, column, back, half;
    gasnet_node_t i, n, me, width = 1;
    size_t round;
    check_init("testteam", &argc, &argv);
    rounds = check_arg(argc, argv, 1, 30);
    n = gasnet_nodes();
    me = gasnet_mynode();
    if (argc > 2 || n > MOST) check_usage(USAGE);
    check_attach(NULL, 0, 4096);
    table[0].fnptr = add;
    table[0].flags = 0;
    gasnet_coll_init(NULL, 0, table, 1, 0);
    while ((width + 1) * (width + 1) <= n) width++;

    memset(&world, 0, sizeof world);
    row = column = back = half = world;
    world.handle = GASNET_TEAM_ALL;
    for (i = 0; i < n; i++) {
        world.members[world.n++] = i;
        if (i / width == me / width) row.members[row.n++] = i;
        if (i % width == me % width) column.members[column.n++] = i;
        back.members[back.n++] = n - 1 - i;
    }
    row.handle = gasnet_coll_team_split(GASNET_TEAM_ALL, me / width, me % width, NULL);
    column.handle = gasnet_coll_team_split(GASNET_TEAM_ALL, me % width, me / width, NULL);
    back.handle = gasnet_coll_team_split(GASNET_TEAM_ALL, 7, n - me, NULL);
    /* Every other member of the team in reverse order. */
    for (i = (n - 1 - me) % 2; i < n; i += 2) half.members[half.n++] = n - 1 - i;
    half.handle = gasnet_coll_team_split(back.handle, (n - 1 - me) % 2, (n - 1 - me) / 2, NULL);
    check_team(&world, "all");
    check_team(&row, "row");
    check_team(&column, "column");
    check_team(&back, "reverse");
    check_team(&half, "half");
    check_barrier();
    for (round = 0; round < rounds; round++) {
        check_alive("a round");
        barriers(&row, round, 0);
        barriers(&column, round, 8);
        barriers(&half, round, 16);
        barriers(&world, round, 24);
        collectives(&row, &column, round);
        collectives(&half, &back, round);
        collectives(&world, &row, round);
    }
    tuning(&back);
    tuning(&world);
    chosen_in_flight(&world);
    check_barrier();
    check_done();
}
