// Objects of C++ threads whose destructors allocate: argv[1] threads, each 3 blocks in body_work and, in the destructors of two
// thread_local objects, 4 in outer_gone and 2 in inner_gone, of an object that the first destructor makes. Window "w".
#include <cstdlib>
#include <heaptally.h>
#include <thread>
#include <vector>

static void use(std::size_t size) {
  void *volatile block = std::malloc(size);
  std::free(block);
}

__attribute__((noinline)) static void body_work() {
  for (int at = 0; at < 3; at++) use(16);
  asm volatile("" ::: "memory");
}

__attribute__((noinline)) static void outer_gone() {
  for (int at = 0; at < 4; at++) use(32);
  asm volatile("" ::: "memory");
}

__attribute__((noinline)) static void inner_gone() {
  for (int at = 0; at < 2; at++) use(64);
  asm volatile("" ::: "memory");
}

struct Inner {
  int touched = 0;
  ~Inner() { inner_gone(); }
};
static thread_local Inner inner;

struct Outer {
  int touched = 0;
  ~Outer() {
    outer_gone();
    inner.touched = 1;
  }
};
static thread_local Outer outer;

int main(int argc, char **argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  heaptally_window_begin("w");
  for (int at = 0; at < threads; at++)
    std::thread([] {
      outer.touched = 1;
      body_work();
    }).join();
  heaptally_window_end("w");
  return 0;
}
