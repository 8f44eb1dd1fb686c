// Each allocation function of the C library in a window of its name, 10 times, and every block freed. "realloc" and
// "reallocarray" make 10 more that these then move. "overflow": a product that does not fit, which gives no memory.
#define _GNU_SOURCE
#include <errno.h>
#include <heaptally.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { TIMES = 10 };

int main(void) {
  void *blocks[TIMES];
#define EACH(name, block)                                               \
  heaptally_window_begin(name);                                           \
  for (int i = 0; i < TIMES; i++)                                           \
    blocks[i] = (block);                                              \
  for (int i = 0; i < TIMES; i++)                                           \
    free(blocks[i]);                                                \
  heaptally_window_end(name)

  void *aligned = NULL;
  EACH("malloc", malloc(24));
  EACH("calloc", calloc(3, 8));
  EACH("realloc", realloc(malloc(8), 24));
  EACH("reallocarray", reallocarray(reallocarray(NULL, 1, 8), 3, 8));
  EACH("posix_memalign", (posix_memalign(&aligned, 64, 24), aligned));
  EACH("aligned_alloc", aligned_alloc(64, 64));
  EACH("memalign", memalign(64, 24));
  EACH("valloc", valloc(24));
  EACH("pvalloc", pvalloc(24));

  heaptally_window_begin("overflow");
  errno = 0;
  void *none = reallocarray(NULL, SIZE_MAX / 2, 3);
  int why = errno;
  heaptally_window_end("overflow");
  printf("%d %d\n", none == NULL, why == ENOMEM);
  return 0;
}
