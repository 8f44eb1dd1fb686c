// A plug-in: 5 mallocs of its own below plug_own, and as many calls of the program's function as it is told.
#include <stdlib.h>

__attribute__((noinline)) void plug_own(void) {
  for (int i = 0; i < 5; i++) {
    void *block = malloc(40);
    __asm__ volatile("" ::"r"(block) : "memory");
    free(block);
  }
}

__attribute__((noinline)) void plug_back(void (*function)(void), int count) {
  for (int i = 0; i < count; i++) {
    function();
    __asm__ volatile("" ::: "memory");
  }
}

#ifdef CONSTRUCTOR
__attribute__((constructor)) static void plug_begin(void) {
  void *volatile block = malloc(48);
  free(block);
}
#endif
