// As many distinct stacks as asked for (argv[1] levels: 2 to the power of that), one malloc of each, over 16 bytes of
// frame data per level, so that tables must grow. Prints the number of blocks that it got, and checks their content:
// exit code 0 when all is well. With argv[2] it goes through all stacks that many times. With argv[3] it first limits
// itself: "fsize" to files of 4096 bytes, "as" to 8 MiB more address space than it has, "lock": it locks its memory,
// now and later. "lock" prints by how many KiB its resident memory then exceeds 64 MiB, 0 where it does not.
#include <heaptally.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void *volatile sink;
static unsigned long got;

__attribute__((noinline)) static void leaf(unsigned path) {
  unsigned char *block = malloc(24);
  if (!block) return;
  memset(block, (int)(path & 0xff), 24);
  sink = block;
  if (((unsigned char *)sink)[23] == (path & 0xff)) got++;
  free(block);
}

__attribute__((noinline)) static void descend(int level, unsigned path) {
  if (level == 0) {
    leaf(path);
    return;
  }
  // Two call sites: the path is the stack.
  if (path >> (level - 1) & 1) {
    descend(level - 1, path);
    __asm__ volatile("nop" ::: "memory");
  } else {
    descend(level - 1, path);
    __asm__ volatile("nop; nop" ::: "memory");
  }
}

// A line of /proc/self/status, in KiB.
static unsigned long status_kib(const char *name) {
  char line[256];
  unsigned long value = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (!strncmp(line, name, strlen(name))) value = strtoul(line + strlen(name), NULL, 10);
  if (file) fclose(file);
  return value;
}

static int limit(const char *what) {
  struct rlimit files = {4096, 4096};
  unsigned long space = (status_kib("VmSize:") + 8192) * 1024;
  struct rlimit addresses = {space, space};
  if (!strcmp(what, "fsize")) return setrlimit(RLIMIT_FSIZE, &files);
  if (!strcmp(what, "as")) return setrlimit(RLIMIT_AS, &addresses);
  return mlockall(MCL_CURRENT | MCL_FUTURE);
}

int main(int argc, char **argv) {
  int levels = argc > 1 ? atoi(argv[1]) : 10;
  int rounds = argc > 2 ? atoi(argv[2]) : 1;
  if (argc > 3 && limit(argv[3])) return 3;
  heaptally_window_begin("w");
  for (int round = 0; round < rounds; round++)
    for (unsigned path = 0; path < 1u << levels; path++) descend(levels, path);
  heaptally_window_end("w");
  printf("%lu\n", got);
  if (argc > 3 && !strcmp(argv[3], "lock")) {
    unsigned long resident = status_kib("VmRSS:");
    printf("%lu\n", resident > 65536 ? resident - 65536 : 0);
  }
  return got == (unsigned long)rounds << levels ? 0 : 1;
}
