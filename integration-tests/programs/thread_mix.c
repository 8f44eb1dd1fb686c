// argv[1] threads at once (an even number), each argv[2] rounds: one block that is freed at once, one that is grown and freed
// after the next allocation, one that is given to the partner and freed by it (or, when the partner did not take it, by
// the giver a round later). Each keeps 5 blocks. Window "w": all of it. By hand, with N threads and R rounds:
//   work: N * R * 4 allocations (one a realloc), all freed, N * R temporary; keep: N * 5 allocations of 100 bytes, live.
#include <heaptally.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 256 };

static _Atomic(void *) box[MOST];
static void *volatile kept[MOST][5];
static pthread_barrier_t all;
static int rounds;

__attribute__((noinline)) static void work(int number) {
  void *volatile once = malloc(24);
  free(once);
  char *volatile grown = malloc(40);
  memset(grown, number, 40);
  grown = realloc(grown, 4000);
  void *given = malloc(8 + (size_t)(number % 3) * 16);
  free(grown);
  // The partner's box: what lies there still is this thread's own of the round before.
  free(atomic_exchange(&box[number ^ 1], given));
  free(atomic_exchange(&box[number], NULL));
}

__attribute__((noinline)) static void keep(int number) {
  for (int at = 0; at < 5; at++) kept[number][at] = malloc(100);
}

static void *worker(void *argument) {
  int number = (int)(long)argument;
  pthread_barrier_wait(&all);
  for (int round = 0; round < rounds; round++) work(number);
  keep(number);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  int threads = atoi(argv[1]);
  rounds = atoi(argv[2]);
  if (threads > MOST) return 2;
  pthread_t ids[MOST];
  pthread_barrier_init(&all, NULL, (unsigned)threads);
  heaptally_window_begin("w");
  for (int at = 0; at < threads; at++)
    if (pthread_create(&ids[at], NULL, worker, (void *)(long)at)) return 2;
  for (int at = 0; at < threads; at++) pthread_join(ids[at], NULL);
  for (int at = 0; at < threads; at++) free(box[at]);
  heaptally_window_end("w");
  return 0;
}
