// Loads ./libunload_a.so, calls it, unloads it, and the same with ./libunload_b.so, argv[1] times; with argv[2] threads
// beside it that allocate. Window "w" per round: 10 mallocs in inner_a below outer_a, 7 in inner_b below outer_b; all
// in all 20000 in thread_alloc per thread. Prints how often both libraries lay at the same address.
#include <dlfcn.h>
#include <heaptally.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static void thread_alloc(void) {
  void *block = malloc(48);
  __asm__ volatile("" ::"r"(block) : "memory");
  free(block);
}

static void *busy(void *argument) {
  for (int i = 0; i < 20000; i++) thread_alloc();
  return argument;
}

static void *use_library(const char *path, const char *function, int count) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  void (*outer)(int) = (void (*)(int))dlsym(library, function);
  outer(count);
  void *address = (void *)outer;
  if (dlclose(library)) exit(3);
  return address;
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 1;
  int threads = argc > 2 ? atoi(argv[2]) : 0;
  pthread_t thread[16];
  int same = 0;
  heaptally_window_begin("w");
  for (int i = 0; i < threads; i++) pthread_create(&thread[i], NULL, busy, NULL);
  for (int i = 0; i < rounds; i++) {
    void *a = use_library("./libunload_a.so", "outer_a", 10);
    void *b = use_library("./libunload_b.so", "outer_b", 7);
    same += a == b;
  }
  for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
  heaptally_window_end("w");
  printf("%d\n", same);
  return 0;
}
