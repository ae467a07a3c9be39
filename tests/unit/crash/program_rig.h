/* SPDX-License-Identifier: GPL-2.0-or-later */
/* staghorn-explore as a program, in a folder of its own, which is the current one. */
#ifndef SG_TESTS_PROGRAM_RIG_H
#define SG_TESTS_PROGRAM_RIG_H

#include "explore_rig.h"
#include "json_read.h"
#include "tap.h"

struct pr_ran {
    int status;
    char *out, *err;
};

/* A file of the folder; the caller frees the path. */
char *pr_path(const char *name);
void pr_save(const char *name, const uint8_t *octets, size_t len);
/* The traces of a run of a target and one client; the run is over. */
void pr_save_traces(struct xr *r);
/* The content of a file of the folder; the caller frees it. */
char *pr_contents(const char *name, gsize *len);
struct pr_ran pr_run(const char *arguments);
/* Runs, and expects a status and a piece of what is printed. */
void pr_expect(const char *arguments, int status, const char *piece);
/* Expects a piece of a file. */
void pr_expect_in(const char *name, const char *piece);
/* A file of JSON; the caller frees it. */
struct json_value *pr_json(const char *name);
/* An element of an array; a number of an object. */
const struct json_value *pr_item(const struct json_value *list, guint i);
uint64_t pr_number(const struct json_value *v, const char *key);
/* The memory, empty at the start, with an image of an exploration's folder. */
void pr_image(const char *folder, const char *image, uint8_t memory[XR_SIZE]);
/* Runs the cases in a new folder. */
int pr_main(const struct t_case *cases, unsigned count, int argc, char **argv);

#endif
