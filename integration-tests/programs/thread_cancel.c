// argv[1] "deferred" or "async": argv[2] threads, one after the other, that allocate in cancel_work until they are cancelled,
// at a moment that is as good as random. Each has 3 blocks more in before_work, and a handler that allocates once in
// cleanup_work. Prints how many calls of cancel_work came to their end, and how many cleanups. Window "w": all of it.
#include <heaptally.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_async;
// Only the thread that is to be cancelled counts, and main reads when it has ended.
static volatile unsigned long calls, cleanups;
static volatile int is_ready;

#define ALLOCATE(name)                                                                                                 \
  __attribute__((noinline)) static void name(void) {                                                                   \
    void *volatile block = malloc(24);                                                                                 \
    free(block);                                                                                                       \
  }
ALLOCATE(before_work)
ALLOCATE(cleanup_work)

__attribute__((noinline)) static void cancel_work(unsigned long number) {
  void *volatile block = malloc(16 + number % 2000);
  calls++;
  free(block);
}

static void cleanup(void *unused) {
  (void)unused;
  cleanup_work();
  cleanups++;
}

static void *worker(void *argument) {
  pthread_cleanup_push(cleanup, NULL);
  for (int at = 0; at < 3; at++) before_work();
  if (is_async) pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  is_ready = 1;
  for (unsigned long number = 0;; number++) {
    cancel_work(number);
    if (!is_async) pthread_testcancel();
  }
  pthread_cleanup_pop(0);
  return argument;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  is_async = !strcmp(argv[1], "async");
  alarm(100);
  heaptally_window_begin("w");
  for (int at = 0; at < atoi(argv[2]); at++) {
    pthread_t thread;
    is_ready = 0;
    if (pthread_create(&thread, NULL, worker, NULL)) return 3;
    while (!is_ready) usleep(20);
    usleep((unsigned)(at * 37 % 500));
    pthread_cancel(thread);
    void *result;
    pthread_join(thread, &result);
    if (result != PTHREAD_CANCELED) return 4;
  }
  heaptally_window_end("w");
  printf("%lu %lu\n", calls, cleanups);
  return 0;
}
