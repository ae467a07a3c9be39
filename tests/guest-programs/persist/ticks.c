/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prints the time stamp counter of the processor: ticks.
 */
#include <stdio.h>
#include <x86intrin.h>

int main(void)
{
    printf("%llu\n", (unsigned long long)__rdtsc());
    return 0;
}
