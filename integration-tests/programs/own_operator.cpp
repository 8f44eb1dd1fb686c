// Operators new and delete in the program or a library of its own, by -D:
// POOL: from a static buffer, no malloc; HEADER: malloc with 16 bytes in front; else malloc of the same size.
// HIDDEN: not visible to other objects. The file is compiled as a library too: -DPART=1 operators only, -DPART=2 the
// program only, else both. Window "w": 10 new, 6 new[] and 4 std::string's buffers, all given back.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <heaptally.h>
#include <new>
#include <string>

#ifndef PART
#define PART 3
#endif
#ifdef HIDDEN
#pragma GCC visibility push(hidden)
#endif
#if (PART & 1) && !defined(NONE)
#ifdef POOL
static unsigned char pool[1 << 20];
static size_t used;
static void *get(size_t size) {
  void *block = pool + used;
  used += (size + 15) & ~size_t{15};
  return block;
}
static void give(void *) {}
#elif defined(HEADER)
static void *get(size_t size) { return static_cast<char *>(malloc(size + 16)) + 16; }
static void give(void *block) {
  if (block) free(static_cast<char *>(block) - 16);
}
#else
static void *get(size_t size) { return malloc(size); }
static void give(void *block) { free(block); }
#endif
void *operator new(size_t size) { return get(size); }
void *operator new[](size_t size) { return get(size); }
void operator delete(void *block) noexcept { give(block); }
void operator delete[](void *block) noexcept { give(block); }
void operator delete(void *block, size_t) noexcept { give(block); }
void operator delete[](void *block, size_t) noexcept { give(block); }
#endif
#ifdef HIDDEN
#pragma GCC visibility pop
#endif

#if PART & 2
__attribute__((noinline)) static void singles() {
  for (int i = 0; i < 10; i++) {
    long *volatile number = new long(i);
    delete number;
  }
}
__attribute__((noinline)) static void arrays() {
  for (int i = 0; i < 6; i++) {
    char *volatile block = new char[100];
    delete[] block;
  }
}
__attribute__((noinline)) static void strings() {
  for (int i = 0; i < 4; i++) {
    std::string text(50, 'x');
    asm volatile("" ::"r"(text.data()) : "memory");
  }
}
int main() {
  heaptally_window_begin("w");
  singles();
  arrays();
  strings();
  heaptally_window_end("w");
  puts("done");
}
#endif
