// Recursion argv[1] deep, 5 times, on a thread with a big enough stack. Window "w": 5 mallocs in bottom, below that many
// frames of dive, below start_dive.
#include <heaptally.h>
#include <pthread.h>
#include <stdlib.h>

static void *volatile sink;

__attribute__((noinline)) static void bottom(void) {
  void *block = malloc(44);
  sink = block;
  free(block);
}

__attribute__((noinline)) static void dive(int depth) {
  if (depth <= 1) bottom();
  else dive(depth - 1);
  __asm__ volatile("" ::: "memory");
}

static void *start_dive(void *argument) {
  for (int i = 0; i < 5; i++) dive(*(int *)argument);
  return NULL;
}

int main(int argc, char **argv) {
  int depth = argc > 1 ? atoi(argv[1]) : 1;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256ul << 20);
  pthread_t thread;
  heaptally_window_begin("w");
  if (pthread_create(&thread, &attributes, start_dive, &depth)) return 2;
  pthread_join(thread, NULL);
  heaptally_window_end("w");
  return 0;
}
