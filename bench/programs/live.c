/*
 * Very many live blocks, each freed and allocated anew in random order.
 *
 *     live PAIRS BLOCKS
 *
 * Prints one line of JSON: the pairs, without the BLOCKS allocations before them, and the nanoseconds that they took.
 */
#define _POSIX_C_SOURCE 199309L
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static size_t size_of(uint64_t random)
{
    return 16 + (random & 0x70);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: live PAIRS BLOCKS\n", stderr);
        return 2;
    }
    uint64_t const pairs = strtoull(argv[1], NULL, 10);
    uint64_t const blocks = strtoull(argv[2], NULL, 10);
    void **const live = malloc(blocks * sizeof *live);
    if (!live)
        return 1;
    for (uint64_t i = 0; i < blocks; i++)
        live[i] = malloc(size_of(i * 16));
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t const cpu = now(CLOCK_THREAD_CPUTIME_ID);
    uint64_t const wall = now(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < pairs; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        void **const place = &live[((state >> 32) * blocks) >> 32];
        free(*place);
        *place = malloc(size_of(state));
    }
    uint64_t const wall_ns = now(CLOCK_MONOTONIC) - wall;
    uint64_t const cpu_ns = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
    printf("{\"pairs\": %" PRIu64 ", \"wall_ns\": %" PRIu64 ", \"cpu_ns\": %" PRIu64 "}\n", pairs, wall_ns, cpu_ns);
    for (uint64_t i = 0; i < blocks; i++)
        free(live[i]);
    free(live);
    return 0;
}
