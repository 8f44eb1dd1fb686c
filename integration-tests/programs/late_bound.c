// Windows by weak functions, as programs without the header do: "w" has 5 mallocs of work, called through late bound places.
// A library's function whose indirect resolver allocates is bound in "resolve".
#include <stdio.h>
#include <stdlib.h>

extern __attribute__((weak)) void heaptally_window_begin(const char *);
extern __attribute__((weak)) void heaptally_window_end(const char *);
#ifdef INDIRECT
extern int indirect(void);
#endif

__attribute__((noinline)) static void work(void) {
  for (int i = 0; i < 5; i++) {
    void *volatile block = malloc(24);
    free(block);
  }
}

int main(void) {
  if (heaptally_window_begin) heaptally_window_begin("w");
  work();
  if (heaptally_window_end) heaptally_window_end("w");
#ifdef INDIRECT
  if (heaptally_window_begin) heaptally_window_begin("resolve");
  int result = indirect();
  if (heaptally_window_end) heaptally_window_end("resolve");
  printf("%d\n", result);
#endif
  return 0;
}
