/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files in memory, filled by whole pages, copied by what is not a hole. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "memory.h"

enum { PIECE = 1 << 20 };

void sg_explore_content_init(struct sg_explore_content *c)
{
    c->failed = false;
    for (unsigned i = 0; i < SG_TRACE_EXTENTS; i++) {
        c->fd[i] = -1;
    }
}

void sg_explore_content_fini(struct sg_explore_content *c)
{
    for (unsigned i = 0; i < SG_TRACE_EXTENTS; i++) {
        if (c->fd[i] >= 0) {
            close(c->fd[i]);
        }
        c->fd[i] = -1;
    }
}

static bool write_at(int fd, const uint8_t *octets, size_t len, uint64_t at)
{
    while (len) {
        ssize_t n = pwrite(fd, octets, len, (off_t)at);

        if (n <= 0) {
            return false;
        }
        octets += n;
        len -= (size_t)n;
        at += (size_t)n;
    }
    return true;
}

static bool has_file(struct sg_explore_content *c, unsigned extent)
{
    if (c->fd[extent] < 0) {
        c->fd[extent] = memfd_create("content", MFD_CLOEXEC);
    }
    return c->fd[extent] >= 0;
}

void sg_explore_content_page(void *opaque, unsigned extent, uint64_t number,
                             const uint8_t page[SG_TRACE_PAGE])
{
    struct sg_explore_content *c = opaque;

    if (!has_file(c, extent) ||
        !write_at(c->fd[extent], page, SG_TRACE_PAGE, number * SG_TRACE_PAGE)) {
        c->failed = true;
    }
}

bool sg_explore_content_file(struct sg_explore_content *c, unsigned extent, const char *path,
                             uint64_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        fprintf(stderr, "staghorn-explore: %s: %s\n", path, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    if ((uint64_t)st.st_size < size) {
        fprintf(stderr,
                "staghorn-explore: %s: it has %" G_GUINT64_FORMAT
                " octets, and the extent has %" G_GUINT64_FORMAT "\n",
                path, (guint64)st.st_size, (guint64)size);
        close(fd);
        return false;
    }
    if (c->fd[extent] >= 0) {
        close(c->fd[extent]);
    }
    c->fd[extent] = fd;
    return true;
}

/* The rest of a piece of a file to the same place of another. */
static bool copy_piece(int to, int from, off_t at, off_t end)
{
    while (at < end) {
        ssize_t n;

        if (lseek(to, at, SEEK_SET) < 0) {
            return false;
        }
        n = sendfile(to, from, &at, SG_MIN((size_t)(end - at), PIECE));
        if (n <= 0) {
            return false;
        }
    }
    return true;
}

/* Beyond the size nothing is copied: an extent may end within a page. */
static bool copy_content(int to, int from, off_t size)
{
    off_t at = lseek(from, 0, SEEK_DATA), end;

    while (at >= 0 && at < size) {
        end = lseek(from, at, SEEK_HOLE);
        if (end < 0 || !copy_piece(to, from, at, SG_MIN(end, size))) {
            return false;
        }
        at = lseek(from, end, SEEK_DATA);
    }
    return at >= 0 || errno == ENXIO;
}

bool sg_explore_content_save(const struct sg_explore_content *c, unsigned extent, uint64_t size,
                             const char *path)
{
    char *fresh = g_strconcat(path, ".new", NULL);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool good = fd >= 0 && ftruncate(fd, (off_t)size) == 0 &&
                (c->fd[extent] < 0 || copy_content(fd, c->fd[extent], (off_t)size));

    good = (fd < 0 || close(fd) == 0) && good && rename(fresh, path) == 0;
    if (!good) {
        int why = errno;

        unlink(fresh);
        errno = why;
    }
    g_free(fresh);
    return good;
}

bool sg_explore_map(struct sg_explore_mapping *m, const struct sg_explore_content *c,
                    unsigned extent, uint64_t size)
{
    *m = (struct sg_explore_mapping){ .fd = memfd_create("memory", MFD_CLOEXEC), .size = size };
    if (m->fd < 0 || ftruncate(m->fd, (off_t)size) < 0 ||
        (c->fd[extent] >= 0 && !copy_content(m->fd, c->fd[extent], (off_t)size))) {
        sg_explore_unmap(m);
        return false;
    }
    m->octets = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, m->fd, 0);
    if (m->octets == MAP_FAILED) {
        m->octets = NULL;
        sg_explore_unmap(m);
        return false;
    }
    return true;
}

void sg_explore_map_reset(struct sg_explore_mapping *m)
{
    madvise(m->octets, m->size, MADV_DONTNEED);
}

void *sg_explore_map_fresh(const struct sg_explore_mapping *of, bool private)
{
    int flags = (private ? MAP_PRIVATE : MAP_SHARED) | MAP_NORESERVE;
    void *fresh = mmap(NULL, of->size, PROT_READ | PROT_WRITE, flags, of->fd, 0);

    return fresh == MAP_FAILED ? NULL : fresh;
}

/* Only a kernel without memory for a few words can refuse to move what it has. */
void sg_explore_map_replace(struct sg_explore_mapping *m, void *fresh)
{
    sg_assert(mremap(fresh, m->size, m->size, MREMAP_MAYMOVE | MREMAP_FIXED, m->octets) ==
              m->octets);
}

bool sg_explore_map_copy(struct sg_explore_mapping *m, const struct sg_explore_mapping *of)
{
    *m = (struct sg_explore_mapping){ .fd = -1, .size = of->size };
    m->octets = sg_explore_map_fresh(of, true);
    return m->octets != NULL;
}

void sg_explore_map_drop(const struct sg_explore_mapping *of, void *fresh)
{
    if (fresh) {
        munmap(fresh, of->size);
    }
}

bool sg_explore_map_save(const struct sg_explore_mapping *m, int fd, uint64_t off, size_t len)
{
    return write_at(fd, m->octets + off, len, off);
}

void sg_explore_unmap(struct sg_explore_mapping *m)
{
    if (m->octets) {
        munmap(m->octets, m->size);
    }
    if (m->fd >= 0) {
        close(m->fd);
    }
    *m = (struct sg_explore_mapping){ .fd = -1 };
}

void sg_explore_memories_init(struct sg_explore_memories *m)
{
    for (unsigned i = 0; i < SG_TRACE_EXTENTS; i++) {
        m->visible[i] = m->media[i] = (struct sg_explore_mapping){ .fd = -1 };
    }
    m->apart = false;
    m->own = NULL;
}

void sg_explore_memories_fini(struct sg_explore_memories *m)
{
    for (unsigned i = 0; i < SG_TRACE_EXTENTS; i++) {
        sg_explore_unmap(&m->visible[i]);
        sg_explore_unmap(&m->media[i]);
    }
    m->apart = false;
    if (m->own) {
        g_array_unref(m->own);
    }
    m->own = NULL;
}
