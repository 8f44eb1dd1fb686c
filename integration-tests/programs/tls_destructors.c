// Destructors of pthread keys that allocate. argv[1] says which, argv[2] threads one after the other, window "w":
//   rounds: work_malloc once, then key_malloc in each of the C library's 4 rounds, each block freed there
//   only:   key_malloc once, which is the thread's first event
//   last:   key_malloc once, in the fourth round, which is the thread's first event
//   keys:   40 keys, so that the C library has a table of its own for the thread; work_malloc once
//   exit:   work_malloc once, then the thread ends by a system call of its own: no destructor runs
//   paused: work_malloc once, then the thread pauses; key_malloc in each round is not recorded
#define _GNU_SOURCE
#include <heaptally.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *way;
static pthread_key_t key, more[40];
static _Thread_local int runs;

__attribute__((noinline)) static void key_malloc(void) {
  void *volatile block = malloc(32);
  free(block);
}

__attribute__((noinline)) static void work_malloc(void) {
  void *volatile block = malloc(48);
  free(block);
}

static void destroy(void *value) {
  runs++;
  if (strcmp(way, "last") || runs == 4) key_malloc();
  if (runs < 4 && strcmp(way, "only")) pthread_setspecific(key, value);
}

static void nothing(void *value) {
  (void)value;
}

static pid_t exited;

static void *worker(void *argument) {
  if (!strcmp(way, "keys")) {
    for (int at = 0; at < 40; at++) pthread_setspecific(more[at], argument);
    work_malloc();
    return NULL;
  }
  pthread_setspecific(key, argument);
  if (strcmp(way, "only") && strcmp(way, "last")) work_malloc();
  if (!strcmp(way, "paused")) heaptally_pause();
  if (!strcmp(way, "exit")) {
    exited = gettid();
    syscall(SYS_exit, 0);
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  way = argv[1];
  pthread_key_create(&key, destroy);
  for (int at = 0; at < 40; at++) pthread_key_create(&more[at], nothing);
  static char stack[256 * 1024] __attribute__((aligned(4096)));
  heaptally_window_begin("w");
  for (int at = 0; at < atoi(argv[2]); at++) {
    pthread_t thread;
    if (!strcmp(way, "exit")) {
      // On the same stack each time: the C library does not take the thread for ended.
      pthread_attr_t attributes;
      pthread_attr_init(&attributes);
      pthread_attr_setstack(&attributes, stack, sizeof stack);
      exited = 0;
      if (pthread_create(&thread, &attributes, worker, &key)) return 3;
      // The kernel clears the thread's id at its end, which is what this waits for.
      pthread_join(thread, NULL);
    } else {
      if (pthread_create(&thread, NULL, worker, &key)) return 3;
      pthread_join(thread, NULL);
    }
  }
  heaptally_window_end("w");
  return 0;
}
