/*
 * Pairs of malloc and free below a stack of a given depth.
 *
 *     pairs PAIRS DEPTH [PATHS]
 *
 * DEPTH frames of eight functions with frames of different sizes lie between main and the function that allocates;
 * which functions, in which order, is one of PATHS paths (1 unless given), so PATHS is the number of stacks. The path
 * changes after each run of pairs, and a block's size after each pair.
 *
 * Prints one line of JSON: the pairs, and the nanoseconds that they took by the thread's CPU clock and by the wall's.
 */
#define _POSIX_C_SOURCE 199309L
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))

/* Volatile, so that the compiler cannot leave a pair out. */
static void *volatile sink;

struct path {
    uint64_t pairs;
    uint64_t bits; /* three a frame, used again from the start after 21 frames */
    unsigned depth;
};

static void descend(struct path *path, unsigned level);

static NOINLINE void pairs_here(uint64_t pairs)
{
    for (uint64_t i = 0; i < pairs; i++) {
        sink = malloc(16 + (i * 24) % 480);
        free(sink);
    }
}

/* A frame of at least `words` words; the store after the call keeps it from becoming a jump. */
#define FRAME(name, words)                                                                                       \
    static NOINLINE void name(struct path *path, unsigned level)                                                 \
    {                                                                                                            \
        volatile uint64_t local[words];                                                                          \
        local[0] = level;                                                                                        \
        descend(path, level + 1);                                                                                \
        (void)local[words - 1];                                                                                    \
    }

FRAME(frame_0, 1)
FRAME(frame_1, 2)
FRAME(frame_2, 4)
FRAME(frame_3, 7)
FRAME(frame_4, 12)
FRAME(frame_5, 18)
FRAME(frame_6, 27)
FRAME(frame_7, 40)

/* Inlined into every frame function: one level of calls is one frame. */
static inline __attribute__((always_inline)) void descend(struct path *path, unsigned level)
{
    if (level == path->depth) {
        pairs_here(path->pairs);
        return;
    }
    switch ((path->bits >> (level % 21 * 3)) & 7) {
    case 0: frame_0(path, level); break;
    case 1: frame_1(path, level); break;
    case 2: frame_2(path, level); break;
    case 3: frame_3(path, level); break;
    case 4: frame_4(path, level); break;
    case 5: frame_5(path, level); break;
    case 6: frame_6(path, level); break;
    default: frame_7(path, level); break;
    }
}

static uint64_t now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The path's number, mixed so that its lowest three bits do not alone tell paths apart. */
static uint64_t mix(uint64_t number)
{
    number = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    number = (number ^ (number >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    return number ^ (number >> 32);
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 4) {
        fputs("usage: pairs PAIRS DEPTH [PATHS]\n", stderr);
        return 2;
    }
    uint64_t const pairs = strtoull(argv[1], NULL, 10);
    unsigned const depth = (unsigned)strtoul(argv[2], NULL, 10);
    uint64_t const paths = argc == 4 ? strtoull(argv[3], NULL, 10) : 1;
    if (pairs == 0 || paths == 0 || paths > pairs) {
        fputs("pairs: 1 <= PATHS <= PAIRS\n", stderr);
        return 2;
    }
    /* Rounds over all paths, so that a path comes again after the others have been there. */
    uint64_t const rounds = paths == 1 ? 1 : (pairs / paths < 10 ? 1 : 10);
    uint64_t const each = pairs / (paths * rounds);
    uint64_t const cpu = now(CLOCK_THREAD_CPUTIME_ID);
    uint64_t const wall = now(CLOCK_MONOTONIC);
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint64_t number = 0; number < paths; number++) {
            struct path path = {each, mix(number), depth};
            descend(&path, 0);
        }
    }
    uint64_t const wall_ns = now(CLOCK_MONOTONIC) - wall;
    uint64_t const cpu_ns = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
    printf("{\"pairs\": %" PRIu64 ", \"cpu_ns\": %" PRIu64 ", \"wall_ns\": %" PRIu64 "}\n", each * paths * rounds,
           cpu_ns, wall_ns);
    return 0;
}
