/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Drives a fuzz target without libFuzzer: first inputs made from seeds, then those kept in folders.
 * An input is kept because it once found a bug or because it reaches much (tools/fuzz --keep).
 *
 *     fuzz-NAME [--seeds FROM..TO] [--inputs FOLDER]... [FILE...]
 *
 * With files it runs only these.  When a target crashes, the input is in fuzz.crash in the current
 * folder, and stderr names its seed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/prng.h"
#include "fuzz.h"
#include "tap.h"

enum { INPUT_MAX = 4096, FOLDERS_MAX = 4 };

static const char *folders[FOLDERS_MAX];
static unsigned folder_count;
static uint64_t seed_from = 1, seed_to = 1000;

static uint8_t current[1 << 20];
static size_t current_len;
static uint64_t current_seed;
static const char *current_name;

/* Called by a sanitizer before it ends the program. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void leave_traces(void)
{
    char line[300];
    int fd = open("fuzz.crash", O_WRONLY | O_CREAT | O_TRUNC, 0666);

    if (fd >= 0) {
        if (write(fd, current, current_len) < 0) {
            snprintf(line, sizeof(line), "# cannot keep the input\n");
        }
        close(fd);
    }
    snprintf(line, sizeof(line), "# it died of %s %llu (%zu octets, kept in fuzz.crash)\n",
             current_name, (unsigned long long)current_seed, current_len);
    if (write(STDERR_FILENO, line, strlen(line)) < 0) {
        return;
    }
}

static void on_abort(int number)
{
    leave_traces();
    signal(number, SIG_DFL);
    raise(number);
}

/* Makes octets from a seed: runs of noise, of one value, of small values, of repetitions. */
static size_t generate(uint64_t seed, uint8_t *buf, size_t max)
{
    uint64_t state = seed;
    size_t len = 1 + sg_prng(&state) % max, at = 0;

    while (at < len) {
        uint64_t r = sg_prng(&state);
        size_t run = SG_MIN(1 + (r >> 8) % 64, len - at), i;
        uint8_t value = (uint8_t)(r >> 16);
        size_t from = at ? (r >> 24) % at : 0;

        for (i = 0; i < run; i++) {
            switch (r % 8) {
            case 0:
                buf[at + i] = value;
                break;
            case 1:
                buf[at + i] = (uint8_t)(sg_prng(&state) % 16);
                break;
            case 2:
                buf[at + i] = at ? buf[from + i] : 0;
                break;
            default:
                buf[at + i] = (uint8_t)sg_prng(&state);
            }
        }
        at += run;
    }
    return len;
}

static void run_file(const char *path)
{
    FILE *f = fopen(path, "rb");

    if (!f) {
        T_FAIL("cannot read %s", path);
    }
    current_len = fread(current, 1, sizeof(current), f);
    fclose(f);
    current_name = path;
    T_CONTEXT("%s", path);
    LLVMFuzzerTestOneInput(current, current_len);
}

static void folder_inputs(const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    unsigned n = 0;
    char path[1000];

    if (!d) {
        T_FAIL("cannot read %s", folder);
    }
    while ((e = readdir(d))) {
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
            run_file(path);
            n++;
        }
    }
    closedir(d);
    T_NOTE("%u inputs of %s", n, folder);
    T_TRUE(n > 0);
}

static void kept_inputs(void)
{
    for (unsigned i = 0; i < folder_count; i++) {
        folder_inputs(folders[i]);
    }
}

static void seeds(void)
{
    char reached[300];
    bool good;

    current_name = "seed";
    for (current_seed = seed_from; current_seed <= seed_to; current_seed++) {
        current_len = generate(current_seed, current, INPUT_MAX);
        T_CONTEXT("seed %llu", (unsigned long long)current_seed);
        LLVMFuzzerTestOneInput(current, current_len);
    }
    good = fuzz_reached(reached, sizeof(reached));
    T_NOTE("reached: %s", reached);
    T_TRUE(good || seed_to - seed_from < 100);
    T_NOTE("seeds %llu to %llu", (unsigned long long)seed_from, (unsigned long long)seed_to);
}

static const struct t_case cases[] = {
    { "inputs made from seeds do no harm", seeds },
    { "the inputs that are kept do no harm", kept_inputs },
};

int main(int argc, char **argv)
{
    int i, files = 0;

    signal(SIGABRT, on_abort);
    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(leave_traces);
    } else {
        signal(SIGSEGV, on_abort);
    }
    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--inputs") == 0 && i + 1 < argc && folder_count < FOLDERS_MAX) {
            folders[folder_count++] = argv[++i];
        } else if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) {
            unsigned long long a, b;

            if (sscanf(argv[++i], "%llu..%llu", &a, &b) != 2) {
                fprintf(stderr, "--seeds takes FROM..TO\n");
                return 2;
            }
            seed_from = a;
            seed_to = b;
        } else {
            run_file(argv[i]);
            files++;
        }
    }
    return files ? 0 : t_main(cases, folder_count ? 2 : 1, 1, argv);
}
