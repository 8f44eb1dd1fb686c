// A library with functions that are to be the edges of a window: one entry of 4 allocations.
#include <stdlib.h>

__attribute__((noinline)) static void *use(void *pointer) {
  __asm__ volatile("" ::"r"(pointer) : "memory");
  return pointer;
}
__attribute__((noinline)) static void plugin_begin(long number) { use((void *)number); }
__attribute__((noinline)) static void plugin_end(long number) { use((void *)(number + 1)); }

void plugin_entry(void) {
  plugin_begin(1);
  for (int i = 0; i < 4; i++) free(use(malloc(20)));
  plugin_end(2);
  free(use(malloc(21)));
}
