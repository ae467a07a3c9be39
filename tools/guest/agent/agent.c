// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The guest's process 1.
 *
 * It starts one worker for each virtio-serial port named staghorn.N and one shell on the serial
 * console.  From then on it only reaps children: its own, which it starts again, and orphans of
 * commands.  SIGTERM powers the VM off.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"

#define PORTS "/sys/class/virtio-ports"
#define MAX_CHILDREN 32

struct child {
    pid_t pid;
    char device[64]; /* empty: the console's shell */
};

static struct child children[MAX_CHILDREN];
static int num_children;
static volatile sig_atomic_t power_off;

static void on_term(int sig)
{
    (void)sig;
    power_off = 1;
}

static void run_console(void)
{
    char *argv[] = { "-bash", NULL };
    int fd;

    setsid();
    fd = open("/dev/ttyS0", O_RDWR);
    if (fd < 0) {
        sleep(3600);
        _exit(1);
    }
    ioctl(fd, TIOCSCTTY, 1);
    dup2(fd, 0);
    dup2(fd, 1);
    dup2(fd, 2);
    if (fd > 2) {
        close(fd);
    }
    setenv("TERM", "xterm", 0);
    if (chdir("/root")) {
        chdir("/");
    }
    execv("/bin/bash", argv);
    _exit(1);
}

static void start(struct child *child)
{
    sigset_t none;
    pid_t pid = fork();

    if (pid == 0) {
        sigemptyset(&none);
        signal(SIGTERM, SIG_DFL);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (child->device[0]) {
            sg_agent_serve(child->device);
        }
        run_console();
    }
    child->pid = pid;
}

static void add_child(const char *device)
{
    struct child *child;

    if (num_children == MAX_CHILDREN) {
        return;
    }
    child = &children[num_children++];
    snprintf(child->device, sizeof(child->device), "%s", device);
    start(child);
}

/* Only sysfs has the ports' names: there is no udev that would make links. */
static void start_workers(void)
{
    char path[PATH_MAX], name[64], device[80];
    struct dirent *entry;
    DIR *dir = opendir(PORTS);

    while (dir && (entry = readdir(dir))) {
        FILE *file;

        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof(path), PORTS "/%s/name", entry->d_name);
        file = fopen(path, "re");
        if (!file) {
            continue;
        }
        if (fgets(name, sizeof(name), file) && !strncmp(name, "staghorn.", 9)) {
            snprintf(device, sizeof(device), "/dev/%.32s", entry->d_name);
            add_child(device);
        }
        fclose(file);
    }
    if (dir) {
        closedir(dir);
    }
}

static void reap(void)
{
    int i, status;
    pid_t pid = waitpid(-1, &status, 0);

    for (i = 0; pid > 0 && i < num_children; i++) {
        if (children[i].pid == pid) {
            start(&children[i]);
        }
    }
    if (pid < 0 && errno == ECHILD) {
        sleep(1);
    }
}

int main(void)
{
    struct sigaction action = { .sa_handler = on_term };

    sigaction(SIGTERM, &action, NULL);
    reboot(RB_DISABLE_CAD);
    start_workers();
    add_child("");
    while (!power_off) {
        reap();
    }
    sync();
    reboot(RB_POWER_OFF);
    return 0;
}
