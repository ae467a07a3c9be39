// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a recording has of CPUs: known stores, flushes, fences, loads and marks, in known steps.
 *
 *   record_cpu DEVICE DISK
 *
 * maps persistent memory, and announces each step by a mark of kind "step" with its name.
 * test_record_cpu.py runs it while the VM is recorded, and compares the trace with this text.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <unistd.h>

#include "staghorn_mark.h"

enum { MAPPED = 2 << 20, LINE = 64, PAGE = 4096, PORT = 0x80, OCTETS = 16, ROUNDS = 500 };

static char *pmem;
static volatile uint64_t ordinary;
static char text[SG_MARK_TEXT_MAX + 1];

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static volatile uint64_t *atom(unsigned line)
{
    return (volatile uint64_t *)(pmem + line * LINE);
}

static void sfence(void)
{
    __asm__ volatile("sfence" ::: "memory");
}

static void clwb(volatile void *p)
{
    __asm__ volatile("clwb (%0)" ::"r"(p) : "memory");
}

/* ---- Steps: each has its own lines ---- */

void stores(void);

/* With external linkage, so that the test finds its place. */
__attribute__((noinline)) void stores(void)
{
    static const uint8_t octets[OCTETS] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };

    *atom(0) = 0x1122334455667788;
    *(volatile uint8_t *)(pmem + 9) = 0x99;
    __asm__ volatile("movdqu (%1), %%xmm0; movdqu %%xmm0, (%0)" ::"r"(pmem + 56), "r"(octets)
                     : "memory", "xmm0");
    __asm__ volatile("movnti %1, (%0)" ::"r"(atom(2)), "r"((uint64_t)0x2222) : "memory");
}

static void flushes(void)
{
    clwb(pmem + 3 * LINE + 5);
    __asm__ volatile("clflushopt (%0)" ::"r"(atom(4)) : "memory");
    __asm__ volatile("clflush (%0)" ::"r"(atom(5)) : "memory");
}

static void fence_s(void)
{
    *atom(6) = 1;
    sfence();
}

static void fence_m(void)
{
    *atom(6) = 2;
    __asm__ volatile("mfence" ::: "memory");
}

static void fence_locked(void)
{
    *atom(6) = 3;
    __atomic_fetch_add(&ordinary, 1, __ATOMIC_SEQ_CST);
}

static void fence_idle(void)
{
    sfence();
}

static void locked(void)
{
    *atom(7) = 0;
    __atomic_fetch_add(atom(7), 5, __ATOMIC_SEQ_CST);
}

static void load_own(void)
{
    (void)*atom(0);
    (void)*atom(7);
}

static void device(void)
{
    *atom(8) = 8;
    outb(0, PORT);
}

static void device_idle(void)
{
    outb(0, PORT);
}

static void disk(const char *name)
{
    int fd = open(name, O_RDONLY | O_DIRECT);

    if (fd < 0 || pread(fd, pmem + PAGE, PAGE, 1024) != PAGE) {
        fail(name);
    }
    close(fd);
    (void)*(volatile uint64_t *)(pmem + PAGE + 2 * LINE);
    (void)*(volatile uint64_t *)(pmem + PAGE + 2 * LINE);
}

static void marks(void)
{
    const char *nothing = (const char *)16, *kernel = (const char *)0xffffffff81000000;

    sg_mark("state", "count=1 \"quoted\"");
    sg_mark("empty", "");
    memset(text, 'x', sizeof(text) - 1);
    sg_mark("long", text);
    sg_mark_durable(pmem + 2 * PAGE - 8, 2 * PAGE);
    sg_mark_durable(text, 100);
    sg_mark_range("far", pmem, 65 * PAGE);
    /* What the header prevents: neither a fault nor a secret. */
    __asm__ volatile("nopl 0x544d4753(%%rax)" ::"D"("a"), "c"(1), "S"(nothing), "d"(8));
    __asm__ volatile("nopl 0x544d4753(%%rax)" ::"D"("b"), "c"(1), "S"(kernel), "d"(8));
    __asm__ volatile("nopl 0x544d4753(%%rax)" ::"D"("c"), "c"(0), "S"(text), "d"(8));
    __asm__ volatile("nopl 0x544d4753(%%rax)" ::"D"("d"), "c"(1), "S"(text), "d"(4097));
}

/* ---- Another CPU ---- */

static void on_cpu(unsigned cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0) {
        fail("two CPUs are needed");
    }
}

static void *other_cpu(void *unused)
{
    (void)unused;
    on_cpu(1);
    sg_mark("step", "load");
    (void)*atom(0);
    sg_mark("step", "load-again");
    (void)*atom(0);
    sg_mark("step", "load-across");
    (void)*(volatile uint64_t *)(pmem + 60);
    sg_mark("step", "load-locked");
    __atomic_fetch_add(atom(7), 5, __ATOMIC_SEQ_CST);
    return NULL;
}

/* Two CPUs in turns, each of which polls the other's atom: the load that ends a poll counts. */
static void *answer(void *unused)
{
    (void)unused;
    on_cpu(1);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        while (*atom(10) < i) {
        }
        *atom(11) = i;
    }
    return NULL;
}

static void turns(void)
{
    pthread_t thread;

    *atom(10) = 0;
    *atom(11) = 0;
    if (pthread_create(&thread, NULL, answer, NULL) != 0) {
        fail("pthread_create");
    }
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        *atom(10) = i;
        while (*atom(11) < i) {
        }
    }
    pthread_join(thread, NULL);
}

static const struct {
    const char *name;
    void (*run)(void);
} steps[] = {
    { "stores", stores },           { "flushes", flushes },           { "sfence", fence_s },
    { "mfence", fence_m },          { "locked-fence", fence_locked }, { "idle-fence", fence_idle },
    { "locked", locked },           { "load-own", load_own },         { "device", device },
    { "idle-device", device_idle }, { "device-again", device },       { "marks", marks },
};

int main(int argc, char **argv)
{
    int fd = argc == 3 ? open(argv[1], O_RDWR) : -1;
    pthread_t thread;

    if (fd < 0) {
        fail("usage: record_cpu DEVICE DISK");
    }
    pmem = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (pmem == MAP_FAILED || ioperm(PORT, 1, 1) != 0) {
        fail(argv[1]);
    }
    on_cpu(0);
    (void)*(volatile char *)pmem;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        sg_mark("step", steps[i].name);
        steps[i].run();
    }
    sg_mark("step", "disk");
    disk(argv[2]);
    sg_mark("step", "thread");
    if (pthread_create(&thread, NULL, other_cpu, NULL) != 0 || pthread_join(thread, NULL) != 0) {
        fail("pthread_create");
    }
    sg_mark("step", "turns");
    turns();
    sg_mark("step", "end");
    return 0;
}
