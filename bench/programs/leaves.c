/*
 * Pairs of malloc and free on stacks that differ in their last three frames.
 *
 *     leaves PAIRS DEPTH STACKS THREADS [whole|before|after|windows]
 *
 * Each pair is below DEPTH functions of this program (5 at least): a chain of frames of different sizes, the loop, and
 * three functions, each one of 47, that a random number below STACKS (at most 103,823) chooses anew for each pair.
 * Every one of THREADS threads makes PAIRS pairs.
 *
 * whole    no window is opened
 * before   the window `measured` is opened after the pairs, for one allocation
 * after    it is opened before the pairs, for 10,000 blocks that live on, and closed
 * windows  it is opened and closed PAIRS times instead, after one pair on each of STACKS stacks inside of it
 *
 * Prints one line of JSON: the pairs of a thread; the nanoseconds that they took by the wall's clock, and by the thread's,
 * on average; the different stacks that there were; the process's peak memory.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../crates/preload/include/heaptally.h"

#define NOINLINE __attribute__((noinline, noclone))
/* After a call, so that it does not become a jump. */
#define STAY __asm__ volatile("" ::: "memory")

#define WIDTH 47
#define MOST_STACKS (WIDTH * WIDTH * WIDTH)
#define MOST_THREADS 16
#define LIVE_BLOCKS 10000

#define EACH(X)                                                                                                  \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18)      \
    X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31) X(32) X(33) X(34) X(35) X(36)  \
    X(37) X(38) X(39) X(40) X(41) X(42) X(43) X(44) X(45) X(46)

/* Where a pair is made, and how large it is. */
struct place {
    unsigned middle;
    unsigned inner;
    size_t bytes;
};

typedef void level(struct place const *);

#define INNER(i)                                                                                                 \
    static NOINLINE void inner_##i(struct place const *place)                                                    \
    {                                                                                                            \
        void *block = malloc(place->bytes);                                                                      \
        __asm__ volatile("" : "+r"(block) : : "memory");                                                         \
        free(block);                                                                                             \
        STAY;                                                                                                    \
    }
#define NAME_INNER(i) inner_##i,
EACH(INNER)
static level *const inner[WIDTH] = {EACH(NAME_INNER)};

/* A frame of a size of its own that calls `next`. */
#define FRAME(name, i, next)                                                                                     \
    static NOINLINE void name##_##i(struct place const *place)                                                   \
    {                                                                                                            \
        volatile uint64_t local[1 + (i) % 9];                                                                    \
        local[0] = (i);                                                                                          \
        next(place);                                                                                             \
        (void)local[0];                                                                                          \
    }

#define MIDDLE(i) FRAME(middle, i, inner[place->inner])
#define NAME_MIDDLE(i) middle_##i,
EACH(MIDDLE)
static level *const middle[WIDTH] = {EACH(NAME_MIDDLE)};

#define OUTER(i) FRAME(outer, i, middle[place->middle])
#define NAME_OUTER(i) outer_##i,
EACH(OUTER)
static level *const outer[WIDTH] = {EACH(NAME_OUTER)};

/* A thread's work. */
struct work {
    uint64_t seed;
    uint64_t pairs;
    unsigned stacks;
    unsigned depth;
    unsigned windows;
    uint64_t wall_ns;
    uint64_t cpu_ns;
};

static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

/* A number below `stacks`. */
static unsigned choose(uint64_t random, unsigned stacks)
{
    return (unsigned)(((random >> 32) * stacks) >> 32);
}

static inline __attribute__((always_inline)) void pair(unsigned number, size_t bytes)
{
    struct place const place = {number / WIDTH % WIDTH, number % WIDTH, bytes};
    outer[number / WIDTH / WIDTH](&place);
}

static uint64_t now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static NOINLINE void loop(struct work *work)
{
    uint64_t state = work->seed;
    uint64_t const cpu = now(CLOCK_THREAD_CPUTIME_ID);
    uint64_t const wall = now(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < work->pairs; i++) {
        uint64_t const random = next_random(&state);
        pair(choose(random, work->stacks), 16 + (random & 0x1f0));
    }
    work->wall_ns = now(CLOCK_MONOTONIC) - wall;
    work->cpu_ns = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
    STAY;
}

static NOINLINE void loop_windows(struct work *work)
{
    heaptally_window_begin("measured");
    for (unsigned number = 0; number < work->stacks; number++)
        pair(number, 16);
    heaptally_window_end("measured");
    uint64_t const cpu = now(CLOCK_THREAD_CPUTIME_ID);
    uint64_t const wall = now(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < work->pairs; i++) {
        heaptally_window_begin("measured");
        heaptally_window_end("measured");
    }
    work->wall_ns = now(CLOCK_MONOTONIC) - wall;
    work->cpu_ns = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
    STAY;
}

static void descend(struct work *work, unsigned depth);

/* One of the frames between the start and the loop. */
#define CHAIN(name, words)                                                                                       \
    static NOINLINE void name(struct work *work, unsigned depth)                                                 \
    {                                                                                                            \
        volatile uint64_t local[words];                                                                          \
        local[0] = depth;                                                                                        \
        descend(work, depth + 1);                                                                                \
        (void)local[0];                                                                                          \
    }

CHAIN(chain_0, 1)
CHAIN(chain_1, 2)
CHAIN(chain_2, 4)
CHAIN(chain_3, 7)
CHAIN(chain_4, 12)
CHAIN(chain_5, 18)
CHAIN(chain_6, 27)
CHAIN(chain_7, 40)

/* Inlined into every frame of the chain: one level is one frame. The loop and what it calls are four more. */
static inline __attribute__((always_inline)) void descend(struct work *work, unsigned depth)
{
    if (depth + 4 >= work->depth) {
        if (work->windows)
            loop_windows(work);
        else
            loop(work);
        return;
    }
    switch (depth * 5 % 8) {
    case 0: chain_0(work, depth); break;
    case 1: chain_1(work, depth); break;
    case 2: chain_2(work, depth); break;
    case 3: chain_3(work, depth); break;
    case 4: chain_4(work, depth); break;
    case 5: chain_5(work, depth); break;
    case 6: chain_6(work, depth); break;
    default: chain_7(work, depth); break;
    }
}

static void *begin(void *argument)
{
    descend(argument, 0);
    STAY;
    return NULL;
}

/* What the loops chose, by choosing once more. */
static uint64_t count_stacks(struct work const *works, unsigned threads)
{
    static unsigned char is_seen[MOST_STACKS];
    uint64_t count = 0;
    for (unsigned thread = 0; thread < threads; thread++) {
        uint64_t state = works[thread].seed;
        for (uint64_t i = 0; i < works[thread].pairs; i++) {
            unsigned const number = choose(next_random(&state), works[thread].stacks);
            count += !is_seen[number];
            is_seen[number] = 1;
        }
    }
    return count;
}

/* Of this program only, whatever the process was before it: getrusage() would count that. */
static uint64_t peak_rss_bytes(void)
{
    char text[4096];
    int const file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t const length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = 0;
    char const *const line = strstr(text, "VmHWM:");
    return line ? strtoull(line + 6, NULL, 10) * 1024 : 0;
}

int main(int argc, char **argv)
{
    static struct work works[MOST_THREADS];
    static void *live[LIVE_BLOCKS];
    if (argc < 5 || argc > 6) {
        fputs("usage: leaves PAIRS DEPTH STACKS THREADS [whole|before|after|windows]\n", stderr);
        return 2;
    }
    uint64_t const pairs = strtoull(argv[1], NULL, 10);
    unsigned const depth = (unsigned)strtoul(argv[2], NULL, 10);
    unsigned const stacks = (unsigned)strtoul(argv[3], NULL, 10);
    unsigned const threads = (unsigned)strtoul(argv[4], NULL, 10);
    char const *const when = argc == 6 ? argv[5] : "whole";
    if (pairs == 0 || depth < 5 || stacks == 0 || stacks > MOST_STACKS || threads == 0 || threads > MOST_THREADS) {
        fputs("leaves: DEPTH of at least 5, STACKS of at most 103823, THREADS of at most 16\n", stderr);
        return 2;
    }
    for (unsigned thread = 0; thread < threads; thread++) {
        struct work const work = {UINT64_C(0x9e3779b97f4a7c15) * (thread + 1), pairs, stacks, depth,
                                  strcmp(when, "windows") == 0, 0, 0};
        works[thread] = work;
    }
    if (strcmp(when, "after") == 0) {
        heaptally_window_begin("measured");
        for (unsigned i = 0; i < LIVE_BLOCKS; i++)
            live[i] = malloc(48);
        heaptally_window_end("measured");
    }
    /* One thread is the process's first, so that a process of one thread is measured as such. */
    if (threads == 1) {
        begin(&works[0]);
    } else {
        pthread_t started[MOST_THREADS];
        for (unsigned thread = 0; thread < threads; thread++)
            if (pthread_create(&started[thread], NULL, begin, &works[thread]))
                return 1;
        for (unsigned thread = 0; thread < threads; thread++)
            pthread_join(started[thread], NULL);
    }
    if (strcmp(when, "before") == 0) {
        heaptally_window_begin("measured");
        live[0] = malloc(48);
        heaptally_window_end("measured");
    }
    uint64_t wall_ns = 0, cpu_ns = 0;
    for (unsigned thread = 0; thread < threads; thread++) {
        wall_ns += works[thread].wall_ns / threads;
        cpu_ns += works[thread].cpu_ns / threads;
    }
    printf("{\"pairs\": %" PRIu64 ", \"wall_ns\": %" PRIu64 ", \"cpu_ns\": %" PRIu64 ", \"stacks\": %" PRIu64
           ", \"peak_rss_bytes\": %" PRIu64 "}\n",
           pairs, wall_ns, cpu_ns, count_stacks(works, threads), peak_rss_bytes());
    for (unsigned i = 0; i < LIVE_BLOCKS; i++)
        free(live[i]);
    return 0;
}
