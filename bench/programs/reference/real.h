/*
 * glibc's own functions under the names that it has for them since 2.0: no search by dlsym(), and one jump through the
 * library's table each, so that the reference lines are as cheap as can be.
 */
#include <stddef.h>

void *real_malloc(size_t bytes) __asm__("__libc_malloc");
void real_free(void *block) __asm__("__libc_free");
void *real_calloc(size_t count, size_t bytes) __asm__("__libc_calloc");
void *real_realloc(void *block, size_t bytes) __asm__("__libc_realloc");
