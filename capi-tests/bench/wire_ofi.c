/* wire_ofi: what a provider of libfabric costs between two hosts, without GASNet. Round trips of a
 * tagged message and an answer of 8 bytes over a reliable-datagram endpoint. The variable
 * GASNET_OFI_PROVIDER_INCLUDE names the providers, the preferred one first.
 *
 * usage: wire_ofi [options] [measurement ...]      options: see figures.h; hosts: see wire.h */
#include "wire.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define ADDRESS 256

static struct fi_info *info;
static struct fid_ep *endpoint;
static struct fid_cq *sent, *received;
static struct fid_mr *region;
static fi_addr_t peer;
static void *key; /* of the buffer, where the provider wants it */
static char *answer_buffer; /* follows the buffer of messages */

static void check(const char *what, ssize_t code) {
    if (code == 0) return;
    fprintf(stderr, "process %d: %s: %s\n", bench_me, what, fi_strerror((int)-code));
    exit(1);
}

static void await(struct fid_cq *queue) {
    struct fi_cq_tagged_entry entry;
    for (;;) {
        ssize_t n = fi_cq_read(queue, &entry, 1);
        if (n == 1) return;
        if (n != -FI_EAGAIN) check("fi_cq_read", n);
    }
}

static void transmit(char *from, size_t n) {
    ssize_t code;
    if (n <= info->tx_attr->inject_size) {
        while ((code = fi_tinject(endpoint, from, n, peer, 1)) == -FI_EAGAIN) fi_cq_read(sent, NULL, 0);
        check("fi_tinject", code);
        return;
    }
    while ((code = fi_tsend(endpoint, from, n, key, peer, 1, NULL)) == -FI_EAGAIN) fi_cq_read(sent, NULL, 0);
    check("fi_tsend", code);
    await(sent);
}

static void post(char *to, size_t n) {
    ssize_t code;
    while ((code = fi_trecv(endpoint, to, n, key, peer, 1, 0, NULL)) == -FI_EAGAIN) fi_cq_read(received, NULL, 0);
    check("fi_trecv", code);
}

static void trip(size_t n, long times) {
    wire_buffer[0] = WIRE_MORE;
    while (times--) {
        post(answer_buffer, WIRE_ANSWER);
        transmit(wire_buffer, n);
        await(received);
    }
}
static void last_trip(size_t n) {
    wire_buffer[0] = WIRE_LAST;
    transmit(wire_buffer, n);
}
static void answer_trip(size_t n) {
    for (;;) {
        post(wire_buffer, n);
        await(received);
        if (wire_buffer[0] == WIRE_LAST) return;
        transmit(answer_buffer, WIRE_ANSWER);
    }
}

/* The first of the providers that there is, at the address of this host. */
static void find(void) {
    struct fi_info *hints = fi_allocinfo();
    char list[512], host[256], *name, *rest;
    const char *names = getenv("GASNET_OFI_PROVIDER_INCLUDE");
    int code = -FI_ENODATA;
    snprintf(list, sizeof list, "%s", names ? names : "net,tcp");
    wire_host(bench_me, host, sizeof host);
    hints->caps = FI_TAGGED;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    for (name = strtok_r(list, ",", &rest); name && code; name = strtok_r(NULL, ",", &rest)) {
        hints->fabric_attr->prov_name = strdup(name);
        code = fi_getinfo(FI_VERSION(1, 17), host, NULL, FI_SOURCE, hints, &info);
        free(hints->fabric_attr->prov_name);
        hints->fabric_attr->prov_name = NULL;
    }
    check("fi_getinfo", code);
    fi_freeinfo(hints);
}

static void open_endpoint(void) {
    struct fi_cq_attr queue;
    struct fi_av_attr vector;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *addresses;
    char mine[ADDRESS] = {0}, theirs[ADDRESS];
    size_t length = sizeof mine;
    memset(&queue, 0, sizeof queue);
    memset(&vector, 0, sizeof vector);
    queue.format = FI_CQ_FORMAT_TAGGED;
    check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
    check("fi_domain", fi_domain(fabric, info, &domain, NULL));
    check("fi_av_open", fi_av_open(domain, &vector, &addresses, NULL));
    check("fi_cq_open", fi_cq_open(domain, &queue, &sent, NULL));
    check("fi_cq_open", fi_cq_open(domain, &queue, &received, NULL));
    check("fi_endpoint", fi_endpoint(domain, info, &endpoint, NULL));
    check("fi_ep_bind", fi_ep_bind(endpoint, &addresses->fid, 0));
    check("fi_ep_bind", fi_ep_bind(endpoint, &sent->fid, FI_TRANSMIT));
    check("fi_ep_bind", fi_ep_bind(endpoint, &received->fid, FI_RECV));
    check("fi_enable", fi_enable(endpoint));
    check("fi_getname", fi_getname(&endpoint->fid, mine, &length));
    wire_send(mine, sizeof mine);
    wire_receive(theirs, sizeof theirs);
    if (fi_av_insert(addresses, theirs, 1, &peer, 0, NULL) != 1) wire_fail("fi_av_insert");
    if (info->domain_attr->mr_mode & FI_MR_LOCAL) {
        check("fi_mr_reg", fi_mr_reg(domain, wire_buffer, bench_max + WIRE_ANSWER, FI_SEND | FI_RECV, 0, 0, 0, &region, NULL));
        key = fi_mr_desc(region);
    }
}

int main(int argc, char **argv) {
    size_t n;
    if (!bench_options(argc, argv)) return 2;
    wire_init(argc, argv);
    free(wire_buffer);
    wire_buffer = (char *)calloc(1, bench_max + WIRE_ANSWER);
    if (!wire_buffer) wire_fail("calloc");
    answer_buffer = wire_buffer + bench_max;
    find();
    open_endpoint();
    bench_barrier();
    if (bench_wants("wire_trip", "Round trip (us)"))
        for (n = bench_min; n <= bench_max; n *= 2) bench_row(n, wire_alone(trip, answer_trip, last_trip, n) / 1000);
    return wire_end();
}
