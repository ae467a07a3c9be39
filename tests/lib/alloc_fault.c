/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "alloc_fault.h"

#include <glib.h>
#include <stdlib.h>

struct alloc_fault alloc_fault;

void alloc_fault_arm(uint64_t fail_at, uint64_t fail_count)
{
    int64_t live = alloc_fault.live;

    alloc_fault = (struct alloc_fault){
        .armed = true,
        .fail_at = fail_at,
        .fail_count = fail_count,
        .live = live,
    };
}

void alloc_fault_disarm(void)
{
    alloc_fault.armed = false;
}

static bool fails(void)
{
    struct alloc_fault *f = &alloc_fault;

    if (!f->armed) {
        return false;
    }
    f->seen++;
    if (!f->fail_at || f->seen < f->fail_at || f->seen - f->fail_at >= f->fail_count) {
        return false;
    }
    f->failed++;
    return true;
}

static void note_fatal(void *caller)
{
    if (alloc_fault.armed && alloc_fault.fatal++ == 0) {
        alloc_fault.fatal_at = caller;
    }
}

static void *counted(void *p)
{
    alloc_fault.live += p != NULL;
    return p;
}

gpointer(g_try_malloc)(gsize n)
{
    return !n || fails() ? NULL : counted(malloc(n));
}

gpointer(g_try_malloc0)(gsize n)
{
    return !n || fails() ? NULL : counted(calloc(1, n));
}

gpointer(g_try_malloc_n)(gsize n, gsize size)
{
    return g_try_malloc(n * size);
}

gpointer(g_try_malloc0_n)(gsize n, gsize size)
{
    return g_try_malloc0(n * size);
}

gpointer(g_try_realloc)(gpointer p, gsize n)
{
    void *q;

    if (!p) {
        return g_try_malloc(n);
    }
    q = fails() ? NULL : realloc(p, n);
    return q;
}

gpointer(g_try_realloc_n)(gpointer p, gsize n, gsize size)
{
    return g_try_realloc(p, n * size);
}

static void *must(void *p, gsize n, void *caller)
{
    note_fatal(caller);
    if (n && !p) {
        abort();
    }
    return counted(p);
}

gpointer(g_malloc)(gsize n)
{
    return must(malloc(n), n, __builtin_return_address(0));
}

gpointer(g_malloc0)(gsize n)
{
    return must(calloc(1, n), n, __builtin_return_address(0));
}

gpointer(g_malloc_n)(gsize n, gsize size)
{
    return must(malloc(n * size), n * size, __builtin_return_address(0));
}

gpointer(g_malloc0_n)(gsize n, gsize size)
{
    return must(calloc(n, size), n * size, __builtin_return_address(0));
}

gpointer(g_realloc)(gpointer p, gsize n)
{
    alloc_fault.live -= p != NULL;
    return must(realloc(p, n), n, __builtin_return_address(0));
}

void(g_free)(gpointer p)
{
    alloc_fault.live -= p != NULL;
    free(p);
}
