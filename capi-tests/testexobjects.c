/* testexobjects: teams and atomics domains that are made and destroyed many times. The memory of a
 * rank stays bounded, names of destroyed objects are those of no later ones, and what lives keeps
 * its state. */
/* faults: keep_team */
/* args: 4000 */
/* nodes: any */
/* threads: both */
#include "checkex.h"

/* Most bytes that the memory of a rank may grow by in the second half of the rounds. */
#define GROWTH (1L << 20)

static void bounded(const char *what, long before, size_t rounds) {
    long growth = ex_resident() - before;
    CHECK(growth < GROWTH, "%lu %s more, destroyed at once, left %ld bytes", (unsigned long)rounds, what, growth);
}

static gex_TM_t split(gex_TM_t parent, int color, gex_Rank_t key) {
    gex_TM_t tm = GEX_TM_INVALID;
    gex_TM_Split(&tm, parent, color, (int)key, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    return tm;
}

/* The team that all ranks but one have begun to destroy; how many ranks have named it since. */
static gex_TM_t ending;
static gex_AM_Index_t h_name, h_named;
static volatile gex_Rank_t named;

static void name_h(gex_Token_t token) {
    CHECK(gex_TM_QueryCData(ending) == &named && gex_TM_QuerySize(ending) == ex_ranks, "a team that is not destroyed yet");
    gex_AM_ReplyShort0(token, h_named, 0);
}

static void named_h(gex_Token_t token) {
    (void)token;
    named++;
}

/* The last rank is late: first it has a handler of each other one name the team. */
static void late(void) {
    gex_Rank_t rank;
    ending = split(ex_tm, 0, ex_me);
    gex_TM_SetCData(ending, (void *)&named);
    ex_barrier(ex_tm);
    if (ex_me == ex_ranks - 1) {
        usleep(20000);
        for (rank = 0; rank < ex_ranks - 1; rank++) gex_AM_RequestShort0(ex_tm, rank, h_name, 0);
        GASNET_BLOCKUNTIL(named == ex_ranks - 1);
    }
    gex_TM_Destroy(ending, NULL, 0);
}

/* One team of this rank alone, and one of it that ends at once. */
static void teams(gex_TM_t alone, size_t rounds) {
    static int mark;
    gex_TM_t before = alone, tm;
    size_t i;
    for (i = 0; i < rounds; i++) {
        tm = split(alone, 0, 0);
        CHECK(tm != before && tm != alone, "round %lu: a name is used again", (unsigned long)i);
        CHECK(gex_TM_QueryCData(tm) == NULL && gex_TM_QuerySize(tm) == 1, "round %lu: state of another", (unsigned long)i);
        gex_TM_SetCData(tm, &mark);
        gex_TM_Destroy(tm, NULL, i % 2 ? GEX_FLAG_GLOBALLY_QUIESCED : 0);
        before = tm;
        if (i % 1000 == 0) check_alive("teams");
    }
}

static void domains(gex_TM_t tm, size_t rounds) {
    gex_AD_t before = GEX_AD_INVALID, ad;
    size_t i;
    for (i = 0; i < rounds; i++) {
        gex_AD_Create(&ad, tm, GEX_DT_U64, GEX_OP_FADD, 0);
        CHECK(ad != before, "round %lu: a name is used again", (unsigned long)i);
        CHECK(gex_AD_QueryCData(ad) == NULL && gex_AD_QueryTM(ad) == tm, "round %lu: state of another", (unsigned long)i);
        gex_AD_SetCData(ad, &before);
        gex_AD_Destroy(ad);
        before = ad;
    }
}

/* Halves of all ranks, which live, work and end, while another team and a domain live. */
static void together(gex_TM_t kept, gex_AD_t ad, size_t rounds) {
    size_t i;
    for (i = 0; i < rounds; i++) {
        int color = (int)((ex_me + i) % 2);
        uint64_t one = 1, sum = 0, old;
        gex_TM_t half = split(ex_tm, color, ex_ranks - ex_me);
        gex_Event_Wait(gex_Coll_ReduceToAllNB(half, &sum, &one, GEX_DT_U64, 8, 1, GEX_OP_ADD, NULL, NULL, 0));
        CHECK(sum == gex_TM_QuerySize(half), "a half of %d ranks has the sum %lu", (int)gex_TM_QuerySize(half), (unsigned long)sum);
        gex_Event_Wait(gex_AD_OpNB_U64(ad, &old, 0, check_at(0, 0), GEX_OP_FADD, 1, 0, 0));
        gex_TM_Destroy(half, NULL, 0);
        ex_barrier(kept);
    }
}

#ifdef GASNET_PAR
#include <pthread.h>

/* Teams that one thread of each rank makes of a parent; a second thread makes some of another. */
struct maker {
    gex_TM_t parent;
    int alone; /* each rank in a team of its own, or all ranks in one */
    size_t rounds;
};

static void *make_teams(void *arg) {
    const struct maker *maker = (const struct maker *)arg;
    gex_Rank_t size = maker->alone ? 1 : ex_ranks;
    size_t i;
    for (i = 0; i < maker->rounds; i++) {
        uint64_t one = 1, sum = 0;
        gex_TM_t tm = split(maker->parent, maker->alone ? (int)ex_me : 0, ex_me);
        CHECK(gex_TM_QuerySize(tm) == size, "round %lu: %d ranks in a team of %d", (unsigned long)i, (int)gex_TM_QuerySize(tm), (int)size);
        gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, &sum, &one, GEX_DT_U64, 8, 1, GEX_OP_ADD, NULL, NULL, 0));
        CHECK(sum == size, "round %lu: the sum of %d ones is %lu", (unsigned long)i, (int)size, (unsigned long)sum);
        gex_TM_Destroy(tm, NULL, maker->alone && i % 2 ? GEX_FLAG_GLOBALLY_QUIESCED : 0);
    }
    return NULL;
}

static void at_once(size_t rounds) {
    struct maker makers[2];
    pthread_t thread;
    int i;
    for (i = 0; i < 2; i++) {
        makers[i].parent = split(ex_tm, 0, i ? ex_ranks - ex_me : ex_me);
        makers[i].alone = i;
        makers[i].rounds = rounds;
    }
    CHECK(!pthread_create(&thread, NULL, make_teams, &makers[1]), "no thread");
    make_teams(&makers[0]);
    pthread_join(thread, NULL);
    for (i = 0; i < 2; i++) gex_TM_Destroy(makers[i].parent, NULL, 0);
}
#endif

int main(int argc, char **argv) {
    size_t rounds, some;
    gex_TM_t alone, kept;
    gex_AD_t ad;
    long before;
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)name_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "name"},
        {0, (gex_AM_Fn_t)named_h, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "named"},
    };
    ex_init("testexobjects", &argc, &argv);
    CHECK_OK(gex_EP_RegisterHandlers(ex_ep, table, 2));
    h_name = table[0].gex_index;
    h_named = table[1].gex_index;
    rounds = check_arg(argc, argv, 1, 100000);
    some = rounds < 200 ? rounds : 200;
    alone = split(ex_tm, (int)ex_me, 0);
    kept = split(ex_tm, 0, ex_me);
    gex_TM_SetCData(kept, &alone);
    ex_attach(GASNET_PAGESIZE);
    memset(check_at(ex_me, 0), 0, sizeof(uint64_t));
    gex_AD_Create(&ad, ex_tm, GEX_DT_U64, GEX_OP_FADD | GEX_OP_GET, 0);
    ex_barrier(ex_tm);
    together(kept, ad, some);
    late();
#ifdef GASNET_PAR
    at_once(some);
#endif
    teams(alone, rounds / 2);
    domains(alone, rounds / 2);
    before = ex_resident();
    teams(alone, rounds / 2);
    bounded("teams", before, rounds / 2);
    before = ex_resident();
    domains(alone, rounds / 2);
    bounded("domains", before, rounds / 2);
    ex_barrier(ex_tm);
    CHECK(gex_TM_QueryCData(kept) == &alone && gex_TM_QuerySize(kept) == ex_ranks, "a team that lives has changed");
    if (ex_me == 0) {
        uint64_t sum = 0;
        gex_Event_Wait(gex_AD_OpNB_U64(ad, &sum, 0, check_at(0, 0), GEX_OP_FADD, 0, 0, 0));
        CHECK(sum == (uint64_t)some * ex_ranks, "%lu operations were counted", (unsigned long)sum);
    }
    ex_barrier(kept);
    gex_AD_Destroy(ad);
    gex_TM_Destroy(kept, NULL, 0);
    gex_TM_Destroy(alone, NULL, 0);
    check_done();
}
