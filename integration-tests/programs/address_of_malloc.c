// Takes the address of malloc and free in its code. In an executable at a fixed address this makes the
// linker put an entry of its own there, which looks as if the executable defined malloc. Window "start": 4 mallocs in
// work. Exit code 3.
#include <heaptally.h>
#include <stdio.h>
#include <stdlib.h>

static void *(*volatile take)(size_t);
static void (*volatile give)(void *);

__attribute__((noinline)) static void work(void) {
  for (int i = 0; i < 4; i++) {
    void *block = take(10 + (size_t)i);
    give(block);
  }
}

int main(void) {
  // In code, not in an initialiser, which the loader could fill in.
  take = malloc;
  give = free;
  heaptally_window_begin("start");
  work();
  heaptally_window_end("start");
  return puts("started") < 0 ? 4 : 3;
}
