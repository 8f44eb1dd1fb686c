/* The least that a preloaded library can do: it passes every call on. */
#include "real.h"

void *malloc(size_t bytes)
{
    return real_malloc(bytes);
}

void free(void *block)
{
    real_free(block);
}

void *calloc(size_t count, size_t bytes)
{
    return real_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    return real_realloc(block, bytes);
}
