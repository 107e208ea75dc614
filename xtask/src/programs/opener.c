/* A program that opens libibverbs at run time, as NCCL does, and finds every function by dlvsym with
 * the version that introduced it. It writes from one queue pair to another over the first device,
 * whose port must be active, and compares the data. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS(F)                                                                                                             \
    F(get_device_list, "1.1", struct ibv_device **, (int *))                                                                     \
    F(free_device_list, "1.1", void, (struct ibv_device **))                                                                     \
    F(get_device_name, "1.1", const char *, (struct ibv_device *))                                                               \
    F(open_device, "1.1", struct ibv_context *, (struct ibv_device *))                                                           \
    F(close_device, "1.1", int, (struct ibv_context *))                                                                          \
    F(query_device, "1.1", int, (struct ibv_context *, struct ibv_device_attr *))                                                \
    F(query_port, "1.1", int, (struct ibv_context *, uint8_t, struct ibv_port_attr *))                                           \
    F(query_gid, "1.1", int, (struct ibv_context *, uint8_t, int, union ibv_gid *))                                              \
    F(query_qp, "1.1", int, (struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *))                             \
    F(alloc_pd, "1.1", struct ibv_pd *, (struct ibv_context *))                                                                  \
    F(dealloc_pd, "1.1", int, (struct ibv_pd *))                                                                                 \
    F(reg_mr, "1.1", struct ibv_mr *, (struct ibv_pd *, void *, size_t, int))                                                    \
    F(reg_mr_iova2, "1.8", struct ibv_mr *, (struct ibv_pd *, void *, size_t, uint64_t, unsigned int))                           \
    F(dereg_mr, "1.1", int, (struct ibv_mr *))                                                                                   \
    F(create_cq, "1.1", struct ibv_cq *, (struct ibv_context *, int, void *, struct ibv_comp_channel *, int))                    \
    F(destroy_cq, "1.1", int, (struct ibv_cq *))                                                                                 \
    F(create_qp, "1.1", struct ibv_qp *, (struct ibv_pd *, struct ibv_qp_init_attr *))                                           \
    F(modify_qp, "1.1", int, (struct ibv_qp *, struct ibv_qp_attr *, int))                                                       \
    F(destroy_qp, "1.1", int, (struct ibv_qp *))                                                                                 \
    F(fork_init, "1.1", int, (void))                                                                                             \
    F(event_type_str, "1.1", const char *, (enum ibv_event_type))                                                                \
    F(query_ece, "1.10", int, (struct ibv_qp *, struct ibv_ece *))                                                               \
    F(reg_dmabuf_mr, "1.12", struct ibv_mr *, (struct ibv_pd *, uint64_t, size_t, uint64_t, int, int))

#define DECLARE(name, version, answer, parameters) static answer(*p_##name) parameters;
FUNCTIONS(DECLARE)

#define CHECK(condition)                                                                                                         \
    do {                                                                                                                         \
        if (!(condition)) {                                                                                                      \
            fprintf(stderr, "opener: line %d: %s\n", __LINE__, #condition);                                                      \
            exit(1);                                                                                                             \
        }                                                                                                                        \
    } while (0)

static void find_functions(void) {
    void *library = dlopen("libibverbs.so", RTLD_NOW);
    if (!library) {
        library = dlopen("libibverbs.so.1", RTLD_NOW);
    }
    CHECK(library);
#define FIND(name, version, answer, parameters)                                                                                  \
    p_##name = (answer(*) parameters)dlvsym(library, "ibv_" #name, "IBVERBS_" version);                                          \
    CHECK(p_##name);
    FUNCTIONS(FIND)
    CHECK(dlsym(library, "ibv_query_gid") == (void *)p_query_gid);
    CHECK(!dlvsym(library, "ibv_open_device", "IBVERBS_9.9"));
}

static void connect_to(struct ibv_qp *qp, struct ibv_qp *peer, const struct ibv_port_attr *port, union ibv_gid gid) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    CHECK(!p_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = port->active_mtu,
        .dest_qp_num = peer->qp_num,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.port_num = 1, .dlid = port->lid, .is_global = 1, .grh = {.dgid = gid, .hop_limit = 64}},
    };
    CHECK(!p_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    CHECK(!p_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                      IBV_QP_MAX_QP_RD_ATOMIC));
}

int main(void) {
    find_functions();
    CHECK(!p_fork_init() && strlen(p_event_type_str(IBV_EVENT_PORT_ACTIVE)) > 0);
    int count = 0;
    struct ibv_device **devices = p_get_device_list(&count);
    CHECK(devices && count > 0);
    struct ibv_context *context = p_open_device(devices[0]);
    CHECK(context);
    struct ibv_device_attr limits;
    struct ibv_port_attr port = {0};
    union ibv_gid gid;
    CHECK(!p_query_device(context, &limits) && !p_query_port(context, 1, &port) && port.state == IBV_PORT_ACTIVE);
    CHECK(!p_query_gid(context, 1, 0, &gid));
    struct ibv_pd *pd = p_alloc_pd(context);
    static char from[4096], to[4096];
    memset(from, 'a', sizeof from);
    struct ibv_mr *source = p_reg_mr_iova2(pd, from, sizeof from, (uintptr_t)from, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_mr *target = p_reg_mr(pd, to, sizeof to, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    CHECK(source && target && !p_reg_dmabuf_mr(pd, 0, 4096, 0, -1, 0));
    struct ibv_cq *cq = p_create_cq(context, 16, NULL, NULL, 0);
    CHECK(cq);
    struct ibv_qp_init_attr init = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1,
                                    .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qps[2] = {p_create_qp(pd, &init), p_create_qp(pd, &init)};
    CHECK(qps[0] && qps[1]);
    struct ibv_ece ece;
    (void)p_query_ece(qps[0], &ece);
    connect_to(qps[0], qps[1], &port, gid);
    connect_to(qps[1], qps[0], &port, gid);
    struct ibv_sge piece = {.addr = (uintptr_t)from, .length = sizeof from, .lkey = source->lkey};
    struct ibv_send_wr write = {.opcode = IBV_WR_RDMA_WRITE,
                                .sg_list = &piece,
                                .num_sge = 1,
                                .wr.rdma = {.remote_addr = (uintptr_t)to, .rkey = target->rkey}};
    struct ibv_send_wr *bad;
    CHECK(!ibv_post_send(qps[0], &write, &bad));
    struct ibv_wc wc = {0};
    int polled = 0;
    for (long i = 0; i < 2000000000L && polled == 0; i++) {
        polled = ibv_poll_cq(cq, 1, &wc);
    }
    CHECK(polled == 1 && wc.status == IBV_WC_SUCCESS);
    CHECK(!memcmp(from, to, sizeof from));
    printf("%s: 4096 bytes written\n", p_get_device_name(devices[0]));
    CHECK(!p_destroy_qp(qps[0]) && !p_destroy_qp(qps[1]) && !p_destroy_cq(cq));
    CHECK(!p_dereg_mr(source) && !p_dereg_mr(target) && !p_dealloc_pd(pd) && !p_close_device(context));
    p_free_device_list(devices);
    return 0;
}
