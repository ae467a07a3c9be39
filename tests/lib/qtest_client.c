/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * See qtest_client.h.  Both protocols are lines of text over socket pairs: a request, then answers
 * in order.  The qtest side may send IRQ lines in between, the QMP side events; events are queued.
 */
#include "qtest_client.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

struct line_socket {
    int fd;
    GString *in;
};

struct qtest {
    struct qtest *next; /* in the list of running ones */
    pid_t pid;
    int err_fd;
    off_t err_from;
    struct line_socket bus, qmp;
    GString *events; /* lines */
};

static struct qtest *alive;

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int patience_ms(void)
{
    const char *sanitized = getenv("SG_SANITIZED");

    return QTEST_PATIENCE_S * 1000 * (sanitized && *sanitized == '1' ? 4 : 1);
}

static char *read_all(int fd, off_t from)
{
    GString *text = g_string_new(NULL);
    char buf[4096];
    ssize_t n;

    while ((n = pread(fd, buf, sizeof(buf), from)) > 0) {
        g_string_append_len(text, buf, n);
        from += n;
    }
    return g_string_free(text, FALSE);
}

char *qtest_stderr(struct qtest *q)
{
    return read_all(q->err_fd, q->err_from);
}

void qtest_stderr_drop(struct qtest *q)
{
    q->err_from = lseek(q->err_fd, 0, SEEK_END);
}

/* Prints the end of a text as TAP comments. */
static void show(const char *text)
{
    gchar **lines = g_strsplit(text, "\n", -1);
    unsigned n = g_strv_length(lines), i;

    for (i = n > 60 ? n - 60 : 0; i < n; i++) {
        if (lines[i][0]) {
            T_NOTE("qemu: %s", lines[i]);
        }
    }
    g_strfreev(lines);
}

/* The status as a shell reports it, or -1 if it does not end in time (then it is killed). */
static int reap(pid_t pid, int ms)
{
    int64_t end = now_ms() + ms;
    int status = 0;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (now_ms() > end) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            return -1;
        }
        poll(NULL, 0, 5);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void forget(struct qtest *q)
{
    struct qtest **at = &alive;

    while (*at != q) {
        at = &(*at)->next;
    }
    *at = q->next;
    close(q->bus.fd);
    close(q->qmp.fd);
    close(q->err_fd);
    g_string_free(q->bus.in, TRUE);
    g_string_free(q->qmp.in, TRUE);
    g_string_free(q->events, TRUE);
    g_free(q);
}

void qtest_end_leftovers(void)
{
    while (alive) {
        kill(alive->pid, SIGKILL);
        waitpid(alive->pid, NULL, 0);
        forget(alive);
    }
}

/* QEMU does not answer as it should: prints why, ends it, fails the case. */
static __attribute__((noreturn)) void broken(struct qtest *q, const char *what)
{
    int status = reap(q->pid, 300);
    char *text = read_all(q->err_fd, q->err_from);

    show(text);
    g_free(text);
    forget(q);
    T_FAIL("QEMU: %s (status %d)", what, status);
}

static bool has_sanitizer_report(const char *text)
{
    return strstr(text, "Sanitizer") || strstr(text, "runtime error:");
}

static void send_text(struct qtest *q, struct line_socket *s, const char *p, size_t n)
{
    while (n) {
        ssize_t done = send(s->fd, p, n, MSG_NOSIGNAL);

        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            broken(q, "is gone");
        }
        p += done;
        n -= done;
    }
}

/* The next line without its end. */
static char *receive_line(struct qtest *q, struct line_socket *s)
{
    int64_t end = now_ms() + patience_ms();
    char buf[65536], *newline, *line;
    ssize_t n;

    while (!(newline = memchr(s->in->str, '\n', s->in->len))) {
        struct pollfd p = { .fd = s->fd, .events = POLLIN };
        int64_t left = end - now_ms();

        if (left <= 0 || poll(&p, 1, left) == 0) {
            broken(q, "does not answer");
        }
        n = recv(s->fd, buf, sizeof(buf), 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            broken(q, "died");
        }
        g_string_append_len(s->in, buf, n);
    }
    line = g_strndup(s->in->str, newline - s->in->str);
    g_strchomp(line);
    g_string_erase(s->in, 0, newline - s->in->str + 1);
    return line;
}

/* ---- process ---- */

static void child(char **argv, int err_fd)
{
    const char *options = getenv("ASAN_OPTIONS"); /* of tests/meson.build */

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(err_fd, STDERR_FILENO);
    dup2(err_fd, STDOUT_FILENO);
    /* QEMU frees little when it ends; this test is not about QEMU's leaks.  The last one counts. */
    setenv("ASAN_OPTIONS", g_strconcat(options ? options : "", ":detect_leaks=0", NULL), 1);
    execv(argv[0], argv);
    dprintf(STDERR_FILENO, "cannot run %s\n", argv[0]);
    _exit(127);
}

static char **command(const char *args, const char *own)
{
    const char *qemu = getenv("SG_QEMU"), *firmware = getenv("SG_FIRMWARE");
    GError *error = NULL;
    char *line, **argv;

    if (!qemu || !*qemu) {
        T_SKIP("SG_QEMU does not name a QEMU");
    }
    if (access(qemu, X_OK) != 0) {
        T_FAIL("SG_QEMU: there is no %s", qemu);
    }
    line = g_strdup_printf("%s -accel qtest -machine q35 -nodefaults -display none -no-user-config "
                           "%s %s %s %s",
                           qemu, firmware && *firmware ? "-L" : "", firmware ? firmware : "", own,
                           args);
    if (!g_shell_parse_argv(line, NULL, &argv, &error)) {
        T_FAIL("%s: %s", args, error->message);
    }
    g_free(line);
    return argv;
}

static void socket_pair(int fds[2])
{
    T_TRUE(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);
}

static void hello(struct qtest *q)
{
    char *greeting = receive_line(q, &q->qmp);

    if (!strstr(greeting, "\"QMP\"")) {
        broken(q, greeting);
    }
    g_free(greeting);
    qtest_qmp_ok(q, "{\"execute\": \"qmp_capabilities\"}");
}

struct qtest *qtest_start(const char *args)
{
    qtest_end_leftovers();
    return qtest_start_beside(args);
}

struct qtest *qtest_start_beside(const char *args)
{
    struct qtest *q;
    int bus[2], qmp[2];
    char own[300], **argv;

    socket_pair(bus);
    socket_pair(qmp);
    snprintf(own, sizeof(own),
             "-chardev socket,fd=%d,id=sgqtest -qtest chardev:sgqtest -qtest-log none "
             "-chardev socket,fd=%d,id=sgqmp -mon chardev=sgqmp,mode=control",
             bus[1], qmp[1]);
    argv = command(args, own);
    q = g_new0(struct qtest, 1);
    q->bus = (struct line_socket){ .fd = bus[0], .in = g_string_new(NULL) };
    q->qmp = (struct line_socket){ .fd = qmp[0], .in = g_string_new(NULL) };
    q->events = g_string_new(NULL);
    q->err_fd = memfd_create("stderr", MFD_CLOEXEC);
    T_TRUE(q->err_fd >= 0);
    q->pid = fork();
    if (q->pid == 0) {
        child(argv, q->err_fd);
    }
    T_TRUE(q->pid > 0);
    close(bus[1]);
    close(qmp[1]);
    g_strfreev(argv);
    q->next = alive;
    alive = q;
    hello(q);
    return q;
}

void qtest_stop(struct qtest *q)
{
    char *text;
    int status;
    bool bad;

    g_free(qtest_qmp(q, "{\"execute\": \"quit\"}"));
    status = reap(q->pid, patience_ms());
    text = read_all(q->err_fd, 0);
    bad = status != 0 || has_sanitizer_report(text);
    if (bad) {
        show(text);
    }
    g_free(text);
    forget(q);
    if (bad) {
        T_FAIL("QEMU ended with status %d or a report", status);
    }
}

pid_t qtest_pid(const struct qtest *q)
{
    return q->pid;
}

void qtest_kill(struct qtest *q)
{
    kill(q->pid, SIGKILL);
    T_EQ_INT(reap(q->pid, patience_ms()), 128 + SIGKILL);
    forget(q);
}

int qtest_refused(const char *args, char **err)
{
    int fd = memfd_create("stderr", MFD_CLOEXEC), status;
    char **argv = command(args, "-S");
    pid_t pid;

    T_TRUE(fd >= 0);
    pid = fork();
    if (pid == 0) {
        child(argv, fd);
    }
    T_TRUE(pid > 0);
    g_strfreev(argv);
    /* A QEMU that accepts the command line keeps running: that is the answer then. */
    status = reap(pid, patience_ms());
    *err = read_all(fd, 0);
    close(fd);
    if (has_sanitizer_report(*err)) {
        show(*err);
        T_FAIL("a sanitizer's report");
    }
    return status == -1 ? 0 : status;
}

/* ---- bus ---- */

/* Sends a request; returns the rest of the answer after "OK". */
static char *ask(struct qtest *q, const char *text, size_t len)
{
    char *line, *answer;

    send_text(q, &q->bus, text, len);
    for (;;) {
        line = receive_line(q, &q->bus);
        if (!g_str_has_prefix(line, "IRQ ")) {
            break;
        }
        g_free(line);
    }
    if (!g_str_has_prefix(line, "OK")) {
        T_NOTE("qtest: %.60s -> %s", text, line);
        broken(q, "refuses a qtest command");
    }
    answer = g_strdup(line[2] ? line + 3 : "");
    g_free(line);
    return answer;
}

static uint64_t ask_number(struct qtest *q, const char *what, uint64_t addr)
{
    char text[64], *answer;
    uint64_t value;

    answer = ask(q, text, snprintf(text, sizeof(text), "%s 0x%" PRIx64 "\n", what, addr));
    value = g_ascii_strtoull(answer, NULL, 0);
    g_free(answer);
    return value;
}

static void tell(struct qtest *q, const char *what, uint64_t addr, uint64_t value)
{
    char text[80];

    g_free(
        ask(q, text,
            snprintf(text, sizeof(text), "%s 0x%" PRIx64 " 0x%" PRIx64 "\n", what, addr, value)));
}

uint8_t qtest_readb(struct qtest *q, uint64_t addr)
{
    return ask_number(q, "readb", addr);
}

uint16_t qtest_readw(struct qtest *q, uint64_t addr)
{
    return ask_number(q, "readw", addr);
}

uint32_t qtest_readl(struct qtest *q, uint64_t addr)
{
    return ask_number(q, "readl", addr);
}

uint64_t qtest_readq(struct qtest *q, uint64_t addr)
{
    return ask_number(q, "readq", addr);
}

void qtest_writeb(struct qtest *q, uint64_t addr, uint8_t value)
{
    tell(q, "writeb", addr, value);
}

void qtest_writew(struct qtest *q, uint64_t addr, uint16_t value)
{
    tell(q, "writew", addr, value);
}

void qtest_writel(struct qtest *q, uint64_t addr, uint32_t value)
{
    tell(q, "writel", addr, value);
}

void qtest_writeq(struct qtest *q, uint64_t addr, uint64_t value)
{
    tell(q, "writeq", addr, value);
}

void qtest_outl(struct qtest *q, uint16_t port, uint32_t value)
{
    tell(q, "outl", port, value);
}

uint32_t qtest_inl(struct qtest *q, uint16_t port)
{
    return ask_number(q, "inl", port);
}

void qtest_memread(struct qtest *q, uint64_t addr, void *buf, size_t len)
{
    char text[64], *answer;
    guchar *octets;
    gsize n = 0;

    if (!len) {
        return;
    }
    answer = ask(q, text, snprintf(text, sizeof(text), "b64read 0x%" PRIx64 " 0x%zx\n", addr, len));
    octets = g_base64_decode(answer, &n);
    T_EQ_U64(n, len);
    memcpy(buf, octets, n);
    g_free(octets);
    g_free(answer);
}

void qtest_memwrite(struct qtest *q, uint64_t addr, const void *buf, size_t len)
{
    GString *text = g_string_new(NULL);
    gchar *octets;

    if (len) {
        octets = g_base64_encode(buf, len);
        g_string_printf(text, "b64write 0x%" PRIx64 " 0x%zx %s\n", addr, len, octets);
        g_free(ask(q, text->str, text->len));
        g_free(octets);
    }
    g_string_free(text, TRUE);
}

void qtest_memset(struct qtest *q, uint64_t addr, uint8_t value, size_t len)
{
    char text[80];

    g_free(
        ask(q, text,
            snprintf(text, sizeof(text), "memset 0x%" PRIx64 " 0x%zx 0x%x\n", addr, len, value)));
}

/* Each answer ends a round; whether there was work to do is unknown. */
bool qtest_round(struct qtest *q)
{
    qtest_readl(q, 0);
    return true;
}

uint64_t qtest_clock_step(struct qtest *q, uint64_t ns)
{
    char text[64], *answer;
    uint64_t now;

    answer = ask(q, text, snprintf(text, sizeof(text), "clock_step %" PRIu64 "\n", ns));
    now = g_ascii_strtoull(answer, NULL, 0);
    g_free(answer);
    return now;
}

/* ---- QMP ---- */

static char *qmp_answer(struct qtest *q)
{
    for (;;) {
        char *line = receive_line(q, &q->qmp);

        if (!strstr(line, "\"event\":")) {
            return line;
        }
        g_string_append(q->events, line);
        g_string_append_c(q->events, '\n');
        g_free(line);
    }
}

static char *qmp_va(struct qtest *q, const char *fmt, va_list ap)
{
    char *text = g_strdup_vprintf(fmt, ap);

    /* A command may end QEMU before anything could be sent after it. */
    send_text(q, &q->qmp, text, strlen(text));
    g_free(text);
    return qmp_answer(q);
}

char *qtest_qmp(struct qtest *q, const char *fmt, ...)
{
    char *answer;
    va_list ap;

    va_start(ap, fmt);
    answer = qmp_va(q, fmt, ap);
    va_end(ap);
    return answer;
}

void qtest_qmp_ok(struct qtest *q, const char *fmt, ...)
{
    char *answer;
    va_list ap;

    va_start(ap, fmt);
    answer = qmp_va(q, fmt, ap);
    va_end(ap);
    if (strstr(answer, "\"error\":")) {
        broken(q, answer);
    }
    g_free(answer);
}

void qtest_qmp_event(struct qtest *q, const char *name)
{
    char *wanted = g_strdup_printf("\"event\": \"%s\"", name);
    char *line;

    if (strstr(q->events->str, wanted)) {
        g_string_truncate(q->events, 0);
    } else {
        do {
            line = receive_line(q, &q->qmp);
            if (strstr(line, wanted)) {
                g_free(line);
                break;
            }
            g_free(line);
        } while (true);
    }
    g_free(wanted);
}
