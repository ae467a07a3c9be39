/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The peer of mpe: mpe_server ADDRESS [DEVICE-OF-MEMORY] */
#include "mpe_net.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s ADDRESS [DEVICE]\n", argv[0]);
        return 2;
    }
    mpe_serve(argv[1], argv[2]);
}
