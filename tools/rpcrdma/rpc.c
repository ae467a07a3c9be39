/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rpc.h"

#include <stdarg.h>

#include "rpc_xdr.h"

enum {
    RPC_VERSION = 2,
    NFS3_READLINK = 5,
    NFS3_READ = 6,
    NFS3_WRITE = 7,
    NFS3_SYMLINK = 10,
    CB_SEQUENCE = 11
};

static void open_stream(XDR *x, struct sg_span in)
{
    /* libtirpc's streams only read what they decode from. */
    xdrmem_create(x, (char *)in.p, (u_int)SG_MIN(in.len, INT32_MAX), XDR_DECODE);
}

static bool parse_call(XDR *x, struct rr_rpc *rpc)
{
    rr_xdr_call call = { 0 };
    bool done = xdr_rr_xdr_call(x, &call) && call.rpcvers == RPC_VERSION;

    rpc->prog = call.prog;
    rpc->vers = call.vers;
    rpc->proc = call.proc;
    xdr_free((xdrproc_t)xdr_rr_xdr_call, (char *)&call);
    return done;
}

static bool parse_reply(XDR *x, struct rr_rpc *rpc)
{
    rr_xdr_reply reply = { 0 };
    bool done = xdr_rr_xdr_reply(x, &reply);

    rpc->accepted = reply.body.stat == 0 && reply.body.rr_xdr_reply_body_u.accepted.stat == 0;
    if (done) {
        xdr_free((xdrproc_t)xdr_rr_xdr_reply, (char *)&reply);
    } else if (reply.body.stat == 0) {
        xdr_free((xdrproc_t)xdr_rr_xdr_accepted, (char *)&reply.body.rr_xdr_reply_body_u.accepted);
    }
    return done;
}

bool rr_rpc_parse(struct sg_span in, struct rr_rpc *rpc)
{
    bool done = false;
    u_int type;
    XDR x;

    memset(rpc, 0, sizeof(*rpc));
    open_stream(&x, in);
    if (xdr_u_int(&x, &rpc->xid) && xdr_u_int(&x, &type)) {
        rpc->type = type;
        xdr_setpos(&x, 0);
        done = type == RR_CALL ? parse_call(&x, rpc) : type == RR_REPLY && parse_reply(&x, rpc);
        rpc->body = xdr_getpos(&x);
    }
    xdr_destroy(&x);
    return done;
}

/* ---- Names and forms of procedures ---- */

/*
 * The form of arguments, one letter each:
 *   w  4 octets     d  8 octets     q  16 octets     s  counted octets     b  counted words
 *   R  4 octets: the largest eligible result     D  counted octets that are DDP-eligible
 *   U  a union, whose arm is what follows, unless it is 0; O  the flag of optional data, likewise
 * NULL: not known, so what follows cannot be found.
 */
struct operation {
    const char *name;
    const char *form;
    enum rr_eligible result;
};

static const struct operation nfs3[] = {
    { "NULL", "", RR_NONE },      { "GETATTR", "s", RR_NONE },   { "SETATTR", "", RR_NONE },
    { "LOOKUP", "ss", RR_NONE },  { "ACCESS", "sw", RR_NONE },   { "READLINK", "s", RR_SOME },
    { "READ", "sdR", RR_SOME },   { "WRITE", "sdwwD", RR_NONE }, { "CREATE", "", RR_NONE },
    { "MKDIR", "", RR_NONE },     { "SYMLINK", NULL, RR_NONE },  { "MKNOD", "", RR_NONE },
    { "REMOVE", "ss", RR_NONE },  { "RMDIR", "ss", RR_NONE },    { "RENAME", "ssss", RR_NONE },
    { "LINK", "sss", RR_NONE },   { "READDIR", "", RR_NONE },    { "READDIRPLUS", "", RR_NONE },
    { "FSSTAT", "s", RR_NONE },   { "FSINFO", "s", RR_NONE },    { "PATHCONF", "s", RR_NONE },
    { "COMMIT", "sdw", RR_NONE },
};

/* echo.h */
static const struct operation echo[] = {
    { "NULL", "", RR_NONE },  { "READ", "wR", RR_SOME }, { "WRITE", "wD", RR_NONE },
    { "LIST", "w", RR_NONE }, { "TWO", "RR", RR_SOME },  { "PUT", "wUOD", RR_NONE },
};

/* Callbacks, by number; RFC 8881 section 20, RFC 7862 section 16. */
static const char *const callbacks[] = {
    [3] = "CB_GETATTR",
    [4] = "CB_RECALL",
    [5] = "CB_LAYOUTRECALL",
    [6] = "CB_NOTIFY",
    [7] = "CB_PUSH_DELEG",
    [8] = "CB_RECALL_ANY",
    [9] = "CB_RECALLABLE_OBJ_AVAIL",
    [10] = "CB_RECALL_SLOT",
    [11] = "CB_SEQUENCE",
    [12] = "CB_WANTS_CANCELLED",
    [13] = "CB_NOTIFY_LOCK",
    [14] = "CB_NOTIFY_DEVICEID",
    [15] = "CB_OFFLOAD",
};

/* By number; RFC 7530 section 16, RFC 8881 section 18, RFC 7862 section 15, RFC 8276. */
static const struct operation nfs4[] = {
    [3] = { "ACCESS", "w", RR_NONE },
    [4] = { "CLOSE", "wq", RR_NONE },
    [5] = { "COMMIT", "dw", RR_NONE },
    [6] = { "CREATE", NULL, RR_NONE },
    [7] = { "DELEGPURGE", "d", RR_NONE },
    [8] = { "DELEGRETURN", "q", RR_NONE },
    [9] = { "GETATTR", "b", RR_NONE },
    [10] = { "GETFH", "", RR_NONE },
    [11] = { "LINK", "s", RR_NONE },
    [12] = { "LOCK", NULL, RR_NONE },
    [13] = { "LOCKT", NULL, RR_NONE },
    [14] = { "LOCKU", "wwqdd", RR_NONE },
    [15] = { "LOOKUP", "s", RR_NONE },
    [16] = { "LOOKUPP", "", RR_NONE },
    [17] = { "NVERIFY", "bs", RR_NONE },
    [18] = { "OPEN", NULL, RR_NONE },
    [19] = { "OPENATTR", "w", RR_NONE },
    [20] = { "OPEN_CONFIRM", "qw", RR_NONE },
    [21] = { "OPEN_DOWNGRADE", "qwww", RR_NONE },
    [22] = { "PUTFH", "s", RR_NONE },
    [23] = { "PUTPUBFH", "", RR_NONE },
    [24] = { "PUTROOTFH", "", RR_NONE },
    [25] = { "READ", "qdR", RR_SOME },
    [26] = { "READDIR", "ddwwb", RR_NONE },
    [27] = { "READLINK", "", RR_SOME },
    [28] = { "REMOVE", "s", RR_NONE },
    [29] = { "RENAME", "ss", RR_NONE },
    [30] = { "RENEW", "d", RR_NONE },
    [31] = { "RESTOREFH", "", RR_NONE },
    [32] = { "SAVEFH", "", RR_NONE },
    [33] = { "SECINFO", "s", RR_NONE },
    [34] = { "SETATTR", "qbs", RR_NONE },
    [35] = { "SETCLIENTID", NULL, RR_NONE },
    [36] = { "SETCLIENTID_CONFIRM", "dd", RR_NONE },
    [37] = { "VERIFY", "bs", RR_NONE },
    [38] = { "WRITE", "qdwD", RR_NONE },
    [39] = { "RELEASE_LOCKOWNER", "ds", RR_NONE },
    [40] = { "BACKCHANNEL_CTL", NULL, RR_NONE },
    [41] = { "BIND_CONN_TO_SESSION", "qww", RR_NONE },
    [42] = { "EXCHANGE_ID", NULL, RR_NONE },
    [43] = { "CREATE_SESSION", NULL, RR_NONE },
    [44] = { "DESTROY_SESSION", "q", RR_NONE },
    [45] = { "FREE_STATEID", "q", RR_NONE },
    [46] = { "GET_DIR_DELEGATION", NULL, RR_NONE },
    [47] = { "GETDEVICEINFO", NULL, RR_NONE },
    [48] = { "GETDEVICELIST", NULL, RR_NONE },
    [49] = { "LAYOUTCOMMIT", NULL, RR_NONE },
    [50] = { "LAYOUTGET", NULL, RR_NONE },
    [51] = { "LAYOUTRETURN", NULL, RR_NONE },
    [52] = { "SECINFO_NO_NAME", "w", RR_NONE },
    [53] = { "SEQUENCE", "qwwww", RR_NONE },
    [54] = { "SET_SSV", "ss", RR_NONE },
    [55] = { "TEST_STATEID", NULL, RR_NONE },
    [56] = { "WANT_DELEGATION", NULL, RR_NONE },
    [57] = { "DESTROY_CLIENTID", "d", RR_NONE },
    [58] = { "RECLAIM_COMPLETE", "w", RR_NONE },
    [59] = { "ALLOCATE", "qdd", RR_NONE },
    [60] = { "COPY", NULL, RR_NONE },
    [61] = { "COPY_NOTIFY", NULL, RR_NONE },
    [62] = { "DEALLOCATE", "qdd", RR_NONE },
    [63] = { "IO_ADVISE", "qddb", RR_NONE },
    [64] = { "LAYOUTERROR", NULL, RR_NONE },
    [65] = { "LAYOUTSTATS", NULL, RR_NONE },
    [66] = { "OFFLOAD_CANCEL", "q", RR_NONE },
    [67] = { "OFFLOAD_STATUS", "q", RR_NONE },
    [68] = { "READ_PLUS", "qdw", RR_UNKNOWN },
    [69] = { "SEEK", "qdw", RR_NONE },
    [70] = { "WRITE_SAME", NULL, RR_NONE },
    [71] = { "CLONE", "qqddd", RR_NONE },
    [72] = { "GETXATTR", "s", RR_NONE },
    [73] = { "SETXATTR", "wss", RR_NONE },
    [74] = { "LISTXATTRS", "dw", RR_NONE },
    [75] = { "REMOVEXATTR", "s", RR_NONE },
};

static __attribute__((format(printf, 2, 3))) void add_name(struct rr_call_info *info,
                                                           const char *format, ...)
{
    size_t used = strlen(info->name);
    va_list ap;

    va_start(ap, format);
    vsnprintf(info->name + used, sizeof(info->name) - used, format, ap);
    va_end(ap);
}

/* ---- Arguments ---- */

/* The reduced stream, and by how much it is shorter up to here. */
struct walk {
    XDR x;
    uint32_t removed;
    size_t len;
    const struct rr_header *h;
    struct rr_call_info *info;
    bool absent; /* the rest of the arguments */
};

static bool skip(struct walk *w, uint64_t octets)
{
    uint64_t to = xdr_getpos(&w->x) + octets;

    return to <= w->len && xdr_setpos(&w->x, (u_int)to);
}

static uint64_t padded(uint32_t len)
{
    return sg_align_up(len, BYTES_PER_XDR_UNIT);
}

/* Counted octets that are DDP-eligible: in the stream, or in Read chunks. */
static bool eligible(struct walk *w, uint32_t length)
{
    struct rr_call_info *info = w->info;
    uint32_t position = xdr_getpos(&w->x) + w->removed;
    uint64_t octets = rr_position_octets(w->h, position);
    bool reduced = octets > 0;

    info->arguments = RR_SOME;
    if (info->items == RR_ITEMS_MAX) {
        return false;
    }
    info->item[info->items++] = (struct rr_item){ position, length, reduced, xdr_getpos(&w->x) };
    if (reduced) {
        w->removed += (uint32_t)padded((uint32_t)SG_MIN(octets, UINT32_MAX - 3));
        return true;
    }
    info->missing = !skip(w, padded(length));
    return !info->missing;
}

/* Has something gone into a Read chunk that begins here, and has to stay? */
static bool has_moved(struct walk *w, char form)
{
    static const char forms[RR_STAYS + 1] = { [RR_COUNT] = 'D', [RR_FLAG] = 'O', [RR_UNION] = 'U' };
    const char *found = strchr(forms, form);
    uint32_t position = xdr_getpos(&w->x) + w->removed;

    if (!found || !rr_position_octets(w->h, position)) {
        return false;
    }
    w->info->moved = position;
    w->info->stays = (enum rr_stays)(found - forms);
    return true;
}

static bool argument(struct walk *w, char form)
{
    u_int n = 0;

    if (form == 'd' || form == 'q') {
        return skip(w, form == 'd' ? 8 : 16);
    }
    if (has_moved(w, form)) {
        return false;
    }
    if (!xdr_u_int(&w->x, &n)) {
        return false;
    }
    switch (form) {
    case 's':
        return skip(w, padded(n));
    case 'b':
        return skip(w, (uint64_t)BYTES_PER_XDR_UNIT * n);
    case 'R':
        w->info->result_max = SG_MAX(w->info->result_max, n);
        return true;
    case 'D':
        return eligible(w, n);
    case 'U':
    case 'O':
        w->absent = n == 0;
        return true;
    default:
        return true;
    }
}

/* All arguments of an operation; false: what follows cannot be found. */
static bool arguments(struct walk *w, const char *form)
{
    if (!form) {
        return false;
    }
    for (; *form && !w->absent; form++) {
        if (!argument(w, *form)) {
            return false;
        }
    }
    return true;
}

static void describe_nfs3(struct walk *w, uint32_t proc)
{
    const struct operation *op = proc < SG_ARRAY_SIZE(nfs3) ? &nfs3[proc] : NULL;

    if (!op) {
        add_name(w->info, " procedure %u", proc);
        return;
    }
    add_name(w->info, " %s", op->name);
    w->info->results = op->result;
    w->info->arguments = proc == NFS3_WRITE || proc == NFS3_SYMLINK ? RR_SOME : RR_NONE;
    w->info->complete = arguments(w, op->form);
    w->info->last = proc == NFS3_WRITE;
}

static void describe_echo(struct walk *w, uint32_t proc)
{
    const struct operation *op = proc < SG_ARRAY_SIZE(echo) ? &echo[proc] : NULL;

    if (!op) {
        add_name(w->info, " procedure %u", proc);
        return;
    }
    add_name(w->info, " %s", op->name);
    w->info->results = op->result;
    w->info->arguments = strchr(op->form, 'D') ? RR_SOME : RR_NONE;
    w->info->complete = arguments(w, op->form);
    w->info->arguments = w->absent ? RR_NONE : w->info->arguments;
    w->info->last = w->info->arguments == RR_SOME;
}

/* The session, sequence, slot, highest slot, "cache this", referring calls. */
static bool skip_cb_sequence(struct walk *w)
{
    u_int lists, calls;

    if (!skip(w, 16 + 4 * 4) || !xdr_u_int(&w->x, &lists)) {
        return false;
    }
    for (u_int i = 0; i < SG_MIN(lists, RR_OPS_MAX); i++) {
        if (!skip(w, 16) || !xdr_u_int(&w->x, &calls) || !skip(w, 8 * (uint64_t)calls)) {
            return false;
        }
    }
    return lists <= RR_OPS_MAX;
}

/* Callbacks have no DDP-eligible items (RFC 8267 section 6.5). */
static void describe_callback(struct walk *w, uint32_t proc)
{
    u_int tag, minor, ident, count, number;

    w->info->arguments = w->info->results = RR_NONE;
    add_name(w->info, proc ? " CB_COMPOUND" : " CB_NULL");
    if (proc != 1 || !xdr_u_int(&w->x, &tag) || !skip(w, padded(tag)) ||
        !xdr_u_int(&w->x, &minor) || !xdr_u_int(&w->x, &ident) || !xdr_u_int(&w->x, &count)) {
        return;
    }
    for (u_int i = 0; i < SG_MIN(count, RR_OPS_MAX); i++) {
        if (!xdr_u_int(&w->x, &number)) {
            return;
        }
        add_name(w->info, " %s",
                 number < SG_ARRAY_SIZE(callbacks) && callbacks[number] ? callbacks[number] : "?");
        if (number != CB_SEQUENCE || !skip_cb_sequence(w)) {
            if (i + 1 < count) {
                add_name(w->info, " ...");
            }
            return;
        }
    }
}

static void describe_compound(struct walk *w)
{
    struct rr_call_info *info = w->info;
    u_int tag, minor, count, number;

    info->arguments = info->results = RR_UNKNOWN;
    if (!xdr_u_int(&w->x, &tag) || !skip(w, padded(tag)) || !xdr_u_int(&w->x, &minor) ||
        !xdr_u_int(&w->x, &count)) {
        return;
    }
    add_name(info, ".%u", minor);
    for (u_int i = 0; i < SG_MIN(count, RR_OPS_MAX); i++) {
        const struct operation *op;

        if (!xdr_u_int(&w->x, &number)) {
            return;
        }
        op = number < SG_ARRAY_SIZE(nfs4) && nfs4[number].name ? &nfs4[number] : NULL;
        add_name(info, " %s", op ? op->name : "?");
        if (op && op->result == RR_SOME) {
            info->results = RR_SOME;
        }
        if (!op || op->result == RR_UNKNOWN || !arguments(w, op->form)) {
            if (i + 1 < count) {
                add_name(info, " ...");
            }
            return;
        }
    }
    if (count <= RR_OPS_MAX) {
        info->complete = true;
        info->results = info->results == RR_SOME ? RR_SOME : RR_NONE;
        info->arguments = info->items ? RR_SOME : RR_NONE;
    }
}

void rr_call_describe(const struct rr_rpc *rpc, struct sg_span stream, const struct rr_header *h,
                      struct rr_call_info *info)
{
    struct walk w = { .len = stream.len, .h = h, .info = info };

    memset(info, 0, sizeof(*info));
    open_stream(&w.x, stream);
    skip(&w, rpc->body);
    if (rpc->prog == RR_PROG_NFS && rpc->vers == 4) {
        add_name(info, "NFS4");
        if (rpc->proc == 1) {
            describe_compound(&w);
        } else {
            add_name(info, rpc->proc ? " procedure %u" : " NULL", rpc->proc);
            info->arguments = info->results = RR_NONE;
        }
    } else if (rpc->prog == RR_PROG_NFS && rpc->vers == 3) {
        add_name(info, "NFS3");
        describe_nfs3(&w, rpc->proc);
    } else if (rpc->prog == RR_PROG_NFS_CALLBACK) {
        add_name(info, "NFS4 callback");
        describe_callback(&w, rpc->proc);
    } else if (rpc->prog == RR_PROG_ECHO) {
        add_name(info, "echo");
        describe_echo(&w, rpc->proc);
    } else {
        add_name(info, "program %u version %u procedure %u", rpc->prog, rpc->vers, rpc->proc);
    }
    xdr_destroy(&w.x);
}

/* ---- Results ---- */

bool rr_result_length(const struct rr_rpc *call, const struct rr_rpc *reply, struct sg_span stream,
                      uint32_t *length, size_t *behind)
{
    rr_xdr_readlink3 link;
    rr_xdr_read3 read;
    u_int status = 1;
    bool done = false;
    XDR x;

    if (call->prog != RR_PROG_NFS || call->vers != 3 || !reply->accepted ||
        (call->proc != NFS3_READ && call->proc != NFS3_READLINK)) {
        return false;
    }
    open_stream(&x, stream);
    if (xdr_setpos(&x, (u_int)reply->body) && xdr_u_int(&x, &status) && status == 0) {
        if (call->proc == NFS3_READ) {
            done = xdr_rr_xdr_read3(&x, &read);
            *length = read.length;
        } else {
            done = xdr_rr_xdr_readlink3(&x, &link);
            *length = link.length;
        }
        *behind = done ? stream.len - xdr_getpos(&x) : 0;
    }
    xdr_destroy(&x);
    return done;
}
