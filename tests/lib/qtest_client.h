/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A QEMU under test: its process, the qtest protocol (bus accesses and the virtual clock) and QMP.
 *
 * Every call waits for QEMU's answer, at most QTEST_PATIENCE_S seconds (more in sanitizer builds).
 * If there is none, or QEMU dies, the call prints QEMU's stderr and the running test case fails.
 * qtest_start() ends QEMUs that a failed case left behind, and the kernel kills QEMU when the test
 * program dies.
 */
#ifndef SG_TESTS_QTEST_CLIENT_H
#define SG_TESTS_QTEST_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { QTEST_PATIENCE_S = 20 };

struct qtest;

/*
 * Starts $SG_QEMU with accelerator qtest and these further arguments (quoted as in a shell).
 * Skips the case when SG_QEMU is not set.
 */
struct qtest *qtest_start(const char *args);
/* The same, in addition to those that run already. */
struct qtest *qtest_start_beside(const char *args);
/* Kills those that still run. */
void qtest_end_leftovers(void);
/* Asks QEMU to end; fails if it exits with an error or has written a sanitizer's report. */
void qtest_stop(struct qtest *q);
/* QEMU's process. */
pid_t qtest_pid(const struct qtest *q);
/* Kills QEMU without warning. */
void qtest_kill(struct qtest *q);
/*
 * Runs QEMU with a command line that it should refuse.  Returns the exit status, 128 + N for death
 * by signal N; *err is its stderr (free with g_free).  A QEMU that accepts the command line is
 * ended; the result is then 0.
 */
int qtest_refused(const char *args, char **err);
/* What QEMU has written to stderr so far (free with g_free). */
char *qtest_stderr(struct qtest *q);
/* Forgets that text. */
void qtest_stderr_drop(struct qtest *q);

/* Physical memory and MMIO, little-endian. */
uint8_t qtest_readb(struct qtest *q, uint64_t addr);
uint16_t qtest_readw(struct qtest *q, uint64_t addr);
uint32_t qtest_readl(struct qtest *q, uint64_t addr);
uint64_t qtest_readq(struct qtest *q, uint64_t addr);
void qtest_writeb(struct qtest *q, uint64_t addr, uint8_t value);
void qtest_writew(struct qtest *q, uint64_t addr, uint16_t value);
void qtest_writel(struct qtest *q, uint64_t addr, uint32_t value);
void qtest_writeq(struct qtest *q, uint64_t addr, uint64_t value);
void qtest_memread(struct qtest *q, uint64_t addr, void *buf, size_t len);
void qtest_memwrite(struct qtest *q, uint64_t addr, const void *buf, size_t len);
void qtest_memset(struct qtest *q, uint64_t addr, uint8_t value, size_t len);
void qtest_outl(struct qtest *q, uint16_t port, uint32_t value);
uint32_t qtest_inl(struct qtest *q, uint16_t port);

/* At least one round of QEMU's main loop, with its bottom halves; false: there was no work. */
bool qtest_round(struct qtest *q);
/* Moves the virtual clock by ns; all timers due are run.  Returns the new time, ns. */
uint64_t qtest_clock_step(struct qtest *q, uint64_t ns);

/*
 * One QMP command in JSON.  Returns its answer, one line, which the caller frees with g_free.
 * qtest_qmp_ok() fails the case when the answer is an error.
 */
char *qtest_qmp(struct qtest *q, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void qtest_qmp_ok(struct qtest *q, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Waits for an event with this name that came after the last wait for it. */
void qtest_qmp_event(struct qtest *q, const char *name);

#endif
