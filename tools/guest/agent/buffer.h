/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A bounded queue of bytes.  What is appended must fit: ask sg_buffer_room()
 * first.  Nothing here blocks if the descriptors do not.
 */
#ifndef SG_GUEST_BUFFER_H
#define SG_GUEST_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SG_BUFFER_CHUNK 32768 /* octets moved at once */

struct buffer {
    uint8_t *data;
    size_t start, end, size;
};

/* Exits the process when there is no memory. */
void sg_buffer_make(struct buffer *b, size_t size);

size_t sg_buffer_used(const struct buffer *b);
size_t sg_buffer_room(const struct buffer *b);
void sg_buffer_append(struct buffer *b, const void *data, size_t len);
void sg_buffer_consume(struct buffer *b, size_t len);

/* Reads once into the buffer.  False at the end of the file or on error. */
bool sg_buffer_fill(int fd, struct buffer *b);

/* Writes once from the buffer.  False on error. */
bool sg_buffer_drain(int fd, struct buffer *b);

#endif
