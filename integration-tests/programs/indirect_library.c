// A function that is an indirect one (IFUNC): its resolver, which the loader calls when it is bound, makes 3 mallocs.
#include <stdlib.h>

static int answer(void) { return 42; }

__attribute__((noinline)) static void *resolve_work(void) {
  for (int i = 0; i < 3; i++) {
    void *volatile block = malloc(72);
    free(block);
  }
  return (void *)answer;
}

static int (*resolve(void))(void) { return (int (*)(void))resolve_work(); }

int indirect(void) __attribute__((ifunc("resolve")));
