// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory of queues: pages of their own, because the kernel pins whole pages and the device writes
 * into them.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "staghorn.h"

/* 0 or an errno value; length is rounded up to pages, the memory is zero. */
int sg_buf_alloc(struct sg_buf *buf, size_t length)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *addr;
	int ret;

	length = align(length, page);
	addr = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (addr == MAP_FAILED)
		return errno;
	ret = ibv_dontfork_range(addr, length);
	if (ret) {
		munmap(addr, length);
		return ret;
	}
	buf->addr = addr;
	buf->length = length;
	return 0;
}

void sg_buf_free(struct sg_buf *buf)
{
	if (!buf->addr)
		return;
	ibv_dofork_range(buf->addr, buf->length);
	munmap(buf->addr, buf->length);
	buf->addr = NULL;
}
