// A window opened through the header, in whatever way the program is linked: window "start", 4 mallocs in work.
// Exit code: 3, or 4 where the output is not what it should be.
#include <heaptally.h>
#include <stdio.h>
#include <stdlib.h>

static void *volatile sink;

__attribute__((noinline)) static void work(void) {
  for (int i = 0; i < 4; i++) {
    void *block = malloc(10 + (size_t)i);
    sink = block;
    free(block);
  }
}

int main(void) {
  heaptally_window_begin("start");
  work();
  heaptally_window_end("start");
  return puts("started") < 0 ? 4 : 3;
}
