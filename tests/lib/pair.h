/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two adapters, each with its machine and mini-driver, joined by an in-memory switch or a link.
 *
 * Side 0 connects, side 1 listens on PAIR_PORT.  Each side has a domain, one completion queue, a
 * buffer registered with all rights, and one queue pair made by pair_open().
 */
#ifndef SG_TESTS_PAIR_H
#define SG_TESTS_PAIR_H

#include "mini_driver.h"
#include "stream_mem.h"

enum { PAIR_PORT = 7471, PAIR_MEM = 4 << 20, PAIR_BUF = 256 * 1024, PAIR_CQE = 256 };

struct pair_side {
    struct test_host h;
    struct md md;
    struct sg_endpoint at;
    uint32_t pd;
    struct md_cq cq;
    struct md_qp qp;
    uint64_t buf;  /* PAIR_BUF octets */
    uint32_t stag; /* all of buf, local write, remote read and write; va is the bus address */
    uint32_t conn;
};

struct pair_link;

struct pair {
    struct sg_mem_switch *sw; /* NULL: there is a link */
    struct pair_link *link;
    struct pair_side side[2];
    uint32_t listener;
    uint16_t connect_flags; /* SG_CONNECT_*, of both sides */
    size_t base_brk[2];     /* of guest memory, before anything was opened */
};

/* A network other than the in-memory switch: tcp_link.h. */
struct pair_link {
    /* Joins a side; its memory and clock exist, its adapter does not yet. */
    struct sg_stream_net *(*join)(struct pair_link *link, int i, struct pair_side *side);
    /* As sg_mem_switch_run(). */
    uint64_t (*run)(struct pair_link *link, uint64_t now_ns);
    void (*free)(struct pair_link *link);
};

/*
 * What programs see differently on the wires (docs/manual/wires.md), for tests that run on each:
 *
 *                              iWARP           RDMA/TCP of 2000
 *   a Read that is refused     REM_ACCESS_ERR  FLUSH_ERR: there is no report of errors
 *   ... fails at the peer      REM_OP_ERR      FLUSH_ERR
 *   vendor_err of both         the Terminate   0
 *   the sender of a fault      QP_FATAL        no event but CM_DISCONNECT
 *   own faulty work request    TERMINATED      RESET, in CM_DISCONNECT
 *   the peer's faulty one      TERMINATED      CLOSED: a FIN
 *   mpa_rev of a connection    2               0
 *   octets of private data     508             512: no depths of MPA among them
 *   the server's first message waits           goes at once
 *   Send with Invalidate       yes             LOC_QP_OP_ERR
 *   RFC 7306                   yes             LOC_QP_OP_ERR
 */
struct pair_wire {
    bool terminates; /* reports errors to the peer */
    bool waits, invalidates, rfc7306;
    uint8_t refused, failed;       /* enum sg_wc_status */
    uint8_t own_fault, peer_fault; /* enum sg_cm_status */
    uint8_t mpa_rev;
    uint16_t pdata_max;
};

/* Of pair_default_config(). */
const struct pair_wire *pair_wire(void);
/* For cases of some wires only (struct t_case). */
bool pair_wire_waits(void);
bool pair_wire_invalidates(void);
bool pair_wire_rfc7306(void);

void pair_default_config(struct sg_adapter_config *config);
/* NULL: defaults; immediate mode. */
void pair_start(struct pair *p, const struct sg_adapter_config *config,
                const struct sg_mem_options *net);
/* The same with this many octets of guest memory on each side. */
void pair_start_sized(struct pair *p, const struct sg_adapter_config *config,
                      const struct sg_mem_options *net, size_t mem);
/* The same on a link, which the pair owns from then on. */
void pair_start_on(struct pair *p, const struct sg_adapter_config *config, struct pair_link *link,
                   size_t mem);
/* Two adapters with different configurations. */
void pair_start_two(struct pair *p, const struct sg_adapter_config *first,
                    const struct sg_adapter_config *second);
void pair_stop(struct pair *p);
/* Runs both until nothing moves; the clock stands still. */
void pair_settle(struct pair *p);
/* Advances the time in steps of the deadlines. */
void pair_pass(struct pair *p, uint64_t ns);

/* A queue pair at each side; p0 and p1 may be NULL, pd and queues are filled in. */
void pair_open(struct pair *p, const struct md_qp_params *params);
/* Posts CONNECT; returns the connection id, or 0 with *status. */
uint32_t pair_connect_cmd(struct pair *p, struct md_qp *qp, uint16_t ird, uint16_t ord,
                          const char *pdata, enum sg_status *status);
enum sg_status pair_answer(struct pair *p, enum sg_admin_opcode op, uint32_t qpn, uint32_t conn,
                           uint16_t ird, uint16_t ord, const char *pdata);
/* Whole setup of the two queue pairs; fails the program if it does not work. */
void pair_connect(struct pair *p);
/* Destroys the queue pairs and lets the connections die. */
void pair_close(struct pair *p);

/* Next async event of a side after settling; asserts that there is one of this kind. */
struct sg_eqe pair_expect(struct pair *p, int side, enum sg_event event);

static inline uint8_t *pair_buf(struct pair *p, int side)
{
    return test_host_ptr(&p->side[side].h, p->side[side].buf);
}

#endif
