// What grows in a long run. By argv[1]:
//   live N:   N blocks of 16 to 79 bytes that all live when window "w" ends; freed behind it. In live_work.
//   big:      in big_work 9 blocks of 1 GiB live at once, then 9 reallocs of a block to 1 GiB and more; told 5,000,000,000
//             iterations twice. Nothing of it is touched.
//   entries N: window "w" is entered N times, 2 mallocs in entry_work each; one block of the first entry is freed in the last.
#include <heaptally.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *volatile sink;

__attribute__((noinline)) static void live_work(void **blocks, long count) {
  for (long at = 0; at < count; at++) blocks[at] = malloc(16 + (size_t)(at % 64));
}

static int live(long count) {
  void **blocks = malloc((size_t)count * sizeof *blocks);
  heaptally_window_begin("w");
  live_work(blocks, count);
  heaptally_window_end("w");
  for (long at = 0; at < count; at++) free(blocks[at]);
  free(blocks);
  return 0;
}

__attribute__((noinline)) static int big_work(void) {
  const size_t gib = (size_t)1 << 30;
  void *blocks[9];
  for (int at = 0; at < 9; at++)
    if (!(blocks[at] = malloc(gib))) return 6;
  for (int at = 0; at < 9; at++) free(blocks[at]);
  void *grown = malloc(100);
  for (size_t at = 0; at < 9; at++) {
    sink = realloc(grown, gib + at * 4096);
    if (!sink) return 6;
    grown = sink;
  }
  free(grown);
  return 0;
}

static int big(void) {
  heaptally_window_begin("w");
  int code = big_work();
  heaptally_window_iterations("w", 5000000000ul);
  heaptally_window_iterations("w", 5000000000ul);
  heaptally_window_end("w");
  return code;
}

__attribute__((noinline)) static void *entry_work(void) {
  sink = malloc(8);
  free(sink);
  return malloc(24);
}

static int entries(long count) {
  void *first = NULL;
  for (long at = 0; at < count; at++) {
    heaptally_window_begin("w");
    void *block = entry_work();
    if (at == 0) first = block;
    else free(block);
    if (at + 1 == count) free(first);
    heaptally_window_end("w");
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  long count = argc > 2 ? atol(argv[2]) : 1;
  if (!strcmp(argv[1], "live")) return live(count);
  if (!strcmp(argv[1], "big")) return big();
  return entries(count);
}
