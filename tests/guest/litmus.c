// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Litmus programs for the persistency of x86 stores, run inside a guest by tests/vm/test_litmus.py.
 *
 *   litmus PATH OFFSET PATTERN
 *
 * maps persistent memory and repeats the pattern on its first page until it is killed.  Meanwhile
 * the test asks, at instants of its own choosing, what a power cut would leave of the page.
 *
 * Round i stores i to each variable of the pattern, so a value tells its round.  Rounds count from
 * 1.  Lines of the page take part: x0..x7 are the atoms of the first, y0..y7 of the second and so
 * on.  A pattern of two threads runs on two CPUs; they take turns through ordinary memory, by plain
 * loads and stores, for anything else would be a fence.
 *
 * PATTERN "clear" makes the page zero, on the media too where there is ADR; "show" prints the first
 * two lines in hexadecimal.  Both end then.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, MAPPED = 2 << 20 /* what devdax maps at least */, ATOMS = 8, THREADS = 2 };

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
    __asm__ volatile("clwb %0" : "+m"(*p) :: "memory");
}

static void clflushopt(atom *p)
{
    __asm__ volatile("clflushopt %0" : "+m"(*p) :: "memory");
}

static void clflush(atom *p)
{
    __asm__ volatile("clflush %0" : "+m"(*p) :: "memory");
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
    __asm__ volatile("lock addq $0, %0" : "+m"(*p) :: "memory", "cc");
}

static void exchange(atom *p, uint64_t value)
{
    __asm__ volatile("xchgq %1, %0" : "+m"(*p), "+r"(value) :: "memory");
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

/* x1 comes after the CLWB and before its fence: nothing is promised for it. */
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

/* All octets equal, for the test to see a torn atom. */
static void one_atom(uint64_t i)
{
    store(&x[0], (i & 0xff) * 0x0101010101010101ull);
}

/* Ends in x1. */
static void misaligned(uint64_t i)
{
    uint64_t value = (i & 0xff) * 0x0101010101010101ull;

    __asm__ volatile("movq %1, 4(%0)" :: "r"(x), "r"(value) : "memory");
}

/* The last half of x7, the first half of y0. */
static void across_lines(uint64_t i)
{
    uint64_t value = (i & 0xff) * 0x0101010101010101ull;

    __asm__ volatile("movq %1, 60(%0)" :: "r"(x), "r"(value) : "memory");
}

static void movdqa(uint64_t i)
{
    __m128i value = _mm_set1_epi64x(i);

    __asm__ volatile("movdqa %1, (%0)" :: "r"(x), "x"(value) : "memory");
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

    __asm__ volatile("rep movsq" : "+S"(source), "+D"(to), "+c"(n) :: "memory");
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

static void clear(void)
{
    memset((void *)line, 0, PAGE);
    for (unsigned i = 0; i < PAGE / sizeof(line[0]); i++) {
        clwb(line[i]);
    }
    sfence();
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

int main(int argc, char **argv)
{
    int fd;

    if (argc != 4) {
        fprintf(stderr, "usage: litmus PATH OFFSET PATTERN\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        if (strcmp(patterns[i].name, argv[3]) == 0) {
            pattern = &patterns[i];
        }
    }
    if (!pattern && strcmp(argv[3], "clear") != 0 && strcmp(argv[3], "show") != 0) {
        fprintf(stderr, "litmus: there is no pattern %s\n", argv[3]);
        return 2;
    }
    fd = open(argv[1], O_RDWR);
    if (fd < 0) {
        fail(argv[1]);
    }
    line = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                strtoull(argv[2], NULL, 0));
    if (line == MAP_FAILED) {
        fail("mmap");
    }
    if (pattern) {
        run();
    } else if (strcmp(argv[3], "clear") == 0) {
        clear();
    } else {
        show();
    }
    return 0;
}
