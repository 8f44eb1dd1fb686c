// Every form of allocation that C and C++ have, each in a window of its name: TIMES blocks, all freed by the form's own
// function. Prints for each whether the blocks were aligned and as large as was asked for.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <heaptally.h>
#include <malloc.h>
#include <new>

enum { TIMES = 10 };
static void *blocks[TIMES];

template <typename Make, typename Free>
__attribute__((noinline)) static void form(const char *name, size_t size, size_t alignment, Make make, Free give) {
  heaptally_window_begin(name);
  for (void *&block : blocks) block = make();
  bool fits = true;
  for (void *block : blocks) {
    fits = fits && block && reinterpret_cast<size_t>(block) % alignment == 0 && malloc_usable_size(block) >= size;
    if (block) memset(block, 1, size);
  }
  for (void *block : blocks) give(block);
  heaptally_window_end(name);
  printf("%s %s\n", name, fits ? "fits" : "DOES NOT FIT");
}

int main() {
  auto give = [](void *block) { free(block); };
  form("malloc", 24, 8, [] { return malloc(24); }, give);
  form("calloc", 24, 8, [] { return calloc(3, 8); }, give);
  form("realloc", 300, 8, [] { return realloc(nullptr, 300); }, give);
  form("aligned_alloc", 64, 64, [] { return aligned_alloc(64, 64); }, give);
  form("memalign", 24, 128, [] { return memalign(128, 24); }, give);
  form("posix_memalign", 24, 256, [] {
    void *block = nullptr;
    return posix_memalign(&block, 256, 24) ? nullptr : block;
  }, give);
  form("strdup", 6, 1, [] { return static_cast<void *>(strdup("hello")); }, give);
  form("new", 24, 8, [] { return operator new(24); }, [](void *block) { operator delete(block); });
  form("new[]", 24, 8, [] { return operator new[](24); }, [](void *block) { operator delete[](block); });
  form("sized", 24, 8, [] { return operator new(24); }, [](void *block) { operator delete(block, size_t{24}); });
  form("sized[]", 24, 8, [] { return operator new[](24); }, [](void *block) { operator delete[](block, size_t{24}); });
  form("nothrow", 24, 8, [] { return operator new(24, std::nothrow); },
       [](void *block) { operator delete(block, std::nothrow); });
  form("nothrow[]", 24, 8, [] { return operator new[](24, std::nothrow); },
       [](void *block) { operator delete[](block, std::nothrow); });
  constexpr std::align_val_t wide{64};
  form("aligned", 24, 64, [] { return operator new(24, wide); }, [](void *block) { operator delete(block, wide); });
  form("aligned[]", 24, 64, [] { return operator new[](24, wide); }, [](void *block) { operator delete[](block, wide); });
  form("aligned sized", 24, 64, [] { return operator new(24, wide); },
       [](void *block) { operator delete(block, size_t{24}, wide); });
  form("aligned nothrow", 24, 64, [] { return operator new(24, wide, std::nothrow); },
       [](void *block) { operator delete(block, wide, std::nothrow); });
  // A block that one form gives and another moves, and one that is too large to be had.
  heaptally_window_begin("moves");
  void *block = malloc(16);
  block = realloc(block, 100000);
  block = realloc(block, 16);
  free(block);
  heaptally_window_end("moves");
  heaptally_window_begin("throws");
  int caught = 0;
  for (int i = 0; i < 3; i++) {
    try {
      operator delete(operator new(size_t{1} << 62));
    } catch (const std::bad_alloc &) {
      caught++;
    }
  }
  heaptally_window_end("throws");
  printf("%d caught\n", caught);
}
