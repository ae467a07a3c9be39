/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/large.h"

#include <glib.h>

#include "base/bytes.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

enum { PAGE = 4096, HUGE_PAGE = 2 << 20 };

void *sg_large_new0(size_t count, size_t size)
{
    void *p = g_malloc0_n(count, size);

#ifdef MADV_HUGEPAGE
    uintptr_t first = ((uintptr_t)p + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    uintptr_t end = ((uintptr_t)p + count * size) & ~(uintptr_t)(PAGE - 1);

    if (count * size >= HUGE_PAGE) {
        madvise((void *)first, end - first, MADV_HUGEPAGE); /* refused: pages stay small */
    }
#endif
    return p;
}
