// C++ exceptions through frames with destructors that allocate, rethrown, caught at depth. Window "w", 200 rounds: per
// round 1 __cxa_allocate_exception in thrower, 5 mallocs in the destructors' cleanup (one per level), 1 in handle.
#include <heaptally.h>

#include <cstdlib>

static void *volatile sink;

__attribute__((noinline)) static void take(size_t size) {
  void *block = std::malloc(size);
  sink = block;
  std::free(block);
}

struct Guard {
  __attribute__((noinline)) ~Guard() { take(21); }
};

struct Big {
  char text[200];
};

__attribute__((noinline)) static void thrower(int depth) {
  Guard guard;
  if (depth == 0) throw Big{};
  thrower(depth - 1);
  __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void rethrower() {
  try {
    thrower(4);
  } catch (...) {
    throw;
  }
}

__attribute__((noinline)) static void handle() {
  try {
    rethrower();
  } catch (const Big &) {
    take(22);
  }
}

int main() {
  heaptally_window_begin("w");
  for (int i = 0; i < 200; i++) handle();
  heaptally_window_end("w");
}
