// What grows in a long run. By argv[1]:
//   live N:   N blocks of 16 to 79 bytes that all live when window "w" ends; freed behind it. In live_work.
//   ready N:  the same, with all memory for the blocks kept ready by malloc, and hardly any more to be had.
//   big:      in big_work 9 blocks of 1 GiB live at once, then 9 reallocs of a block to 1 GiB and more; told 5,000,000,000
//             iterations twice. Nothing of it is touched.
//   entries N: window "w" is entered N times, 2 mallocs in entry_work each; one block of the first entry is freed in the last.
#include <heaptally.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

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

// The blocks come from freed memory that malloc has kept; 1 MiB more may be mapped in the whole process.
static int ready(long count) {
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TOP_PAD, (int)count * 112);
  free(malloc(1 << 20));
  FILE *statm = fopen("/proc/self/statm", "r");
  unsigned long pages = 0;
  if (!statm || fscanf(statm, "%lu", &pages) != 1) return 6;
  fclose(statm);
  rlim_t bytes = (rlim_t)pages * 4096 + (1 << 20);
  if (setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes})) return 6;
  return live(count);
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
  if (!strcmp(argv[1], "ready")) return ready(count);
  if (!strcmp(argv[1], "big")) return big();
  return entries(count);
}
