// How a process ends while its threads allocate, by argv[1]; argv[2] is a file in which each thread that goes on has a word for its
// finished calls of busy_work (a malloc and a free). Before the end there are 6 mallocs in main_work.
//   return:       main returns 4 while 8 detached threads go on
//   pthread_exit: main ends by pthread_exit; 8 detached threads do 500 calls each, the last of them calls exit(4)
//   quick_exit, _exit, exit, abort: one of 8 threads does, with 4, after 9 mallocs in end_work
//   exec:         one of 8 threads becomes this program with the argument "again", which does 11 mallocs in again_work: 4
//   stop:         it stops itself by SIGSTOP after 6 mallocs in main_work, and on SIGCONT goes on: 9 in end_work: 4
#include <fcntl.h>
#include <heaptally.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 8, CALLS = 500 };

static const char *way, *self;
static volatile uint64_t *page;
static atomic_int left = THREADS;

#define ALLOCATE(name)                                                                                                 \
  __attribute__((noinline)) static void name(int count) {                                                              \
    for (int at = 0; at < count; at++) {                                                                               \
      void *volatile block = malloc(24);                                                                               \
      free(block);                                                                                                     \
    }                                                                                                                  \
  }
ALLOCATE(main_work)
ALLOCATE(busy_work)
ALLOCATE(end_work)
ALLOCATE(again_work)

static int is(const char *name) {
  return !strcmp(way, name);
}

static void *busy(void *argument) {
  uint64_t number = (uintptr_t)argument;
  int is_bounded = is("pthread_exit");
  for (int call = 0; !is_bounded || call < CALLS; call++) {
    busy_work(1);
    __atomic_store_n(&page[number], page[number] + 1, __ATOMIC_RELEASE);
  }
  if (atomic_fetch_sub(&left, 1) == 1) exit(4);
  return NULL;
}

static void *ending(void *argument) {
  end_work(9);
  if (is("quick_exit")) quick_exit(4);
  if (is("_exit")) _exit(4);
  if (is("exit")) exit(4);
  if (is("abort")) abort();
  if (is("exec")) execl(self, self, "again", (char *)NULL);
  return argument;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  way = argv[1];
  self = argv[0];
  if (is("again")) {
    heaptally_window_begin("again");
    again_work(11);
    return 4;
  }
  if (is("stop")) {
    heaptally_window_begin("w");
    main_work(6);
    raise(SIGSTOP);
    end_work(9);
    return 4;
  }
  if (argc < 3) return 2;
  int file = open(argv[2], O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, 4096)) return 2;
  page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) return 2;
  heaptally_window_begin("w");
  main_work(6);
  for (uintptr_t at = 0; at < THREADS; at++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, busy, (void *)at)) return 3;
    pthread_detach(thread);
  }
  if (is("pthread_exit")) pthread_exit(NULL);
  for (int at = 0; at < THREADS; at++)
    while (page[at] < 100) usleep(50);
  if (is("return")) return 4;
  pthread_t thread;
  if (pthread_create(&thread, NULL, ending, NULL)) return 3;
  pthread_join(thread, NULL);
  return 5;
}
