/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/queue.h"
#include "qemu/thread.h"
#include "recorder_file.h"

typedef struct Piece {
    QSIMPLEQ_ENTRY(Piece) next;
    size_t len;
    uint8_t octets[];
} Piece;

struct StaghornTraceFile {
    char *path;
    int fd;
    bool made; /* by us: may be deleted */
    QemuThread thread;
    QemuMutex lock; /* of all that follows */
    QemuCond work;  /* for the thread: a piece, or the end */
    QemuCond done;  /* for the others: a piece is written */
    QSIMPLEQ_HEAD(, Piece) pieces;
    size_t waiting; /* octets that are not written yet, the present piece included */
    bool closing;
    char *error;
};

/* ---- The thread ---- */

/* 0, or errno.  All signals are blocked here: a limit of file sizes is an error like others. */
static int write_all(int fd, const uint8_t *p, size_t len)
{
    while (len) {
        ssize_t n = write(fd, p, len);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n ? errno : ENOSPC;
        }
        p += n;
        len -= n;
    }
    return 0;
}

static void fail(StaghornTraceFile *f, int error)
{
    if (error && !f->error) {
        f->error = g_strdup_printf("%s: %s", f->path, strerror(error));
    }
}

static void *write_pieces(void *opaque)
{
    StaghornTraceFile *f = opaque;
    Piece *piece;
    int error;

    qemu_mutex_lock(&f->lock);
    for (;;) {
        while (QSIMPLEQ_EMPTY(&f->pieces) && !f->closing) {
            qemu_cond_wait(&f->work, &f->lock);
        }
        piece = QSIMPLEQ_FIRST(&f->pieces);
        if (!piece) {
            break;
        }
        QSIMPLEQ_REMOVE_HEAD(&f->pieces, next);
        if (!f->error) {
            qemu_mutex_unlock(&f->lock);
            error = write_all(f->fd, piece->octets, piece->len);
            qemu_mutex_lock(&f->lock);
            fail(f, error);
        }
        f->waiting -= piece->len;
        g_free(piece);
        qemu_cond_broadcast(&f->done);
    }
    qemu_mutex_unlock(&f->lock);
    return NULL;
}

/* ---- The others ---- */

bool staghorn_trace_file_append(void *file, const uint8_t *octets, size_t len)
{
    StaghornTraceFile *f = file;
    Piece *piece = g_malloc(sizeof(*piece) + len);
    bool good;

    piece->len = len;
    memcpy(piece->octets, octets, len);
    qemu_mutex_lock(&f->lock);
    while (f->waiting && f->waiting + len > STAGHORN_FILE_QUEUE && !f->error) {
        qemu_cond_wait(&f->done, &f->lock);
    }
    good = !f->error;
    if (good) {
        QSIMPLEQ_INSERT_TAIL(&f->pieces, piece, next);
        f->waiting += len;
        qemu_cond_signal(&f->work);
    } else {
        g_free(piece);
    }
    qemu_mutex_unlock(&f->lock);
    return good;
}

const char *staghorn_trace_file_wait(StaghornTraceFile *f)
{
    const char *error;

    qemu_mutex_lock(&f->lock);
    while (f->waiting) {
        qemu_cond_wait(&f->done, &f->lock);
    }
    error = f->error;
    qemu_mutex_unlock(&f->lock);
    return error;
}

const char *staghorn_trace_file_error(StaghornTraceFile *f)
{
    const char *error;

    qemu_mutex_lock(&f->lock);
    error = f->error;
    qemu_mutex_unlock(&f->lock);
    return error;
}

/* A file that exists may be somebody's recording: it is not overwritten. */
static int open_path(const char *path, bool *made)
{
    struct stat st;
    int fd = qemu_create(path, O_WRONLY | O_EXCL, 0644, NULL);

    *made = fd >= 0;
    if (fd >= 0 || stat(path, &st) || !S_ISCHR(st.st_mode)) {
        return fd;
    }
    return qemu_open(path, O_WRONLY, NULL);
}

StaghornTraceFile *staghorn_trace_file_new(const char *path, Error **errp)
{
    StaghornTraceFile *f;
    bool made;
    int fd;

    fd = open_path(path, &made);
    if (fd < 0) {
        error_setg_errno(errp, errno, "cannot make the file %s", path);
        return NULL;
    }
    f = g_new0(StaghornTraceFile, 1);
    f->path = g_strdup(path);
    f->fd = fd;
    f->made = made;
    QSIMPLEQ_INIT(&f->pieces);
    qemu_mutex_init(&f->lock);
    qemu_cond_init(&f->work);
    qemu_cond_init(&f->done);
    qemu_thread_create(&f->thread, "sg-recorder", write_pieces, f, QEMU_THREAD_JOINABLE);
    return f;
}

char *staghorn_trace_file_close(StaghornTraceFile *f, bool keep)
{
    char *error;

    qemu_mutex_lock(&f->lock);
    f->closing = true;
    qemu_cond_signal(&f->work);
    qemu_mutex_unlock(&f->lock);
    qemu_thread_join(&f->thread);
    fail(f, close(f->fd) ? errno : 0);
    error = f->error;
    if (!keep && f->made) {
        unlink(f->path);
    }
    qemu_cond_destroy(&f->done);
    qemu_cond_destroy(&f->work);
    qemu_mutex_destroy(&f->lock);
    g_free(f->path);
    g_free(f);
    return error;
}
