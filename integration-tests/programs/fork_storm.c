// fork_storm FORKS THREADS: a program whose threads allocate in `thread_work` without a pause while it forks one child after
// the other; each child allocates 7 blocks in `child_work` and ends with 3. Prints how many children did otherwise, and how
// many blocks the threads allocated.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 8 };

static atomic_int is_over;
static atomic_long allocated;

__attribute__((noinline)) static void thread_work(void) {
  void *volatile blocks[BLOCKS];
  for (int at = 0; at < BLOCKS; at++) blocks[at] = malloc(32 + at);
  for (int at = 0; at < BLOCKS; at++) free(blocks[at]);
}

__attribute__((noinline)) static void deep_work(unsigned depth) {
  if (depth > 0) deep_work(depth - 1);
  void *volatile block = malloc(1 + depth);
  free(block);
}

static void *loop(void *unused) {
  (void)unused;
  long count = 0;
  for (unsigned depth = 0; !is_over; depth = (depth + 7) % 31) {
    thread_work();
    deep_work(depth);
    count += BLOCKS;
  }
  atomic_fetch_add(&allocated, count);
  return NULL;
}

__attribute__((noinline)) static void child_work(void) {
  for (int at = 0; at < 7; at++) {
    void *volatile block = malloc(9);
    free(block);
  }
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  int forks = atoi(argv[1]), threads = atoi(argv[2]), bad = 0;
  pthread_t ids[64];
  for (int at = 0; at < threads; at++) pthread_create(&ids[at], NULL, loop, NULL);
  for (int at = 0; at < forks; at++) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      child_work();
      _exit(3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 3) bad++;
  }
  is_over = 1;
  for (int at = 0; at < threads; at++) pthread_join(ids[at], NULL);
  printf("%d %ld\n", bad, allocated);
  return 0;
}
