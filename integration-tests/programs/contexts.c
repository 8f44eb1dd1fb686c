// makecontext: 50 contexts on stacks of their own, each switched away from and back at three depths, on two threads.
// Window "w", per thread: 50 x 3 mallocs in deepest below context_body, whose stacks end there: 1 + 2 + 3 levels of
// sink_down. The contexts' stacks are mapped, not allocated.
#include <heaptally.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { CONTEXTS = 50, SIZE = 64 * 1024 };

static __thread ucontext_t home, contexts[CONTEXTS];
static __thread int current;

__attribute__((noinline)) static void deepest(void) {
  void *block = malloc(33);
  __asm__ volatile("" ::"r"(block) : "memory");
  free(block);
  int me = current;
  swapcontext(&contexts[me], &home);
}

__attribute__((noinline)) static void sink_down(int depth) {
  if (depth == 0) {
    deepest();
    __asm__ volatile("" ::: "memory");
    return;
  }
  sink_down(depth - 1);
  __asm__ volatile("" ::: "memory");
}

static void context_body(void) {
  for (int depth = 1; depth <= 3; depth++) sink_down(depth);
}

static void *run(void *argument) {
  for (int i = 0; i < CONTEXTS; i++) {
    getcontext(&contexts[i]);
    char *stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    contexts[i].uc_stack.ss_sp = stack;
    contexts[i].uc_stack.ss_size = SIZE;
    contexts[i].uc_link = &home;
    makecontext(&contexts[i], context_body, 0);
  }
  for (int round = 0; round < 4; round++)
    for (current = 0; current < CONTEXTS; current++) swapcontext(&home, &contexts[current]);
  return argument;
}

int main(void) {
  pthread_t thread;
  heaptally_window_begin("w");
  pthread_create(&thread, NULL, run, NULL);
  pthread_join(thread, NULL);
  run(NULL);
  heaptally_window_end("w");
  return 0;
}
