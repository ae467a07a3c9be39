/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rig for tests of the iWARP engine: one engine, a simple model of verbs above it, and a peer that
 * only produces octets, joined by an in-memory stream.
 *
 * The rig logs all upcalls to verbs as words; tests compare the log.  The
 * model of verbs has one array of memory and some STags; see rig.c and, for the extensions,
 * rig_requests.c.
 */
#ifndef SG_TESTS_PROTO_RIG_H
#define SG_TESTS_PROTO_RIG_H

#include "base/bytes.h"
#include "proto/engine.h"
#include "stream_mem.h"

enum {
    RIG_MEM = 1 << 18,       /* octets of memory behind the STags */
    RIG_STAG_RW = 0x100,     /* TO 0 .. RIG_MEM - 1 */
    RIG_STAG_RO = 0x200,     /* the same, no remote write */
    RIG_STAG_WO = 0x300,     /* the same, no remote read */
    RIG_STAG_ALIEN = 0x400,  /* of another protection domain */
    RIG_STAG_BROKEN = 0x500, /* its memory does not respond */
    RIG_RECV_ROOM = 4096,    /* octets of each Receive */
    RIG_QUEUE = 512,
};

struct conn_rig {
    struct sg_host host;
    uint64_t now_ns;
    unsigned kicks;
    uint8_t random; /* the last octet that the host gave */
    struct sg_mem_switch *sw;
    struct sg_stream_net *net_engine, *net_peer;
    struct sg_endpoint at_engine, at_peer;
    struct sg_engine_config config;
    struct sg_engine *e;
    struct sg_engine_listener *listener;
    uint16_t peer_ird, peer_ord; /* of the last request or reply */
    struct sg_conn *c;           /* NULL after the last upcall */
    char log[8192];
    char states[8192]; /* lines of SG_LOG_STATE */

    /* model of verbs */
    uint8_t mem[RIG_MEM];
    uint8_t recv_buf[RIG_RECV_ROOM * 16];
    unsigned recvs; /* posted so far; Receive number n serves MSN n */
    struct sg_msg queue[RIG_QUEUE];
    unsigned head, tail;
    bool tx_ready;
    bool no_room; /* for Requests */
    bool gather_fails, recv_fails;
    bool gather_short;                 /* an octet is missing */
    bool gather_closed, source_closed; /* these upcalls answer CLOSED */
    unsigned later, later_skips;       /* Writes answered with LATER, after 'later_skips' others */
    bool all_closed;                   /* receive upcalls answer CLOSED */
    bool abort_in;                     /* abort in the next upcall but tx_ready and next */
    unsigned max_outstanding, outstanding;
    unsigned gathers;    /* pieces lent and not given back */
    unsigned exec_later; /* how often 'mpe' or 'atomic' asks for another ms */
    bool exec_fails;
    uint64_t answers[2]; /* ordinals of the last two that were reported, the last one first */

    /* the peer */
    struct sg_stream *peer;
    struct sg_stream_listener *peer_listener;
    uint8_t in[1 << 18];
    size_t in_len, in_used;
    bool peer_connected, peer_fin, peer_over;
    enum sg_stream_end peer_why;
};

/* The one rig of the running test; made by rig_start(). */
extern struct conn_rig *rig;

/* Default config: revision 2, CRC, no markers, peer-to-peer with Write and Read, IRD = ORD = 8. */
struct sg_engine_config rig_config(void);
void rig_start(const struct sg_engine_config *config);
void rig_start_net(const struct sg_engine_config *config, const struct sg_mem_options *net);
/* Fails the test when something was left behind. */
void rig_stop(void);

/* Runs until nothing moves; the clock stands still.  rig_pass() first lets time pass. */
void rig_settle(void);
void rig_pass(uint64_t ms);

/* What was logged since the last call. */
const char *rig_log(void);

/* The peer's octets, as hex text.  rig_say_fpdu frames a ULPDU (CRC right, no markers). */
void rig_say(const char *hex);
void rig_say_octets(const uint8_t *p, size_t n);
void rig_say_fpdu(const char *ulpdu_hex);
/* Exactly these octets came from the engine, and no more.  Takes them. */
void rig_expect(const char *hex);
void rig_expect_fpdu(const char *ulpdu_hex);
void rig_expect_nothing(void);
bool rig_peer_accept(void *user, struct sg_stream *s);
void rig_peer_close(void);
/* As rig_peer_close(); the stream then refuses what the engine wants to send. */
void rig_peer_close_only(void);
void rig_peer_abort(void);

/* Connection setup in one step.  Log and peer's input are empty afterwards. */
void rig_active(const char *reply_hex);    /* engine connects; NULL: plain v2 reply */
void rig_request(const char *request_hex); /* peer connects to the engine and asks */
void rig_accept(uint16_t ird, uint16_t ord, const char *pdata);
/* Streaming, engine as responder, an RTR Write was seen. */
void rig_passive(void);
/* The same two with extensions: a draft (enum sg_mpe_draft), RFC 7306.  They call rig_start(). */
void rig_passive_with(uint8_t draft, bool rfc7306);
void rig_active_with(uint8_t draft, bool rfc7306, uint16_t max_ord);

/* Upcalls of the extensions, in rig_requests.c. */
enum sg_exec_result rig_up_mpe(void *user, const struct sg_mpe_req *r, uint8_t hash[64],
                               uint8_t *hash_len, enum sg_mem_status *why, uint64_t *token,
                               uint64_t *again_ns);
void rig_up_answered(void *user, const struct sg_answer *r);
void rig_up_mpe_done(void *user, enum sg_msg_kind kind, const uint8_t *hash, size_t len);
void rig_up_write_placed(void *user);
enum sg_exec_result rig_up_atomic(void *user, const struct sg_atomic_call *r, uint64_t *original,
                                  enum sg_mem_status *why, uint64_t *token, uint64_t *again_ns);
void rig_up_atomic_done(void *user, enum sg_msg_kind kind, uint64_t original);
void rig_note_imm(const struct sg_recv_info *info);
/* Functions of rig.c for rig_requests.c. */
void rig_answered(void);
void rig_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
enum sg_mem_status rig_check(uint32_t stag, uint64_t to, uint64_t n, uint32_t forbidden);

/* Posts a message. */
void rig_send(uint32_t off, uint32_t len);
void rig_post(const struct sg_msg *m);
/* Posts a message and runs until nothing moves. */
void rig_post_now(const struct sg_msg *m);

#endif
