// A busy threaded program that makes children in the way argv[1] names (fork, _Fork, clone, vfork, posix_spawn, exec),
// 20 times, while 3 threads allocate. Window "w": 3 x 30000 mallocs in worker_alloc, 20 x 5 in parent_alloc, and none in
// child_alloc, which only children call (5 each). The children may not deadlock: an alarm ends them.
// Exit code 0, or 3 when a child failed.
#include <heaptally.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, EACH = 30000, CHILDREN = 20 };

extern char **environ;
static void *volatile sink;

#define ALLOCATE(name)                                                                                                 \
  __attribute__((noinline)) static void name(void) {                                                                   \
    void *block = malloc(64);                                                                                          \
    sink = block;                                                                                                      \
    free(block);                                                                                                       \
  }
ALLOCATE(parent_alloc)
ALLOCATE(child_alloc)

__attribute__((noinline)) static void worker_alloc(void) {
  void *block = malloc(70);
  __asm__ volatile("" ::"r"(block) : "memory");
  free(block);
}

static void *worker(void *argument) {
  for (int i = 0; i < EACH; i++) worker_alloc();
  return argument;
}

// What a child does. After _Fork and raw clone malloc's locks may be held for ever by a thread that is not there:
// the block comes from the thread's own cache, which parent_alloc filled, and needs none.
static void child(void) {
  alarm(20);
  for (int i = 0; i < 5; i++) child_alloc();
  _exit(0);
}

// `_Fork` by its symbol: glibc has it from 2.34 on.
extern pid_t _Fork(void) __attribute__((weak));

static pid_t make(const char *way, char *self) {
  pid_t pid = -1;
  if (!strcmp(way, "fork")) {
    pid = fork();
    if (pid == 0) child();
  } else if (!strcmp(way, "_Fork")) {
    pid = _Fork ? _Fork() : fork();
    if (pid == 0) child();
  } else if (!strcmp(way, "clone")) {
    pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) child();
  } else if (!strcmp(way, "vfork")) {
    pid = vfork();
    if (pid == 0) {
      execl("/bin/true", "true", (char *)0);
      _exit(9);
    }
  } else if (!strcmp(way, "posix_spawn")) {
    char *arguments[] = {self, "as-child", NULL};
    if (posix_spawn(&pid, self, NULL, NULL, arguments, environ)) return -1;
  } else if (!strcmp(way, "exec")) {
    pid = fork();
    if (pid == 0) {
      execl(self, self, "as-child", (char *)0);
      _exit(9);
    }
  }
  return pid;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  if (!strcmp(argv[1], "as-child")) {
    heaptally_window_begin("w");
    child();
  }
  pthread_t threads[THREADS];
  heaptally_window_begin("w");
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, worker, NULL);
  for (int i = 0; i < CHILDREN; i++) {
    for (int j = 0; j < 5; j++) parent_alloc();
    pid_t pid = make(argv[1], argv[0]);
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
      fprintf(stderr, "child %d: status %#x\n", i, pid < 0 ? -1 : status);
      return 3;
    }
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  heaptally_window_end("w");
  return 0;
}
