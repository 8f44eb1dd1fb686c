// argv[1] batches of argv[2] threads, each batch joined before the next one. Threads of odd numbers are called "odd" and
// begin in odd_start, the others "even" and even_start. Each allocates 3 blocks, frees 2; main frees the third when the
// thread is gone. With argv[3]: "free", a thread's first event is the free of a block that main allocated in main_gives.
// Window "w": all of it. Window "mine" of each thread: 1 block, and every seventh thread (by its number) ends with it open.
#define _GNU_SOURCE
#include <heaptally.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 512 };

struct job {
  void *given, *left;
  int number;
};

static void *volatile sink;

__attribute__((noinline)) static void allocate(struct job *job) {
  free(job->given);
  void *volatile first = malloc(10);
  void *volatile second = malloc(20);
  job->left = malloc(30);
  free(first);
  free(second);
}

__attribute__((noinline)) static void mine(struct job *job) {
  heaptally_thread_window_begin("mine");
  void *volatile block = malloc(7);
  free(block);
  if (job->number % 7) heaptally_thread_window_end("mine");
}

static void *odd_start(void *argument) {
  pthread_setname_np(pthread_self(), "odd");
  allocate(argument);
  mine(argument);
  return argument;
}

static void *even_start(void *argument) {
  pthread_setname_np(pthread_self(), "even");
  allocate(argument);
  mine(argument);
  return argument;
}

__attribute__((noinline)) static void *main_gives(void) {
  return malloc(50);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  int batches = atoi(argv[1]), each = atoi(argv[2]);
  int gives = argc > 3 && !strcmp(argv[3], "free");
  if (each > MOST) return 2;
  static struct job jobs[MOST];
  static pthread_t ids[MOST];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * 1024);
  heaptally_window_begin("w");
  for (int batch = 0; batch < batches; batch++) {
    for (int at = 0; at < each; at++) {
      jobs[at] = (struct job){.given = gives ? main_gives() : NULL, .number = batch * each + at};
      if (pthread_create(&ids[at], &attributes, jobs[at].number % 2 ? odd_start : even_start, &jobs[at])) return 3;
    }
    for (int at = 0; at < each; at++) {
      pthread_join(ids[at], NULL);
      free(jobs[at].left);
    }
  }
  heaptally_window_end("w");
  return 0;
}
