// All calls of the header: a process window with iterations, a pause in it, a thread window in it, and a window that
// crosses another. Window "loop": 10 entries of 5 iterations each, 20 mallocs each in loop_work; 3 more in paused_work
// while the thread pauses. Window "mine": 7 in thread_work, of this thread only.
#include <heaptally.h>
#include <pthread.h>
#include <stdlib.h>

static void *volatile sink;

#define ALLOCATE(name)                                                                                                 \
  __attribute__((noinline)) static void name(int count) {                                                              \
    for (int i = 0; i < count; i++) {                                                                                  \
      void *block = malloc(24);                                                                                        \
      sink = block;                                                                                                    \
      free(block);                                                                                                     \
    }                                                                                                                  \
  }
ALLOCATE(loop_work)
ALLOCATE(paused_work)
ALLOCATE(thread_work)
ALLOCATE(other_work)

static pthread_barrier_t open_barrier, done_barrier;

static void *other(void *argument) {
  pthread_barrier_wait(&open_barrier);
  other_work(9);
  pthread_barrier_wait(&done_barrier);
  return argument;
}

int main(void) {
  pthread_t thread;
  pthread_barrier_init(&open_barrier, NULL, 2);
  pthread_barrier_init(&done_barrier, NULL, 2);
  pthread_create(&thread, NULL, other, NULL);
  for (int i = 0; i < 10; i++) {
    heaptally_window_begin("loop");
    loop_work(20);
    if (i == 4) {
      heaptally_pause();
      heaptally_pause();
      paused_work(2);
      heaptally_resume();
      paused_work(1);
      heaptally_resume();
    }
    heaptally_window_iterations("loop", 5);
    heaptally_window_end("loop");
  }
  heaptally_thread_window_begin("mine");
  thread_work(7);
  pthread_barrier_wait(&open_barrier);
  pthread_barrier_wait(&done_barrier);
  heaptally_thread_window_end("mine");
  pthread_join(thread, NULL);
  return 0;
}
