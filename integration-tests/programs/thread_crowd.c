// argv[1] threads that are all alive at once, each 4 mallocs in crowd_work, 3 of them freed, between two barriers; the rest
// is freed by main. Window "w": all of it.
#include <errno.h>
#include <heaptally.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_barrier_t all;
static void **left;

__attribute__((noinline)) static void crowd_work(long number) {
  for (int at = 0; at < 3; at++) {
    void *volatile block = malloc(16);
    free(block);
  }
  left[number] = malloc(64);
}

static void *worker(void *argument) {
  pthread_barrier_wait(&all);
  crowd_work((long)argument);
  pthread_barrier_wait(&all);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  long threads = atol(argv[1]);
  left = calloc((size_t)threads, sizeof *left);
  pthread_t *ids = calloc((size_t)threads, sizeof *ids);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  pthread_attr_setguardsize(&attributes, 0);
  pthread_barrier_init(&all, NULL, (unsigned)threads + 1);
  heaptally_window_begin("w");
  for (long at = 0; at < threads; at++) {
    int error = pthread_create(&ids[at], &attributes, worker, (void *)at);
    if (error) {
      printf("%ld threads: %s\n", at, strerror(error));
      exit(77);
    }
  }
  pthread_barrier_wait(&all);
  pthread_barrier_wait(&all);
  for (long at = 0; at < threads; at++) {
    pthread_join(ids[at], NULL);
    free(left[at]);
  }
  heaptally_window_end("w");
  return 0;
}
