// Two functions of one name, each of a file of its own; nothing here knows of the recorder. Built with OTHER it is the second
// file. The argument says how many rounds: one call of the first, with 2 allocations, and one of the second, with 3.
#include <stdlib.h>

#define APART __attribute__((noinline, noclone))

APART static void allocate(int count) {
  for (int i = 0; i < count; i++) {
    void *block = malloc(12);
    __asm__ volatile("" ::"r"(block) : "memory");
    free(block);
  }
}

void second(void);
#ifdef OTHER
#line 200
APART static void prepare(void) {
  allocate(3);
  __asm__ volatile("");
}
void second(void) { prepare(); }
#else
#line 100
APART static void prepare(void) {
  allocate(2);
  __asm__ volatile("");
}

int main(int argc, char **argv) {
  for (long i = argc > 1 ? atol(argv[1]) : 1; i > 0; i--) {
    prepare();
    second();
  }
  return 4;
}
#endif
