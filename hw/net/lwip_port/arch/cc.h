/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lwIP's view of compiler and platform: hosted GNU C.
 */
#ifndef SG_NET_ARCH_CC_H
#define SG_NET_ARCH_CC_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Byte order and errno come from libc; see LWIP_PROVIDE_ERRNO and endian.h. */
#include <endian.h>

#define LWIP_NO_UNISTD_H 1
#define LWIP_TIMEVAL_PRIVATE 0
#define LWIP_ERRNO_STDINCLUDE 1

#define PACK_STRUCT_FIELD(x) x
#define PACK_STRUCT_STRUCT __attribute__((packed))
#define PACK_STRUCT_BEGIN
#define PACK_STRUCT_END

#define LWIP_PLATFORM_DIAG(x) \
    do {                      \
        printf x;             \
    } while (0)
/* An assertion of lwIP is a mistake of ours. */
#define LWIP_PLATFORM_ASSERT(x) sg_net_assert_failed(x, __FILE__, __LINE__)

/* lwIP's memory; NULL: there is none. */
void *sg_net_malloc(size_t octets);
void *sg_net_calloc(size_t n, size_t octets);
void sg_net_free(void *p);

void sg_net_assert_failed(const char *what, const char *file, int line)
    __attribute__((noreturn, cold));

/* The ones'-complement sum in memory order, folded but not complemented; any alignment. */
uint16_t sg_net_chksum(const void *data, int len);

#endif
