/*
 * Follows the frame pointers to the stack's end and counts in one hash table of whole stacks: what an exact recorder of
 * programs that have frame pointers costs at least if it keeps no memory of the last stack, follows no block, and does
 * one thing after the other. One lock guards the table once there is a second thread.
 *
 * Writes the number of stacks, of allocations and of their bytes to REFERENCE_OUT.
 */
#define _GNU_SOURCE
#include "real.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>

#define MOST_FRAMES 512
#define SLOTS (1u << 19)
#define WORDS (1u << 26)

struct slot {
    uint64_t hash; /* 0: free */
    uint32_t first; /* of its frames in `frames` */
    uint32_t depth;
    uint64_t allocations;
    uint64_t bytes;
};

static struct slot *slots;
static uint64_t *frames;
static uint32_t frames_used, slots_used;
static uint64_t lost;
static char lock;

static __thread uintptr_t stack_end __attribute__((tls_model("initial-exec")));
static __thread char is_inside __attribute__((tls_model("initial-exec")));

static void *reserve(size_t bytes)
{
    void *const place =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return place == MAP_FAILED ? NULL : place;
}

static __attribute__((constructor)) void start(void)
{
    frames = reserve(WORDS * sizeof *frames);
    slots = frames ? reserve(SLOTS * sizeof *slots) : NULL;
}

/* Asks for the end of this thread's stack, which allocates. */
static __attribute__((noinline, cold)) void find_stack_end(void)
{
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t bytes = 0;
    is_inside = 1;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstack(&attributes, &lowest, &bytes);
        pthread_attr_destroy(&attributes);
    }
    stack_end = (uintptr_t)lowest + bytes;
    is_inside = 0;
}

static struct slot *find(uint64_t const *stack, uint32_t depth, uint64_t hash)
{
    for (uint32_t at = (uint32_t)hash % SLOTS;; at = (at + 1) % SLOTS) {
        struct slot *const slot = &slots[at];
        if (slot->hash == hash && slot->depth == depth &&
            memcmp(&frames[slot->first], stack, depth * sizeof *stack) == 0)
            return slot;
        if (slot->hash == 0) {
            if (slots_used >= SLOTS / 2 || WORDS - frames_used < depth)
                return NULL;
            memcpy(&frames[frames_used], stack, depth * sizeof *stack);
            *slot = (struct slot){hash, frames_used, depth, 0, 0};
            frames_used += depth;
            slots_used++;
            return slot;
        }
    }
}

static inline __attribute__((always_inline)) void record(size_t bytes, uintptr_t frame)
{
    if (!slots || is_inside)
        return;
    if (!stack_end)
        find_stack_end();
    uint64_t stack[MOST_FRAMES];
    uint64_t hash = 0;
    uint32_t depth = 0;
    /* A frame holds the caller's frame pointer and the return address; what comes later in time lies lower. */
    while (depth < MOST_FRAMES && frame % sizeof(uint64_t) == 0 && frame < stack_end - 2 * sizeof(uint64_t)) {
        uint64_t const *const words = (uint64_t const *)frame;
        stack[depth++] = words[1];
        hash = ((hash << 5 | hash >> 59) ^ words[1]) * UINT64_C(0x517cc1b727220a95);
        if (words[0] <= frame)
            break;
        frame = words[0];
    }
    hash = (hash ^ hash >> 32) | 1;
    char const is_shared = !__libc_single_threaded;
    if (is_shared)
        while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
            while (__atomic_load_n(&lock, __ATOMIC_RELAXED))
                __builtin_ia32_pause();
    struct slot *const slot = find(stack, depth, hash);
    if (slot) {
        slot->allocations++;
        slot->bytes += bytes;
    } else {
        lost++;
    }
    if (is_shared)
        __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

#define RECORD(bytes) record(bytes, (uintptr_t)__builtin_frame_address(0))

void *malloc(size_t bytes)
{
    RECORD(bytes);
    return real_malloc(bytes);
}

void free(void *block)
{
    real_free(block);
}

void *calloc(size_t number, size_t bytes)
{
    RECORD(number * bytes);
    return real_calloc(number, bytes);
}

void *realloc(void *block, size_t bytes)
{
    RECORD(bytes);
    return real_realloc(block, bytes);
}

static __attribute__((destructor)) void write_counts(void)
{
    is_inside = 1;
    char const *const path = getenv("REFERENCE_OUT");
    FILE *const file = path ? fopen(path, "w") : NULL;
    if (!file || !slots)
        return;
    uint64_t allocations = 0, bytes = 0;
    for (uint32_t at = 0; at < SLOTS; at++) {
        allocations += slots[at].allocations;
        bytes += slots[at].bytes;
    }
    fprintf(file, "%u %llu %llu %llu\n", slots_used, (unsigned long long)allocations, (unsigned long long)bytes,
            (unsigned long long)lost);
    fclose(file);
}
