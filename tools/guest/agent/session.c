// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One worker: sessions on one virtio-serial port, one after the other.
 *
 * States: scanning for a preamble; collecting the request ('o' frames);
 * running, in which one poll() loop moves bytes between the port and the
 * command's pipes.  Each direction has one bounded buffer, and a source is read
 * only when its buffer has room, so a slow side slows the other one and nothing
 * grows.  The port shows POLLHUP while no client is connected.
 *
 * A pidfd reports the command's end.  What its pipes hold at that moment is still delivered; what
 * its children in the background write later is not.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "buffer.h"

#define MAX_ARGS 4096
#define IN_SIZE 65536
#define OUT_SIZE 131072
#define CHUNK SG_BUFFER_CHUNK

struct session {
    int port;
    uint8_t nonce[SG_AGENT_NONCE_LEN];
    struct buffer rx;    /* from the port, not yet parsed */
    struct buffer tx;    /* for the port */
    struct buffer input; /* for the command */
    bool input_ends;
    char *request;
    size_t request_len;
    pid_t pid;
    int pidfd;
    int in, out, err; /* our ends; of a terminal `out`, and `in` is a copy of it */
    bool terminal;
    bool lost; /* the client went away or broke the protocol */
};

static void frame(struct session *s, char type, const void *payload, size_t len)
{
    uint8_t header[SG_AGENT_HEADER_LEN];

    memcpy(header, s->nonce, 4);
    header[4] = type;
    header[5] = 0;
    header[6] = len & 0xff;
    header[7] = len >> 8;
    sg_buffer_append(&s->tx, header, sizeof(header));
    sg_buffer_append(&s->tx, payload, len);
}

/* SIGIO announces that a client comes or goes; it is kept blocked and fetched here. */
static void wait_for_client(void)
{
    struct timespec limit = { .tv_sec = 5 };
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGIO);
    sigtimedwait(&set, NULL, &limit);
}

/*
 * Whether there is no client, and not only for a moment.  A client's end and the next one's
 * beginning are announced apart from the bytes, and may be late: the next client's preamble may
 * have arrived already, and its session begun, when the port seems to hang up and to come back.
 */
static bool client_gone(struct session *s)
{
    const struct timespec pause = { .tv_nsec = 5 * 1000 * 1000 };
    struct pollfd p = { .fd = s->port };
    int i;

    for (i = 0; i < 20; i++) {
        if (poll(&p, 1, 0) != 1 || !(p.revents & POLLHUP)) {
            return false;
        }
        nanosleep(&pause, NULL);
    }
    return true;
}

/* Scans for a preamble; the session starts after it. */
static void find_preamble(struct session *s)
{
    const size_t want = SG_AGENT_MAGIC_LEN + SG_AGENT_NONCE_LEN;
    struct pollfd p = { .fd = s->port, .events = POLLIN };

    for (;;) {
        while (sg_buffer_used(&s->rx) >= want) {
            uint8_t *at = memmem(s->rx.data + s->rx.start, sg_buffer_used(&s->rx), SG_AGENT_MAGIC,
                                 SG_AGENT_MAGIC_LEN);
            if (!at) {
                sg_buffer_consume(&s->rx, sg_buffer_used(&s->rx) - SG_AGENT_MAGIC_LEN + 1);
                break;
            }
            sg_buffer_consume(&s->rx, at - (s->rx.data + s->rx.start));
            if (sg_buffer_used(&s->rx) < want) {
                break;
            }
            memcpy(s->nonce, s->rx.data + s->rx.start + SG_AGENT_MAGIC_LEN, SG_AGENT_NONCE_LEN);
            sg_buffer_consume(&s->rx, want);
            return;
        }
        poll(&p, 1, -1);
        /* Without a client the port is also readable: a read returns its end. */
        if (p.revents & POLLHUP) {
            if (client_gone(s)) {
                sg_buffer_consume(&s->rx, sg_buffer_used(&s->rx));
                wait_for_client();
            }
        } else if (p.revents & POLLIN) {
            sg_buffer_fill(s->port, &s->rx);
        }
    }
}

static void set_size(int fd, const char *text)
{
    struct winsize size = { 0 };
    unsigned rows, cols;

    if (sscanf(text, "%ux%u", &rows, &cols) == 2) {
        size.ws_row = rows;
        size.ws_col = cols;
        ioctl(fd, TIOCSWINSZ, &size);
    }
}

struct command {
    char *argv[MAX_ARGS + 1];
    int argc;
    const char *folder;
    const char *terminal;
};

/* Makes a NULL-terminated argv; the strings of the request stay where they are. */
static const char *parse_request(struct session *s, struct command *c)
{
    char *at = s->request, *end = s->request + s->request_len;

    memset(c, 0, sizeof(*c));
    while (at < end) {
        char *next = memchr(at, 0, end - at);

        if (!next) {
            return "request without an end";
        }
        switch (*at) {
        case 'a':
            if (c->argc == MAX_ARGS) {
                return "too many arguments";
            }
            c->argv[c->argc++] = at + 1;
            break;
        case 'd':
            c->folder = at + 1;
            break;
        case 't':
            c->terminal = at + 1;
            break;
        case 'e':
            break;
        default:
            return "unknown part of a request";
        }
        at = next + 1;
    }
    return c->argc ? NULL : "no command";
}

static void set_environment(struct session *s)
{
    char *at, *end = s->request + s->request_len;

    for (at = s->request; at < end; at += strlen(at) + 1) {
        if (*at == 'e') {
            putenv(at + 1);
        }
    }
}

/* Runs in the child.  Errors go to its standard error; exit statuses are as a shell's. */
static void run_command(struct session *s, struct command *c)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    set_environment(s);
    if (chdir(c->folder ? c->folder : "/root")) {
        fprintf(stderr, "staghorn: %s: %s\n", c->folder ? c->folder : "/root", strerror(errno));
        _exit(126);
    }
    execvp(c->argv[0], c->argv);
    fprintf(stderr, "staghorn: %s: %s\n", c->argv[0],
            errno == ENOENT ? "command not found in the VM" : strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

static bool start_on_pipes(struct session *s, struct command *c)
{
    int in[2], out[2], err[2];

    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) {
        return false;
    }
    s->pid = fork();
    if (s->pid == 0) {
        setsid();
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(err[1], 2);
        run_command(s, c);
    }
    close(in[0]);
    close(out[1]);
    close(err[1]);
    s->in = in[1];
    s->out = out[0];
    s->err = err[0];
    return s->pid > 0;
}

static bool start_on_terminal(struct session *s, struct command *c)
{
    int master;

    s->terminal = true;
    s->pid = forkpty(&master, NULL, NULL, NULL);
    if (s->pid == 0) {
        run_command(s, c);
    }
    if (s->pid < 0) {
        return false;
    }
    fcntl(master, F_SETFD, FD_CLOEXEC);
    set_size(master, c->terminal);
    s->out = master;
    s->in = dup(master);
    return true;
}

static void send_status(struct session *s, int status)
{
    uint8_t payload[4] = { status & 0xff, (status >> 8) & 0xff, 0, 0 };

    frame(s, 'q', payload, sizeof(payload));
}

static void refuse(struct session *s, const char *why)
{
    char text[160];

    snprintf(text, sizeof(text), "staghorn: %s\n", why);
    frame(s, '2', text, strlen(text));
    send_status(s, 126);
}

static bool start_command(struct session *s)
{
    static struct command c;
    const char *why = parse_request(s, &c);
    int fds[3], i;

    if (!why && !(c.terminal ? start_on_terminal(s, &c) : start_on_pipes(s, &c))) {
        why = strerror(errno);
    }
    if (why) {
        refuse(s, why);
        return false;
    }
    s->pidfd = pidfd_open(s->pid, 0);
    fds[0] = s->in, fds[1] = s->out, fds[2] = s->err;
    for (i = 0; i < 3; i++) {
        if (fds[i] >= 0) {
            fcntl(fds[i], F_SETFL, fcntl(fds[i], F_GETFL) | O_NONBLOCK);
            fcntl(fds[i], F_SETFD, FD_CLOEXEC);
        }
    }
    return true;
}

static bool add_request(struct session *s, const uint8_t *payload, size_t len)
{
    char *grown;

    if (s->pid || s->request_len + len > SG_AGENT_REQUEST_MAX) {
        return false;
    }
    grown = realloc(s->request, s->request_len + len + 1);
    if (!grown) {
        return false;
    }
    memcpy(grown + s->request_len, payload, len);
    s->request = grown;
    s->request_len += len;
    return true;
}

/* Handles one frame of the client.  False: the session cannot go on. */
static bool take_frame(struct session *s, char type, const uint8_t *payload, size_t len)
{
    char text[32];

    switch (type) {
    case 'o':
        return add_request(s, payload, len);
    case 'x':
        return !s->pid && start_command(s);
    case 'i':
        if (s->in >= 0) {
            sg_buffer_append(&s->input, payload, len);
        }
        return true;
    case 'f':
        s->input_ends = true;
        return true;
    case 's':
        if (len == 1 && s->pid > 0) {
            kill(-s->pid, payload[0]);
        }
        return true;
    case 'w':
        snprintf(text, sizeof(text), "%.*s", (int)len, (const char *)payload);
        if (s->terminal && s->out >= 0) {
            set_size(s->out, text);
        }
        return true;
    }
    return false;
}

/* Takes all complete frames, as long as the command's input has room. */
static void take_frames(struct session *s, bool *over)
{
    while (!*over && sg_buffer_used(&s->rx) >= SG_AGENT_HEADER_LEN) {
        uint8_t *h = s->rx.data + s->rx.start;
        size_t len = h[6] | h[7] << 8;

        if (memcmp(h, s->nonce, 4) || h[5]) {
            s->lost = true;
            return;
        }
        if (sg_buffer_used(&s->rx) < SG_AGENT_HEADER_LEN + len || sg_buffer_room(&s->input) < len) {
            return;
        }
        if (!take_frame(s, h[4], h + SG_AGENT_HEADER_LEN, len)) {
            *over = true;
        }
        sg_buffer_consume(&s->rx, SG_AGENT_HEADER_LEN + len);
    }
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

static bool tx_has_room(struct session *s)
{
    return sg_buffer_room(&s->tx) >= CHUNK + 2 * SG_AGENT_HEADER_LEN;
}

/* One read of the command's output.  Closes the pipe at its end. */
static bool take_output(struct session *s, int *fd, char type)
{
    uint8_t chunk[CHUNK];
    ssize_t n;

    if (*fd < 0 || !tx_has_room(s)) {
        return false;
    }
    n = read(*fd, chunk, sizeof(chunk));
    if (n > 0) {
        frame(s, type, chunk, n);
        return true;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close_fd(fd);
    }
    return false;
}

static void give_input(struct session *s)
{
    static const char end_of_file = 4;

    if (s->in >= 0 && !sg_buffer_drain(s->in, &s->input)) {
        close_fd(&s->in);
    }
    if (s->in < 0) {
        sg_buffer_consume(&s->input, sg_buffer_used(&s->input));
    } else if (s->input_ends && !sg_buffer_used(&s->input)) {
        if (s->terminal && write(s->in, &end_of_file, 1) < 0) {
            s->lost = true;
        }
        close_fd(&s->in);
    }
}

enum { AT_PORT, AT_IN, AT_OUT, AT_ERR, AT_PID, AT_COUNT };

static void wait_events(struct session *s, struct pollfd *p)
{
    bool output = tx_has_room(s);

    p[AT_PORT] = (struct pollfd){ s->port, 0, 0 };
    if (sg_buffer_room(&s->rx)) {
        p[AT_PORT].events |= POLLIN;
    }
    if (sg_buffer_used(&s->tx)) {
        p[AT_PORT].events |= POLLOUT;
    }
    p[AT_IN] = (struct pollfd){ sg_buffer_used(&s->input) ? s->in : -1, POLLOUT, 0 };
    p[AT_OUT] = (struct pollfd){ output ? s->out : -1, POLLIN, 0 };
    p[AT_ERR] = (struct pollfd){ output ? s->err : -1, POLLIN, 0 };
    p[AT_PID] = (struct pollfd){ s->pidfd, POLLIN, 0 };
    poll(p, AT_COUNT, -1);
}

/* Moves bytes until the command has ended or the client is gone. */
static void run_session(struct session *s)
{
    struct pollfd p[AT_COUNT];
    bool over = false;

    for (;;) {
        take_frames(s, &over);
        give_input(s);
        if (over || s->lost) {
            return;
        }
        wait_events(s, p);
        if (p[AT_PORT].revents & POLLHUP) {
            if (client_gone(s)) {
                s->lost = true;
                return;
            }
            continue;
        }
        if (p[AT_PORT].revents & POLLIN) {
            sg_buffer_fill(s->port, &s->rx);
        }
        if (p[AT_OUT].revents) {
            take_output(s, &s->out, '1');
        }
        if (p[AT_ERR].revents) {
            take_output(s, &s->err, '2');
        }
        if (p[AT_PORT].revents & POLLOUT) {
            sg_buffer_drain(s->port, &s->tx);
        }
        if (p[AT_PID].revents) {
            return;
        }
    }
}

/* Writes everything that waits for the client. */
static void flush(struct session *s)
{
    struct pollfd p = { .fd = s->port, .events = POLLOUT };

    while (sg_buffer_used(&s->tx) && !s->lost) {
        poll(&p, 1, -1);
        if (p.revents & POLLHUP) {
            s->lost = client_gone(s);
        } else if (!sg_buffer_drain(s->port, &s->tx)) {
            s->lost = true;
        }
    }
}

/* Reads the rest of the output that is already there. */
static void finish_output(struct session *s)
{
    bool more = true;

    while (more && !s->lost) {
        more = take_output(s, &s->out, '1');
        more |= take_output(s, &s->err, '2');
        flush(s);
    }
}

static void end_command(struct session *s)
{
    struct pollfd p = { .fd = s->pidfd, .events = POLLIN };
    int status = 0;

    if (s->lost) {
        kill(-s->pid, SIGHUP);
        kill(-s->pid, SIGTERM);
        if (poll(&p, 1, 1000) <= 0) {
            kill(-s->pid, SIGKILL);
        }
    }
    if (waitpid(s->pid, &status, 0) != s->pid) {
        status = 126 << 8;
    }
    if (s->lost) {
        kill(-s->pid, SIGKILL);
        return;
    }
    finish_output(s);
    send_status(s, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

static void serve_one(struct session *s)
{
    s->pid = 0;
    s->in = s->out = s->err = s->pidfd = -1;
    s->terminal = s->lost = s->input_ends = false;
    sg_buffer_consume(&s->tx, sg_buffer_used(&s->tx));
    sg_buffer_consume(&s->input, sg_buffer_used(&s->input));
    s->request_len = 0;

    find_preamble(s);
    frame(s, 'h', s->nonce, sizeof(s->nonce));
    run_session(s);
    if (s->pid > 0) {
        end_command(s);
    }
    flush(s);
    close_fd(&s->in);
    close_fd(&s->out);
    close_fd(&s->err);
    close_fd(&s->pidfd);
    free(s->request);
    s->request = NULL;
}

void sg_agent_serve(const char *device)
{
    struct session s = { 0 };
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGIO);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);

    s.port = open(device, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (s.port < 0) {
        sleep(1);
        _exit(1);
    }
    fcntl(s.port, F_SETOWN, getpid());
    fcntl(s.port, F_SETFL, fcntl(s.port, F_GETFL) | O_ASYNC);
    sg_buffer_make(&s.rx, 2 * IN_SIZE + SG_AGENT_HEADER_LEN);
    sg_buffer_make(&s.tx, OUT_SIZE);
    sg_buffer_make(&s.input, 2 * IN_SIZE);
    for (;;) {
        serve_one(&s);
    }
}
