/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lwIP's view of a received frame.
 *
 * lwIP rewrites TCP headers in place, so the headers are copied; the payload stays in the caller's
 * memory.  In the usual case (a segment in order, consumed by its stream at once) nothing refers to
 * it when lwIP returns.  If lwIP has queued the segment because it is out of order, its user may
 * take the payload; else the payload is moved to memory of its own before the caller gets the frame
 * back.
 */
#include <string.h>

#include "net_priv.h"

enum {
    HEADERS_MAX = SIZEOF_ETH_HDR + 60 + 60, /* IPv4 and TCP with all options; IPv6 has fewer */
    HEADER_ALIGN = 2,                       /* puts the IP header on a word boundary */
    SPARE_MAX = 64,
};

struct rx_frame {
    struct pbuf_custom head; /* first: pbuf -> rx_frame */
    struct pbuf_custom body;
    struct rx_frame *spare;
    struct sg_port *port;
    uint8_t *moved; /* the payload's own memory, on the account */
    size_t moved_len;
    unsigned users; /* of head, body, and rx_frame_input() */
    bool body_live;
    uint8_t headers[HEADER_ALIGN + HEADERS_MAX];
};

/* Where queued payloads point that were taken.  Nobody reads it. */
static const uint8_t taken[UINT16_MAX];

static struct rx_frame *spares;
static unsigned spare_count;

static void drop_user(struct rx_frame *f)
{
    if (--f->users) {
        return;
    }
    sg_account_free(f->port->net.account, f->moved, f->moved_len);
    f->moved = NULL;
    if (spare_count < SPARE_MAX) {
        f->spare = spares;
        spares = f;
        spare_count++;
    } else {
        g_free(f);
    }
}

static void head_freed(struct pbuf *p)
{
    drop_user((struct rx_frame *)(void *)p);
}

static void body_freed(struct pbuf *p)
{
    struct rx_frame *f = link_entry(p, struct rx_frame, body);

    f->body_live = false;
    drop_user(f);
}

static struct rx_frame *take_spare(void)
{
    struct rx_frame *f = spares;

    if (!f) {
        return g_try_new0(struct rx_frame, 1);
    }
    spares = f->spare;
    spare_count--;
    return f;
}

bool rx_frame_was_taken(const void *p)
{
    return (uintptr_t)p - (uintptr_t)taken < sizeof(taken);
}

/* lwIP may have trimmed the body at either end.  False: no memory. */
static bool move_body(struct rx_frame *f)
{
    struct pbuf *body = &f->body.pbuf;

    f->moved_len = body->len ? body->len : 1;
    f->moved = sg_account_new(f->port->net.account, f->moved_len);
    if (!f->moved) {
        return false;
    }
    memcpy(f->moved, body->payload, body->len);
    body->payload = f->moved;
    return true;
}

bool rx_frame_input(struct address *addr, const uint8_t *headers, size_t head, const uint8_t *body,
                    size_t len, const struct rx_early *early)
{
    struct rx_frame *f = take_spare();
    bool kept = true;
    struct pbuf *p;

    if (!f) {
        addr->port->count.dropped++;
        return true;
    }
    f->port = addr->port;
    g_assert(head <= HEADERS_MAX && head + len <= UINT16_MAX);
    f->users = 2;
    f->head.custom_free_function = head_freed;
    memcpy(f->headers + HEADER_ALIGN, headers, head);
    p = pbuf_alloced_custom(PBUF_RAW, (u16_t)head, PBUF_REF, &f->head, f->headers + HEADER_ALIGN,
                            HEADERS_MAX);
    if (len) {
        f->users++;
        f->body_live = true;
        f->body.custom_free_function = body_freed;
        pbuf_cat(p, pbuf_alloced_custom(PBUF_RAW, (u16_t)len, PBUF_REF, &f->body,
                                        (uint8_t *)(uintptr_t)body, (u16_t)len));
    }
    if (addr->netif.input(p, &addr->netif) != ERR_OK) {
        pbuf_free(p);
    }
    if (f->body_live && early && early->take(early->opaque)) {
        if (f->body_live) { /* the user may have ended the connection */
            f->body.pbuf.payload = (void *)(uintptr_t)taken;
        }
    } else if (f->body_live) {
        kept = move_body(f);
    }
    drop_user(f);
    return kept;
}
