/* testvis: vector, indexed and strided puts and gets of random shapes, several in flight,
 * checked byte by byte with the surrounding bytes. */
/* faults: flip_put flip_get skip_sync:portals drop_op:portals flip_am:portals drop_am:portals */
/* args: 60 1 */
/* nodes: any */
/* threads: both */
#include "check.h"

#include <gasnet_vis.h>

#define USAGE "[rounds] [seed] [kinds, of v i s]\n"

/* A round has up to FLIGHT operations in flight, each in its own plot on either side. */
#define FLIGHT 4
#define PLOT 16384
#define LEVELS 20
#define PIECES 1024
#define THREADS (CHECK_PAR ? 2 : 1)

/* Part of the segment of each thread: FLIGHT plots for the partner, then FLIGHT local ones. */
#define PART ((size_t)(2 * FLIGHT * PLOT))

enum form { BLOCKING, NB, NBI, REGION, FORMS };

/* The pieces of one side, which may be scribbled on after the call. */
struct side {
    gasnet_memvec_t vec[PIECES];
    void *addr[PIECES];
    size_t stride[LEVELS];
    size_t n, len; /* pieces; bytes of each, of an indexed shape */
    char *base;    /* of the plot, as the call is given it */
    size_t start;  /* of a section: its first byte in the plot */
};

/* One operation. */
struct flight {
    struct side remote, local;
    size_t count[LEVELS + 1], levels;
    size_t total;
    uint32_t there[PLOT], here[PLOT]; /* for each byte, its position in the plots */
    char *want;                       /* the local plot's expected contents */
    char *outside;                    /* local plot outside the segment */
    char kind;
    int put;
    enum form form;
    gasnet_handle_t handle;
};

struct worker {
    struct flight f[FLIGHT];
    char *mirror; /* the expected contents of the partner's plots */
    char *seen;
    uint64_t state;
    char *theirs, *inside;
};

static struct worker *workers;
static gasnet_node_t peer;
static size_t rounds, seed;
static const char *kinds = "vis";

/* ---- shapes ---- */

static size_t rnd(struct worker *w, size_t limit) { return check_random(&w->state, limit); }

static void shuffle(struct worker *w, struct side *s) {
    size_t i;
    for (i = s->n; i > 1; i--) {
        size_t k = rnd(w, i);
        gasnet_memvec_t v = s->vec[i - 1];
        s->vec[i - 1] = s->vec[k];
        s->vec[k] = v;
    }
}

/* Places the pieces, with their lengths given, in the plot in any order, some adjacent. */
static void place(struct worker *w, struct side *s, size_t total, uint32_t *bytes) {
    size_t i, k, at = 0, free_bytes = PLOT - total, b = 0;
    int dense = (int)rnd(w, 3);
    shuffle(w, s);
    for (i = 0; i < s->n; i++) {
        size_t gap = dense == 2 || s->n == 0 ? 0 : rnd(w, free_bytes / s->n + 1);
        if (dense == 1 && rnd(w, 4)) gap = 0;
        s->vec[i].addr = s->base + at + gap;
        at += gap + s->vec[i].len;
        /* An empty piece may have any address. */
        if (s->vec[i].len == 0 && rnd(w, 2)) s->vec[i].addr = rnd(w, 2) ? NULL : (void *)workers;
    }
    if (dense != 2) shuffle(w, s);
    for (i = 0; i < s->n; i++) {
        s->addr[i] = s->vec[i].addr;
        for (k = 0; k < s->vec[i].len; k++) bytes[b++] = (uint32_t)((char *)s->vec[i].addr - s->base + k);
    }
}

/* Cuts `total` bytes into pieces, some of them empty. */
static void cut(struct worker *w, struct side *s, size_t total) {
    static const size_t limits[] = {2, 8, 64, PIECES};
    size_t most = limits[rnd(w, 4)], left = total;
    for (s->n = 0; left || rnd(w, 3); s->n++) {
        size_t room = most - s->n, n;
        if (room == 0) break;
        n = room == 1 ? left : rnd(w, 2 * left / room + 2);
        if (n > left) n = left;
        if (rnd(w, 8) == 0 && room > 1) n = 0;
        s->vec[s->n].len = n;
        left -= n;
    }
}

static void equal(struct side *s, size_t n, size_t len) {
    size_t i;
    for (i = 0; i < n; i++) s->vec[i].len = len;
    s->n = n;
    s->len = len;
}

static void vector_shape(struct worker *w, struct flight *f) {
    f->total = rnd(w, 6) == 0 ? rnd(w, 3) : rnd(w, PLOT);
    cut(w, &f->remote, f->total);
    cut(w, &f->local, f->total);
}

static void indexed_shape(struct worker *w, struct flight *f) {
    size_t a = 1 + rnd(w, 4), b = 1 + rnd(w, 4), most = PLOT / (a * b), unit, k;
    most = rnd(w, 2) && most > 16 ? 16 : most;
    unit = 1 + rnd(w, most);
    k = 1 + rnd(w, PLOT / (a * b * unit));
    if (k * (a > b ? a : b) > PIECES) k = PIECES / (a > b ? a : b);
    if (rnd(w, 10) == 0) k = 0;
    if (rnd(w, 10) == 0) unit = 0;
    f->total = unit * a * b * k;
    equal(&f->remote, k * b, unit * a);
    equal(&f->local, k * a, unit * b);
}

/* Bytes of the section, in its order: first the positions of all elements of the outer levels. */
static void walk(const struct flight *f, const struct side *s, uint32_t *bytes) {
    size_t index[LEVELS + 1] = {0}, b, level;
    for (b = 0; b < f->total; b++) {
        size_t at = s->start + index[0];
        for (level = 0; level < f->levels; level++) at += index[level + 1] * s->stride[level];
        bytes[b] = (uint32_t)at;
        for (level = 0; level <= f->levels && ++index[level] == f->count[level]; level++) index[level] = 0;
    }
}

static void strided_shape(struct worker *w, struct flight *f) {
    size_t extent[2], pad[2], last[2], level, c;
    struct side *sides[2] = {&f->remote, &f->local};
    int i, same;
    f->levels = rnd(w, 3) ? rnd(w, 5) : rnd(w, LEVELS + 1);
    f->total = f->count[0] = 1 + rnd(w, rnd(w, 2) ? 16 : PLOT / 4);
    for (i = 0; i < 2; i++) extent[i] = last[i] = f->count[0];
    for (level = 0; level < f->levels; level++) {
        /* Often contiguous on one side or both. */
        for (i = 0; i < 2; i++) pad[i] = rnd(w, 2) ? 0 : rnd(w, 24);
        same = rnd(w, 3) == 0;
        if (same) pad[0] = pad[1];
        c = rnd(w, f->levels) > 6 ? 1 : 1 + rnd(w, 5);
        for (i = 0; i < 2; i++)
            if ((extent[i] + pad[i]) * c > PLOT) c = 1;
        for (i = 0; i < 2; i++) {
            if (extent[i] + pad[i] > PLOT) pad[i] = 0;
            sides[i]->stride[level] = extent[i] + pad[i];
            extent[i] = sides[i]->stride[level] * c;
            last[i] += sides[i]->stride[level] * (c - 1);
        }
        f->count[level + 1] = c;
        f->total *= c;
    }
    for (i = 0; i < 2; i++) sides[i]->start = rnd(w, PLOT - last[i] + 1);
    if (rnd(w, 12) == 0) {
        f->count[rnd(w, f->levels + 1)] = 0;
        f->total = 0;
    }
    walk(f, &f->remote, f->there);
    walk(f, &f->local, f->here);
}

/* ---- one operation ---- */

static void prepare(struct worker *w, struct flight *f, int i) {
    f->kind = kinds[rnd(w, strlen(kinds))];
    f->put = (int)rnd(w, 2);
    f->form = (enum form)rnd(w, FORMS);
    f->handle = GASNET_INVALID_HANDLE;
    f->remote.base = w->theirs + i * PLOT;
    f->local.base = rnd(w, 2) ? w->inside + i * PLOT : f->outside;
    if (f->kind == 's') {
        strided_shape(w, f);
    } else {
        if (f->kind == 'v') vector_shape(w, f);
        else indexed_shape(w, f);
        place(w, &f->remote, f->total, f->there);
        place(w, &f->local, f->total, f->here);
    }
}

static void expect(struct worker *w, struct flight *f, int i) {
    char *mirror = w->mirror + i * PLOT;
    size_t b;
    check_fill(f->local.base, PLOT, check_mix(w->state));
    memcpy(f->want, f->local.base, PLOT);
    for (b = 0; b < f->total; b++) {
        if (f->put) mirror[f->there[b]] = f->want[f->here[b]];
        else f->want[f->here[b]] = mirror[f->there[b]];
    }
}

/* Calls the form of a function whose name ends in _bulk. */
#define CALL(f, name, args) \
    do { \
        if ((f)->form == BLOCKING) name##_bulk args; \
        else if ((f)->form == NB) (f)->handle = name##_nb_bulk args; \
        else name##_nbi_bulk args; \
    } while (0)

static void start(struct flight *f) {
    struct side *r = &f->remote, *l = &f->local;
    if (f->form == REGION) gasnet_begin_nbi_accessregion();
    switch (f->kind) {
        case 'v':
            if (f->put) CALL(f, gasnet_putv, (peer, r->n, r->vec, l->n, l->vec));
            else CALL(f, gasnet_getv, (l->n, l->vec, peer, r->n, r->vec));
            break;
        case 'i':
            if (f->put) CALL(f, gasnet_puti, (peer, r->n, r->addr, r->len, l->n, l->addr, l->len));
            else CALL(f, gasnet_geti, (l->n, l->addr, l->len, peer, r->n, r->addr, r->len));
            break;
        default:
            if (f->put)
                CALL(f, gasnet_puts, (peer, r->base + r->start, r->stride, l->base + l->start, l->stride, f->count,
                                      f->levels));
            else
                CALL(f, gasnet_gets, (l->base + l->start, l->stride, peer, r->base + r->start, r->stride, f->count,
                                      f->levels));
    }
    if (f->form == REGION) f->handle = gasnet_end_nbi_accessregion();
    /* Lists and arrays belong to the caller again. */
    memset(r->vec, 0x5a, sizeof r->vec);
    memset(l->vec, 0x5a, sizeof l->vec);
    memset(r->addr, 0x5a, sizeof r->addr);
    memset(l->addr, 0x5a, sizeof l->addr);
    memset(r->stride, 0x5a, sizeof r->stride);
    memset(l->stride, 0x5a, sizeof l->stride);
    memset(f->count, 0x5a, sizeof f->count);
}

static void compare(const char *what, const struct flight *f, const char *is, const char *want) {
    static const char *const forms[] = {"blocking", "nb", "nbi", "access region"};
    size_t i, bad = 0, first = 0;
    if (memcmp(is, want, PLOT) == 0) return;
    for (i = 0; i < PLOT; i++)
        if (is[i] != want[i] && bad++ == 0) first = i;
    check_error("%s%c, %s, %lu bytes: %lu bytes of the %s plot are wrong, first at %lu: 0x%02x instead of 0x%02x",
                f->put ? "put" : "get", f->kind, forms[f->form], (unsigned long)f->total, (unsigned long)bad, what,
                (unsigned long)first, is[first] & 0xff, want[first] & 0xff);
}

static void one_round(struct worker *w) {
    gasnet_handle_t handles[FLIGHT];
    int i, n = 1 + (int)rnd(w, FLIGHT);
    for (i = 0; i < n; i++) {
        prepare(w, &w->f[i], i);
        expect(w, &w->f[i], i);
    }
    for (i = 0; i < n; i++) {
        start(&w->f[i]);
        handles[i] = w->f[i].handle;
        if (w->f[i].form == BLOCKING && !w->f[i].put) compare("local", &w->f[i], w->f[i].local.base, w->f[i].want);
    }
    if (rnd(w, 2)) gasnet_wait_syncnb_all(handles, (size_t)n);
    else
        for (i = 0; i < n; i++) gasnet_wait_syncnb(handles[i]);
    gasnet_wait_syncnbi_all();
    for (i = 0; i < n; i++) compare("local", &w->f[i], w->f[i].local.base, w->f[i].want);
    gasnet_get_bulk(w->seen, peer, w->theirs, FLIGHT * PLOT);
    for (i = 0; i < n; i++) {
        compare("remote", &w->f[i], w->seen + i * PLOT, w->mirror + i * PLOT);
        memcpy(w->mirror + i * PLOT, w->seen + i * PLOT, PLOT);
    }
}

static void work(int id) {
    struct worker *w = &workers[id];
    size_t r;
    int i;
    w->state = seed * 1000003 + gasnet_mynode() * 2 + (unsigned)id;
    w->theirs = check_at(peer, (size_t)id * PART);
    w->inside = check_at(gasnet_mynode(), (size_t)id * PART + FLIGHT * PLOT);
    w->mirror = (char *)malloc(FLIGHT * PLOT);
    w->seen = (char *)malloc(FLIGHT * PLOT);
    for (i = 0; i < FLIGHT; i++) {
        w->f[i].want = (char *)malloc(PLOT);
        w->f[i].outside = (char *)malloc(PLOT);
    }
    check_fill(w->mirror, FLIGHT * PLOT, w->state);
    gasnet_put_bulk(peer, w->theirs, w->mirror, FLIGHT * PLOT);
    for (r = 0; r < rounds; r++) {
        check_alive("rounds");
        one_round(w);
    }
}

/* ---- arguments as text ---- */

/* A buffer of `size` bytes, and one more that must stay unwritten. */
static char *text_buffer(size_t size) {
    char *buf = (char *)malloc(size + 1);
    memset(buf, 'x', size + 1);
    return buf;
}

static void text_done(char *buf, size_t size, const char *what, const char *word) {
    CHECK(memchr(buf, 0, size), "%s: the text does not end in its buffer", what);
    CHECK(buf[size] == 'x', "%s: more bytes are written than the buffer has", what);
    if (memchr(buf, 0, size)) CHECK(strstr(buf, word), "%s: no '%s' in: %s", what, word, buf);
    free(buf);
}

static void texts(void) {
    char area[100];
    gasnet_memvec_t list[3];
    void *addrs[2];
    size_t strides[2] = {10, 50}, counts[3] = {4, 5, 2}, size;
    gasneti_memveclist_stats_t s;
    gasneti_addrlist_stats_t a;
    char *buf;
    list[0].addr = area + 50, list[0].len = 50;
    list[1].addr = area, list[1].len = 7;
    list[2].addr = area + 20, list[2].len = 0;
    addrs[0] = area + 40;
    addrs[1] = area;

    buf = text_buffer(size = gasnett_format_memveclist_bufsz(3));
    s = gasnett_format_memveclist(buf, 3, list);
    CHECK(s.totalsz == 57 && s.minsz == 0 && s.maxsz == 50 && s.minaddr == area && s.maxaddr == area + 99,
          "gasnett_format_memveclist: wrong sums");
    text_done(buf, size, "gasnett_format_memveclist", "57");

    buf = text_buffer(size = gasnett_format_addrlist_bufsz(2));
    a = gasnett_format_addrlist(buf, 2, addrs, 10);
    CHECK(a.minaddr == area && a.maxaddr == area + 49, "gasnett_format_addrlist: wrong bounds");
    text_done(buf, size, "gasnett_format_addrlist", "20");

    buf = text_buffer(size = gasnett_format_strides_bufsz(2));
    gasnett_format_strides(buf, 2, strides);
    text_done(buf, size, "gasnett_format_strides", "50");

    buf = text_buffer(size = gasnett_format_putvgetv_bufsz(3, 2));
    CHECK(gasnett_format_putvgetv(buf, 1, 3, list, 2, list) == 57, "gasnett_format_putvgetv: wrong total");
    text_done(buf, size, "gasnett_format_putvgetv", "57");

    buf = text_buffer(size = gasnett_format_putigeti_bufsz(2, 1));
    CHECK(gasnett_format_putigeti(buf, 1, 2, addrs, 5, 1, addrs, 10) == 10, "gasnett_format_putigeti: wrong total");
    text_done(buf, size, "gasnett_format_putigeti", "10");

    buf = text_buffer(size = gasnett_format_putsgets_bufsz(2));
    CHECK(gasnett_format_putsgets(buf, NULL, 1, area, strides, area, strides, counts, 2) == 40,
          "gasnett_format_putsgets: wrong total");
    text_done(buf, size, "gasnett_format_putsgets", "40");
}

static void choose(const char *ampipe, const char *remotecontig, const char *maxchunk) {
    setenv("GASNET_VIS_AMPIPE", ampipe, 0);
    setenv("GASNET_VIS_REMOTECONTIG", remotecontig, 0);
    setenv("GASNET_VIS_MAXCHUNK", maxchunk, 0);
}

int main(int argc, char **argv) {
#if CHECK_PAR
    struct check_thread *others;
#endif
    int i;
    check_init("testvis", &argc, &argv);
    rounds = check_arg(argc, argv, 1, 200);
    seed = check_arg(argc, argv, 2, 1);
    if (argc > 3) kinds = argv[3];
    if (argc > 4 || strspn(kinds, "vis") != strlen(kinds) || !*kinds) check_usage(USAGE);
    /* Ranks take different paths, unless the user chose one; the library reads the variable at
     * attach. */
    switch (gasnet_mynode() % 4) {
        case 1: choose("1", "1", "2K"); break;
        case 2: choose("0", "1", "256"); break;
        case 3: choose("1", "0", "64"); break;
    }
    check_attach(NULL, 0, THREADS * PART);
    peer = check_peer();
    workers = (struct worker *)calloc(THREADS, sizeof *workers);
    if (gasnet_mynode() == 0) printf("testvis: %lu rounds, seed %lu\n", (unsigned long)rounds, (unsigned long)seed);
    texts();
    check_barrier();
#if CHECK_PAR
    others = check_start(THREADS - 1, 1, work);
    work(0);
    check_join(others, THREADS - 1);
#else
    work(0);
#endif
    check_barrier();
    for (i = 0; i < THREADS; i++) {
        int k;
        for (k = 0; k < FLIGHT; k++) {
            free(workers[i].f[k].want);
            free(workers[i].f[k].outside);
        }
        free(workers[i].mirror);
        free(workers[i].seen);
    }
    free(workers);
    check_done();
}
