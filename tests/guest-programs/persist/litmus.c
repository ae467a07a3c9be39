// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Litmus programs for the persistency of x86 stores, run inside a guest by test_litmus.py.
 *
 *   litmus PATH OFFSET PATTERN [DEVICE]
 *
 * maps persistent memory and repeats the pattern on its first page until it is killed.  Meanwhile
 * the test asks, at instants of its own choosing, what a power cut would leave of the page.
 *
 * Round i stores i to each variable of the pattern, so a value tells its round.  Rounds count from
 * 1.  Variables are atoms of the page's lines: x0..x7 those of the first line, y0..y7 of the second
 * and so on.  A pattern of two threads runs on two CPUs; they take turns through ordinary memory,
 * by plain loads and stores, because anything else would be a fence.
 *
 * DEVICE is a file whose first page is a device's registers, for example a resource file of sysfs.
 * The program maps it right before and right after persistent memory, for patterns whose stores
 * cross from one into the other.  In patterns "behind-..." x and y are the last two mapped lines.
 *
 * PATTERN "disk" makes DEVICE, a disk, write the first page by DMA once, and ends; "disk-flushed"
 * also flushes the page, as after stores; "disk-store" inverts x0 and, by a locked instruction, y0.
 *
 * PATTERN "clear" zeroes the first and the last page, with ADR also on the media; "show" prints the
 * first two lines in hexadecimal.  Both then end.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, MAPPED = 2 << 20 /* the smallest mapping of devdax */, ATOMS = 8, THREADS = 2 };

typedef volatile uint64_t atom;

static atom (*line)[ATOMS];
#define x line[0]
#define y line[1]
#define z line[2]

static atom ordinary; /* not in persistent memory */

#define barrier() __asm__ volatile("" ::: "memory")

static void store(atom *to, uint64_t value)
{
    barrier();
    *to = value;
    barrier();
}

static void clwb(atom *p)
{
    __asm__ volatile("clwb %0" : "+m"(*p)::"memory");
}

static void clflushopt(atom *p)
{
    __asm__ volatile("clflushopt %0" : "+m"(*p)::"memory");
}

static void clflush(atom *p)
{
    __asm__ volatile("clflush %0" : "+m"(*p)::"memory");
}

static void sfence(void)
{
    __asm__ volatile("sfence" ::: "memory");
}

static void mfence(void)
{
    __asm__ volatile("mfence" ::: "memory");
}

static void lfence(void)
{
    __asm__ volatile("lfence" ::: "memory");
}

static void locked(atom *p)
{
    __asm__ volatile("lock addq $0, %0" : "+m"(*p)::"memory", "cc");
}

static void exchange(atom *p, uint64_t value)
{
    __asm__ volatile("xchgq %1, %0" : "+m"(*p), "+r"(value)::"memory");
}

static void movnti(atom *p, uint64_t value)
{
    __asm__ volatile("movnti %1, %0" : "=m"(*p) : "r"(value) : "memory");
}

/* ---- Order of two lines ---- */

static void two_lines(uint64_t i)
{
    store(&x[0], i);
    store(&y[0], i);
}

static void clwb_sfence(uint64_t i)
{
    store(&x[0], i);
    clwb(x);
    sfence();
    store(&y[0], i);
}

static void clwb_mfence(uint64_t i)
{
    store(&x[0], i);
    clwb(x);
    mfence();
    store(&y[0], i);
}

static void clwb_lfence(uint64_t i)
{
    store(&x[0], i);
    clwb(x);
    lfence();
    store(&y[0], i);
}

static void clwb_locked(uint64_t i)
{
    store(&x[0], i);
    clwb(x);
    locked(&ordinary);
    store(&y[0], i);
}

/* The locked instruction is a fence and, at the same time, the store that must come later. */
static void clwb_exchange(uint64_t i)
{
    store(&x[0], i);
    clwb(x);
    exchange(&y[0], i);
}

static void clwb_only(uint64_t i)
{
    store(&x[0], i);
    clwb(x);
    store(&y[0], i);
}

static void sfence_only(uint64_t i)
{
    store(&x[0], i);
    sfence();
    store(&y[0], i);
}

static void clwb_too_early(uint64_t i)
{
    clwb(x);
    store(&x[0], i);
    sfence();
    store(&y[0], i);
}

static void clwb_elsewhere(uint64_t i)
{
    store(&x[0], i);
    clwb(z);
    sfence();
    store(&y[0], i);
}

static void clflushopt_sfence(uint64_t i)
{
    store(&x[0], i);
    clflushopt(x);
    sfence();
    store(&y[0], i);
}

static void clflushopt_only(uint64_t i)
{
    store(&x[0], i);
    clflushopt(x);
    store(&y[0], i);
}

static void clflush_only(uint64_t i)
{
    store(&x[0], i);
    clflush(x);
    store(&y[0], i);
}

/* x1 comes after the CLWB and before its fence: it has no guarantee. */
static void store_after_clwb(uint64_t i)
{
    store(&x[0], i);
    clwb(x);
    store(&x[1], i);
    sfence();
    store(&y[0], i);
}

/* ---- Non-temporal stores ---- */

static void movnti_only(uint64_t i)
{
    movnti(&x[0], i);
    store(&y[0], i);
}

static void movnti_sfence(uint64_t i)
{
    movnti(&x[0], i);
    sfence();
    store(&y[0], i);
}

static void movnti_locked(uint64_t i)
{
    movnti(&x[0], i);
    locked(&ordinary);
    store(&y[0], i);
}

static void movntdq_only(uint64_t i)
{
    _mm_stream_si128((__m128i *)x, _mm_set1_epi64x(i));
    store(&y[0], i);
}

static void movntdq_sfence(uint64_t i)
{
    _mm_stream_si128((__m128i *)x, _mm_set1_epi64x(i));
    sfence();
    store(&y[0], i);
}

static void movntps_sfence(uint64_t i)
{
    _mm_stream_ps((float *)x, _mm_castsi128_ps(_mm_set1_epi64x(i)));
    sfence();
    store(&y[0], i);
}

__attribute__((target("avx"))) static void vmovntdq_sfence(uint64_t i)
{
    _mm256_stream_si256((__m256i *)x, _mm256_set1_epi64x(i));
    sfence();
    store(&y[0], i);
}

static void maskmovdqu_sfence(uint64_t i)
{
    _mm_maskmoveu_si128(_mm_set1_epi64x(i), _mm_set1_epi8(-1), (char *)x);
    sfence();
    store(&y[0], i);
}

/* ---- Within a line ---- */

static void one_line(uint64_t i)
{
    store(&x[0], i);
    store(&x[1], i);
}

/* All octets are equal, so that the test can see a torn atom. */
static void one_atom(uint64_t i)
{
    store(&x[0], (i & 0xff) * 0x0101010101010101ull);
}

/* From the middle of x0 to the middle of x1. */
static void misaligned(uint64_t i)
{
    uint64_t value = (i & 0xff) * 0x0101010101010101ull;

    __asm__ volatile("movq %1, 4(%0)" ::"r"(x), "r"(value) : "memory");
}

/* The last half of x7, and the first half of y0. */
static void across_lines(uint64_t i)
{
    uint64_t value = (i & 0xff) * 0x0101010101010101ull;

    __asm__ volatile("movq %1, 60(%0)" ::"r"(x), "r"(value) : "memory");
}

static void movdqa(uint64_t i)
{
    __m128i value = _mm_set1_epi64x(i);

    __asm__ volatile("movdqa %1, (%0)" ::"r"(x), "x"(value) : "memory");
}

static void rep_stosb(uint64_t i)
{
    void *to = (void *)x;
    size_t n = 64;

    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(i & 0xff) : "memory");
}

static void rep_movsq(uint64_t i)
{
    uint64_t from[ATOMS] = { i, i, i, i, i, i, i, i };
    const void *source = from;
    void *to = (void *)x;
    size_t n = ATOMS;

    __asm__ volatile("rep movsq" : "+S"(source), "+D"(to), "+c"(n)::"memory");
}

/* ---- Two CPUs: first() on one, then second() on the other ---- */

static void store_x0(uint64_t i)
{
    store(&x[0], i);
}

static void store_x1(uint64_t i)
{
    store(&x[1], i);
}

static void store_y0(uint64_t i)
{
    store(&y[0], i);
}

static void store_x0_clwb(uint64_t i)
{
    store(&x[0], i);
    clwb(x);
}

static void clwb_x_sfence_store_y(uint64_t i)
{
    clwb(x);
    sfence();
    store(&y[0], i);
}

static void sfence_store_y(uint64_t i)
{
    sfence();
    store(&y[0], i);
}

/* ---- A write to a device: an I/O port of the chipset without a function ---- */

enum { PORT = 0x80 };

static void told(uint64_t i)
{
    store(&x[0], i);
    outb(0, PORT);
    store(&y[0], i);
}

/* ---- Stores across two pages, one of a device: the part in memory is an ordinary store ---- */

static void behind_8(uint64_t i)
{
    __asm__ volatile("movq %1, 124(%0)" ::"r"(x), "r"(i) : "memory");
    clwb(y);
    sfence();
    store(&x[0], i << 32);
}

static void behind_16(uint64_t i)
{
    __asm__ volatile("movups %1, 124(%0)" ::"r"(x), "x"(_mm_set_epi64x(0, i)) : "memory");
    clwb(y);
    sfence();
    store(&x[0], i << 32);
}

static void before_8(uint64_t i)
{
    __asm__ volatile("movq %1, -4(%0)" ::"r"(x), "r"(i << 32) : "memory");
    clwb(x);
    sfence();
    store(&y[0], i);
}

static void before_16(uint64_t i)
{
    __asm__ volatile("movups %1, -12(%0)" ::"r"(x), "x"(_mm_set_epi64x(i << 32, 0)) : "memory");
    clwb(x);
    sfence();
    store(&y[0], i);
}

static const struct pattern {
    const char *name;
    void (*first)(uint64_t i);
    void (*second)(uint64_t i); /* NULL: one thread */
} patterns[] = {
    { "two-lines", two_lines, NULL },
    { "clwb-sfence", clwb_sfence, NULL },
    { "clwb-mfence", clwb_mfence, NULL },
    { "clwb-lfence", clwb_lfence, NULL },
    { "clwb-locked", clwb_locked, NULL },
    { "clwb-exchange", clwb_exchange, NULL },
    { "clwb-only", clwb_only, NULL },
    { "sfence-only", sfence_only, NULL },
    { "clwb-too-early", clwb_too_early, NULL },
    { "clwb-elsewhere", clwb_elsewhere, NULL },
    { "clflushopt-sfence", clflushopt_sfence, NULL },
    { "clflushopt-only", clflushopt_only, NULL },
    { "clflush-only", clflush_only, NULL },
    { "store-after-clwb", store_after_clwb, NULL },
    { "movnti-only", movnti_only, NULL },
    { "movnti-sfence", movnti_sfence, NULL },
    { "movnti-locked", movnti_locked, NULL },
    { "movntdq-only", movntdq_only, NULL },
    { "movntdq-sfence", movntdq_sfence, NULL },
    { "movntps-sfence", movntps_sfence, NULL },
    { "vmovntdq-sfence", vmovntdq_sfence, NULL },
    { "maskmovdqu-sfence", maskmovdqu_sfence, NULL },
    { "one-line", one_line, NULL },
    { "one-atom", one_atom, NULL },
    { "misaligned", misaligned, NULL },
    { "across-lines", across_lines, NULL },
    { "movdqa", movdqa, NULL },
    { "rep-stosb", rep_stosb, NULL },
    { "rep-movsq", rep_movsq, NULL },
    { "told", told, NULL },
    { "behind-8", behind_8, NULL },
    { "behind-16", behind_16, NULL },
    { "before-8", before_8, NULL },
    { "before-16", before_16, NULL },
    { "cpus-one-line", store_x0, store_x1 },
    { "cpus-two-lines", store_x0, store_y0 },
    { "cpus-other-flushes", store_x0, clwb_x_sfence_store_y },
    { "cpus-other-fences", store_x0_clwb, sfence_store_y },
};

static const struct pattern *pattern;
static atom done[THREADS]; /* the last round of each thread */

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void on_cpu(unsigned cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0) {
        fail("two CPUs are needed");
    }
}

static void *second_thread(void *arg)
{
    (void)arg;
    on_cpu(1);
    for (uint64_t i = 1;; i++) {
        while (done[0] < i) {
            barrier();
        }
        pattern->second(i);
        done[1] = i;
    }
    return NULL;
}

static void clear(char *page)
{
    memset(page, 0, PAGE);
    for (unsigned i = 0; i < PAGE; i += sizeof(line[0])) {
        clwb((atom *)(page + i));
    }
    sfence();
}

/* Reads the disk behind its first KiB, which may be all zero; then does what comes after "disk". */
static void from_disk(const char *disk, const char *then)
{
    int fd = open(disk, O_RDONLY | O_DIRECT);
    bool flushed = strcmp(then, "-flushed") == 0;

    if (fd < 0 || pread(fd, (void *)line, PAGE, 1024) != PAGE) {
        fail(disk);
    }
    for (unsigned i = 0; flushed && i < PAGE / sizeof(line[0]); i++) {
        clwb(line[i]);
    }
    if (flushed) {
        sfence();
    } else if (strcmp(then, "-store") == 0) {
        store(&x[0], ~x[0]);
        __atomic_fetch_xor(&y[0], ~0ull, __ATOMIC_SEQ_CST);
    }
}

static void show(void)
{
    const volatile uint8_t *octet = (const volatile uint8_t *)line;

    for (unsigned i = 0; i < 2 * sizeof(line[0]); i++) {
        printf("%02x", octet[i]);
    }
    printf("\n");
}

static void run(void)
{
    pthread_t thread;

    if (pattern->second) {
        on_cpu(0);
        if (pthread_create(&thread, NULL, second_thread, NULL) != 0) {
            fail("pthread_create");
        }
    }
    for (uint64_t i = 1;; i++) {
        while (pattern->second && done[1] + 1 < i) {
            barrier();
        }
        pattern->first(i);
        done[0] = i;
    }
}

static void *map(void *at, size_t size, const char *path, off_t offset)
{
    int fd = open(path, O_RDWR);
    void *mapped;

    if (fd < 0) {
        fail(path);
    }
    mapped = mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset);
    if (mapped == MAP_FAILED) {
        fail(path);
    }
    close(fd);
    return mapped;
}

/* Maps persistent memory, with the device's page on both sides. */
static char *map_all(const char *path, off_t offset, const char *device)
{
    char *room = mmap(NULL, 3 * (size_t)MAPPED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *at;

    if (room == MAP_FAILED) {
        fail("mmap");
    }
    at = (char *)(((uintptr_t)room + PAGE + MAPPED - 1) / MAPPED * MAPPED);
    if (device) {
        map(at - PAGE, PAGE, device, 0);
        map(at + MAPPED, PAGE, device, 0);
    }
    return map(at, MAPPED, path, offset);
}

int main(int argc, char **argv)
{
    char *mapped;
    bool disk;

    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: litmus PATH OFFSET PATTERN [DEVICE]\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        if (strcmp(patterns[i].name, argv[3]) == 0) {
            pattern = &patterns[i];
        }
    }
    disk = strncmp(argv[3], "disk", 4) == 0 && argc == 5;
    if (!pattern && !disk && strcmp(argv[3], "clear") != 0 && strcmp(argv[3], "show") != 0) {
        fprintf(stderr, "litmus: there is no pattern %s\n", argv[3]);
        return 2;
    }
    mapped = map_all(argv[1], strtoull(argv[2], NULL, 0), argc == 5 && !disk ? argv[4] : NULL);
    line = (void *)mapped;
    if (strncmp(argv[3], "behind-", 7) == 0) {
        line = (void *)(mapped + MAPPED - 2 * sizeof(line[0]));
    }
    if (pattern && pattern->first == told && ioperm(PORT, 1, 1) != 0) {
        fail("ioperm");
    }
    if (pattern) {
        run();
    } else if (disk) {
        from_disk(argv[4], argv[3] + strlen("disk"));
    } else if (strcmp(argv[3], "clear") == 0) {
        clear(mapped);
        clear(mapped + MAPPED - PAGE);
    } else {
        show();
    }
    return 0;
}
