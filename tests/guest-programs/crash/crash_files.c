// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crash_files FOLDER METHOD [FILES]: replaces and makes files, as editors and databases do.
 * crash_files FOLDER check FILES: is what was promised with so many files there?
 *
 * File n is written as a temporary file, and renamed to its name; every third one replaces the one
 * before it of the same name.  Then a mark says that n files are durable (kind "state", text n).
 * Methods:
 *
 *   right        fsync of the file, rename, fsync of the folder
 *   no-fsync     neither fsync
 *   no-folder    no fsync of the folder: the file's new name may be lost
 *
 * A check prints what is there.  Its status is 0 if each promised file has the octets of its last
 * promised version or of a later one, and 1 otherwise.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "staghorn_mark.h"

enum { FILES = 12, FILES_MAX = 1000, LENGTH = 9000, EVERY = 3 };

struct files_method {
    const char *name;
    bool file, folder; /* fsync */
};

static const struct files_method methods[] = {
    { "right", true, true },
    { "no-fsync", false, false },
    { "no-folder", true, false },
};

static char octets[LENGTH + FILES_MAX];

static void die(const char *what)
{
    perror(what);
    exit(2);
}

/* Which name file n gets. */
static unsigned name_of(unsigned n)
{
    return n % EVERY ? n : n - 1;
}

/* Versions differ in length and in each octet. */
static size_t make(unsigned n)
{
    size_t length = LENGTH + n;

    for (size_t i = 0; i < length; i++) {
        octets[i] = (char)(n * 31 + i * 7 + i / 251);
    }
    return length;
}

static void sync_path(const char *path, int flags)
{
    int fd = open(path, flags);

    if (fd < 0 || fsync(fd) || close(fd)) {
        die(path);
    }
}

static void add(unsigned n, const struct files_method *method)
{
    size_t length = make(n);
    char name[32], text[16];
    int fd = open("new", O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (fd < 0 || write(fd, octets, length) != (ssize_t)length) {
        die("new");
    }
    if ((method->file && fsync(fd)) || close(fd)) {
        die("new");
    }
    snprintf(name, sizeof(name), "file-%u", name_of(n));
    if (rename("new", name)) {
        die(name);
    }
    if (method->folder) {
        sync_path(".", O_RDONLY | O_DIRECTORY);
    }
    snprintf(text, sizeof(text), "%u", n);
    sg_mark("state", text);
}

/* The version that the file has; 0: none of them. */
static unsigned version_of(unsigned name)
{
    static char found[LENGTH + FILES_MAX + 1];
    char path[32];
    ssize_t length;
    unsigned n;
    int fd;

    snprintf(path, sizeof(path), "file-%u", name);
    fd = open(path, O_RDONLY);
    length = fd < 0 ? -1 : read(fd, found, sizeof(found));
    if (fd >= 0) {
        close(fd);
    }
    n = length < LENGTH ? 0 : (unsigned)(length - LENGTH);
    return n && n <= FILES_MAX && make(n) == (size_t)length && name_of(n) == name &&
                   !memcmp(found, octets, length)
               ? n
               : 0;
}

static int check(unsigned promised)
{
    unsigned wrong = 0;

    for (unsigned n = 1; n <= promised; n++) {
        bool replaced = n < promised && name_of(n + 1) == name_of(n);
        unsigned version = replaced ? n : version_of(name_of(n));

        if (version < n) {
            printf("file-%u is not as file %u was\n", name_of(n), n);
            wrong++;
        }
    }
    printf("promised %u wrong %u\n", promised, wrong);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    unsigned files = argc > 3 ? strtoul(argv[3], NULL, 0) : FILES;
    bool checks = argc == 4 && !strcmp(argv[2], "check");

    if (argc < 3 || argc > 4 || files > FILES_MAX || (!files && !checks)) {
        fprintf(stderr, "usage: crash_files FOLDER METHOD [1..%d files]\n", FILES_MAX);
        return 2;
    }
    if (chdir(argv[1])) {
        die(argv[1]);
    }
    if (checks) {
        return check(files);
    }
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (!strcmp(methods[i].name, argv[2])) {
            for (unsigned n = 1; n <= files; n++) {
                add(n, &methods[i]);
            }
            printf("made %u\n", files);
            return 0;
        }
    }
    fprintf(stderr, "crash_files: the methods are: right no-fsync no-folder\n");
    return 2;
}
