// A benchmark whose fixture (4 blocks) is made before the window "w", and dropped inside it (argv[1] is "inside") or
// behind it. Window "w": 10 mallocs in iteration, freed at once; 2 in keep, freed behind the window.
#include <heaptally.h>
#include <stdlib.h>
#include <string.h>

static void *fixture[4];
static void *kept[2];

__attribute__((noinline)) static void iteration(void) {
  void *block = malloc(100);
  __asm__ volatile("" ::"r"(block) : "memory");
  free(block);
}

__attribute__((noinline)) static void keep(int at) { kept[at] = malloc(7); }

__attribute__((noinline)) static void drop_fixture(void) {
  for (int i = 0; i < 4; i++) free(fixture[i]);
}

int main(int argc, char **argv) {
  int inside = argc > 1 && !strcmp(argv[1], "inside");
  for (int i = 0; i < 4; i++) fixture[i] = malloc(1000);
  heaptally_window_begin("w");
  for (int i = 0; i < 10; i++) iteration();
  for (int i = 0; i < 2; i++) keep(i);
  if (inside) drop_fixture();
  heaptally_window_end("w");
  if (!inside) drop_fixture();
  for (int i = 0; i < 2; i++) free(kept[i]);
  return 0;
}
