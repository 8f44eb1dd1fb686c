// argv[1] threads at once, each 1000 mallocs in odd_job or even_job by its number, its blocks freed by the next thread's
// number of the same parity after a barrier. Window "w": all of them, and what pthread_create itself allocates.
#include <heaptally.h>
#include <pthread.h>
#include <stdlib.h>

enum { EACH = 1000, MOST = 256 };

static pthread_barrier_t full;
static void *blocks[MOST][EACH];
static int threads;

__attribute__((noinline)) static void odd_job(int number) {
  for (int i = 0; i < EACH; i++) blocks[number][i] = malloc(16 + (size_t)(i % 50));
}

__attribute__((noinline)) static void even_job(int number) {
  for (int i = 0; i < EACH; i++) blocks[number][i] = malloc(32 + (size_t)(i % 50));
}

static void *worker(void *argument) {
  int number = (int)(long)argument;
  if (number % 2) odd_job(number);
  else even_job(number);
  pthread_barrier_wait(&full);
  int other = (number + 2) % threads;
  for (int i = 0; i < EACH; i++) free(blocks[other][i]);
  return NULL;
}

int main(int argc, char **argv) {
  threads = argc > 1 ? atoi(argv[1]) : 2;
  if (threads > MOST) return 2;
  pthread_t thread[MOST];
  pthread_barrier_init(&full, NULL, (unsigned)threads);
  heaptally_window_begin("w");
  for (int i = 0; i < threads; i++)
    if (pthread_create(&thread[i], NULL, worker, (void *)(long)i)) return 2;
  for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
  heaptally_window_end("w");
  return 0;
}
