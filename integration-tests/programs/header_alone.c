/* Counts what the header allocates where there is no recorder, with an allocator of its own that counts every call. */
#include "heaptally.h"

#include <stdio.h>
#include <string.h>

static unsigned long calls;
static char arena[1 << 20] __attribute__((aligned(16)));
static size_t used;

void *malloc(size_t size)
{
    void *block = arena + used;
    calls++;
    used += (size + 15) & ~(size_t)15;
    return block;
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size);
}

void *realloc(void *old, size_t size)
{
    void *block = malloc(size);
    if (old)
        memcpy(block, old, size);
    return block;
}

void free(void *block)
{
    (void)block;
}

int main(void)
{
    unsigned long counts[3];
    const char *error;
    counts[0] = calls;
    heaptally_window_begin("w");
    counts[1] = calls;
    heaptally_window_end("w");
    counts[2] = calls;
    error = dlerror();
    printf("%lu %lu %s\n", counts[1] - counts[0], counts[2] - counts[1], error ? error : "none");
    return 0;
}
