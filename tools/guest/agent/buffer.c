// SPDX-License-Identifier: GPL-2.0-or-later
/* Bounded byte queues between file descriptors; see buffer.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buffer.h"

size_t sg_buffer_used(const struct buffer *b)
{
    return b->end - b->start;
}

size_t sg_buffer_room(const struct buffer *b)
{
    return b->size - sg_buffer_used(b);
}

void sg_buffer_append(struct buffer *b, const void *data, size_t len)
{
    if (b->size - b->end < len) {
        memmove(b->data, b->data + b->start, sg_buffer_used(b));
        b->end -= b->start;
        b->start = 0;
    }
    memcpy(b->data + b->end, data, len);
    b->end += len;
}

void sg_buffer_consume(struct buffer *b, size_t len)
{
    b->start += len;
    if (b->start == b->end) {
        b->start = b->end = 0;
    }
}

/* Reads once into the buffer.  Returns false at the end or on error. */
bool sg_buffer_fill(int fd, struct buffer *b)
{
    uint8_t chunk[SG_BUFFER_CHUNK];
    size_t want = sg_buffer_room(b) < sizeof(chunk) ? sg_buffer_room(b) : sizeof(chunk);
    ssize_t n;

    if (!want) {
        return true;
    }
    n = read(fd, chunk, want);
    if (n > 0) {
        sg_buffer_append(b, chunk, n);
        return true;
    }
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Writes once from the buffer.  Returns false on error. */
bool sg_buffer_drain(int fd, struct buffer *b)
{
    size_t len = sg_buffer_used(b) < SG_BUFFER_CHUNK ? sg_buffer_used(b) : SG_BUFFER_CHUNK;
    ssize_t n;

    if (!len) {
        return true;
    }
    n = write(fd, b->data + b->start, len);
    if (n > 0) {
        sg_buffer_consume(b, n);
        return true;
    }
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

void sg_buffer_make(struct buffer *b, size_t size)
{
    b->data = malloc(size);
    b->size = size;
    if (!b->data) {
        _exit(1);
    }
}
