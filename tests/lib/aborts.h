/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks that code ends the process: an assertion about our own mistake.
 *
 * run(arg) is called in a child whose stderr is discarded.  The result is true if the child died of
 * SIGABRT; a run that returns, exits or dies of another signal did not abort.
 */
#ifndef TESTS_ABORTS_H
#define TESTS_ABORTS_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

static inline bool t_aborts(void (*run)(void *arg), void *arg)
{
    int status = 0;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr)) {
            _exit(2);
        }
        run(arg);
        _exit(0);
    }
    T_TRUE(child > 0);
    T_TRUE(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#endif
