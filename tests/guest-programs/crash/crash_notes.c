// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crash_notes DEVICE ask HOST: in the machine of crash_log, sends its notes to the other one.
 * crash_notes DEVICE serve: in the machine of crash_server, compares them with its records.
 *
 * The recovery of a log whose writer notes in its own persistent memory what the other machine
 * keeps (crash_wire.h): each record that is noted has to be there.  Both print the number of those
 * that are missing; the status is 1 if there are any.
 */
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "crash_wire.h"

#define PORT "7310"

enum { REGION = 2 << 20, TRIES = 400, PAUSE_US = 20000 };

struct notes {
    uint64_t flag[CRASH_RECORDS_MAX]; /* 0: not noted */
};

static void die(const char *what)
{
    perror(what);
    exit(2);
}

static const uint8_t *map_device(const char *name)
{
    int fd = open(name, O_RDWR);
    void *start = fd < 0 ? MAP_FAILED : mmap(NULL, REGION, PROT_READ, MAP_SHARED, fd, 0);

    if (start == MAP_FAILED) {
        die(name);
    }
    return start;
}

static void transfer(int fd, void *data, size_t len, bool sends)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = sends ? write(fd, (char *)data + done, len - done)
                          : read(fd, (char *)data + done, len - done);

        if (n <= 0) {
            die("connection");
        }
        done += (size_t)n;
    }
}

static struct addrinfo *find_host(const char *host)
{
    const struct addrinfo hints = { .ai_family = AF_INET,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_flags = host ? 0 : AI_PASSIVE };
    struct addrinfo *found;

    if (getaddrinfo(host, PORT, &hints, &found)) {
        fprintf(stderr, "crash_notes: there is no host %s\n", host);
        exit(2);
    }
    return found;
}

/* The server may not listen yet. */
static int connect_to(const char *host)
{
    struct addrinfo *to = find_host(host);

    for (unsigned i = 0; i < TRIES; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        if (fd < 0) {
            die("socket");
        }
        if (connect(fd, to->ai_addr, to->ai_addrlen) == 0) {
            freeaddrinfo(to);
            return fd;
        }
        close(fd);
        usleep(PAUSE_US);
    }
    die(host);
    return -1;
}

static int accept_one(void)
{
    struct addrinfo *at = find_host(NULL);
    int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1, fd;

    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
        bind(listener, at->ai_addr, at->ai_addrlen) || listen(listener, 1)) {
        die("port " PORT);
    }
    freeaddrinfo(at);
    fd = accept(listener, NULL, NULL);
    if (fd < 0) {
        die("accept");
    }
    close(listener);
    return fd;
}

static uint32_t ask(const uint8_t *memory, const char *host)
{
    struct notes notes;
    uint32_t missing;
    int fd;

    for (unsigned i = 0; i < CRASH_RECORDS_MAX; i++) {
        memcpy(&notes.flag[i], memory + (size_t)i * CRASH_LINE, sizeof(notes.flag[i]));
    }
    fd = connect_to(host);
    transfer(fd, &notes, sizeof(notes), true);
    transfer(fd, &missing, sizeof(missing), false);
    close(fd);
    return missing;
}

static uint32_t serve(const uint8_t *memory)
{
    struct notes notes;
    uint32_t missing = 0;
    int fd = accept_one();

    transfer(fd, &notes, sizeof(notes), false);
    for (uint32_t i = 0; i < CRASH_RECORDS_MAX; i++) {
        const uint8_t *record = memory + LOG_RECORDS + (size_t)i * LOG_RECORD;

        if (notes.flag[i] && !log_intact(record, (uint32_t)(notes.flag[i] >> 32), i)) {
            printf("record %u is noted, and missing\n", i);
            missing++;
        }
    }
    transfer(fd, &missing, sizeof(missing), true);
    close(fd);
    return missing;
}

int main(int argc, char **argv)
{
    bool asks = argc == 4 && strcmp(argv[2], "ask") == 0;
    uint32_t missing;

    if (!asks && (argc != 3 || strcmp(argv[2], "serve") != 0)) {
        fprintf(stderr, "usage: crash_notes DEVICE serve, or DEVICE ask HOST\n");
        return 2;
    }
    missing = asks ? ask(map_device(argv[1]), argv[3]) : serve(map_device(argv[1]));
    printf("missing %u\n", missing);
    return missing != 0;
}
