// Defines, for all to see, names that recorders get from other libraries: unwinders, backtraces, a demangler, a C++ and a
// Rust run time. A recorder that calls one of them calls this program, which then aborts.
// Window "w": 5 mallocs in work, once from main and once from a thread.
#include <heaptally.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define TRAP(name) \
  __attribute__((visibility("default"))) void name(void) { \
    static const char text[] = #name " was called\n"; \
    if (write(2, text, sizeof text - 1)) {} \
    abort(); \
  }
TRAP(backtrace)
TRAP(backtrace_symbols)
TRAP(_Unwind_Backtrace)
TRAP(_Unwind_GetIP)
TRAP(_Unwind_GetIPInfo)
TRAP(_Unwind_FindEnclosingFunction)
TRAP(_Ux86_64_getcontext)
TRAP(_ULx86_64_init_local)
TRAP(_ULx86_64_step)
TRAP(_ULx86_64_set_cache_size)
TRAP(_ULx86_64_set_caching_policy)
TRAP(unw_backtrace)
TRAP(unw_step)
TRAP(unw_init_local)
TRAP(__cxa_demangle)
TRAP(rust_eh_personality)
TRAP(rust_begin_unwind)
TRAP(__rust_alloc)
TRAP(__rdl_alloc)

__attribute__((noinline)) static void *work(void *argument) {
  for (int i = 0; i < 5; i++) {
    void *block = malloc(40);
    __asm__ volatile("" ::"r"(block) : "memory");
    free(block);
  }
  return argument;
}

int main(void) {
  heaptally_window_begin("w");
  work(NULL);
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL)) return 2;
  heaptally_window_end("w");
  return 0;
}
