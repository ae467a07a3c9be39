// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory of queues: separate pages, because the kernel pins whole pages and the device writes
 * to them.  A parent domain may have an allocator, which is tried first.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "provider.h"

static int map_pages(struct sgp_buf *buf, size_t length)
{
	void *addr = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (addr == MAP_FAILED)
		return errno;
	buf->addr = addr;
	return 0;
}

static int ask_owner(struct sgp_buf *buf, size_t length, size_t page)
{
	struct sgp_pd *pd = buf->owner;
	void *addr = pd->alloc(&pd->ibpd, pd->alloc_context, length, page, buf->type);

	if (addr == IBV_ALLOCATOR_USE_DEFAULT) {
		buf->owner = NULL;
		return map_pages(buf, length);
	}
	if (!addr)
		return ENOMEM;
	if ((uintptr_t)addr % page) {
		pd->free(&pd->ibpd, pd->alloc_context, addr, buf->type);
		return EINVAL;
	}
	memset(addr, 0, length);
	buf->addr = addr;
	atomic_fetch_add(&pd->parents, 1);
	return 0;
}

static void give_back(struct sgp_buf *buf)
{
	struct sgp_pd *pd = buf->owner;

	if (pd) {
		pd->free(&pd->ibpd, pd->alloc_context, buf->addr, buf->type);
		atomic_fetch_sub(&pd->parents, 1);
	} else {
		munmap(buf->addr, buf->length);
	}
	buf->addr = NULL;
}

/*
 * 0 or an errno value; length is rounded up to pages, the memory is zero.  ibpd: the domain of the
 * queue, or NULL; type: enum sgdv_resource.
 */
int sgp_buf_alloc(struct sgp_buf *buf, struct ibv_pd *ibpd, uint64_t type, size_t length)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int ret;

	length = align(length, page);
	buf->owner = ibpd && to_sgp_pd(ibpd)->alloc ? to_sgp_pd(ibpd) : NULL;
	buf->type = type;
	buf->length = length;
	ret = buf->owner ? ask_owner(buf, length, page) : map_pages(buf, length);
	if (ret)
		return ret;
	ret = ibv_dontfork_range(buf->addr, length);
	if (!ret)
		return 0;
	ret = ret > 0 ? ret : errno;
	give_back(buf);
	return ret;
}

void sgp_buf_free(struct sgp_buf *buf)
{
	if (!buf->addr)
		return;
	ibv_dofork_range(buf->addr, buf->length);
	give_back(buf);
}
