// Signals on an alternate stack of the size that the system calls the least (and 12 KiB), from code of several depths, a
// signal in a signal handler, and a handler on the ordinary stack. Window "w": 40 in on_alternate (10 each from depths
// 1, 2, 3, 4 of descend), 5 in nested below the signal in on_outer, 6 in on_ordinary.
#include <heaptally.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>

static void *volatile sink;

__attribute__((noinline)) static void take(size_t size) {
  void *block = malloc(size);
  sink = block;
  free(block);
}

static void on_alternate(int number) { (void)number; take(11); }
static void on_ordinary(int number) { (void)number; take(12); }
static void nested(int number) { (void)number; take(13); }
static void on_outer(int number) { (void)number; raise(SIGUSR2); }

__attribute__((noinline)) static void descend(int depth) {
  if (depth > 1) {
    descend(depth - 1);
    __asm__ volatile("" ::: "memory");
    return;
  }
  for (int i = 0; i < 10; i++) raise(SIGUSR1);
}

static void on(int number, void (*handler)(int), int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigaction(number, &action, NULL);
}

int main(void) {
  size_t size = getauxval(51 /* AT_MINSIGSTKSZ */);
  if (size < 2048) size = 2048;
  size = (2 * size + 12288 + 4095) & ~(size_t)4095;
  // Guard pages on both sides: a hook that takes too much stack dies.
  char *memory = mmap(NULL, size + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(memory + 4096, size, PROT_READ | PROT_WRITE);
  stack_t stack = {.ss_sp = memory + 4096, .ss_size = size};
  if (sigaltstack(&stack, NULL)) return 2;
  on(SIGUSR1, on_alternate, SA_ONSTACK);
  on(SIGUSR2, nested, SA_ONSTACK);
  on(SIGHUP, on_outer, SA_ONSTACK);
  on(SIGWINCH, on_ordinary, 0);
  heaptally_window_begin("w");
  for (int depth = 1; depth <= 4; depth++) descend(depth);
  for (int i = 0; i < 5; i++) raise(SIGHUP);
  for (int i = 0; i < 6; i++) raise(SIGWINCH);
  heaptally_window_end("w");
  return 0;
}
