// Calls an allocator by names of its own, -DALLOCATOR=1 jemalloc, 2 mimalloc, 3 tcmalloc: 4 blocks of each function; and 7
// mallocs of plain. STANDIN: the functions are here, prefixed as Rust's crates build them, over a static buffer.
// ASK: only weak references, which it calls where they are there.
#include <heaptally.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef STANDIN
static char buffer[1 << 16];
static size_t used;
void *_rjem_malloc(size_t size) {
  void *block = buffer + used;
  used += (size + 15) & ~(size_t)15;
  return block;
}
void _rjem_sdallocx(void *block, size_t size, int flags) { (void)block, (void)size, (void)flags; }
#define FIRST(size) _rjem_malloc(size)
#define SECOND(size) _rjem_malloc(size)
#define GIVE(block, size) _rjem_sdallocx(block, size, 0)
#elif ALLOCATOR == 1
#ifdef ASK
#define WEAK __attribute__((weak))
#else
#define WEAK
#endif
extern WEAK void *mallocx(size_t, int);
extern WEAK void *rallocx(void *, size_t, int);
extern WEAK size_t xallocx(void *, size_t, size_t, int);
extern WEAK void sdallocx(void *, size_t, int);
#define FIRST(size) (mallocx ? mallocx(size, 0) : malloc(size))
#define SECOND(size) (mallocx ? rallocx(mallocx(8, 0), size, 0) : malloc(size))
#define GIVE(block, size) (mallocx ? sdallocx(block, xallocx(block, size, 0, 0) < size ? 0 : size, 0) : free(block))
#elif ALLOCATOR == 2
extern void *mi_malloc(size_t);
extern void *mi_zalloc_aligned(size_t, size_t);
extern void mi_free(void *);
#define FIRST(size) mi_malloc(size)
#define SECOND(size) mi_zalloc_aligned(size, 64)
#define GIVE(block, size) mi_free(block)
#else
extern void *tc_malloc(size_t);
extern void *tc_memalign(size_t, size_t);
extern void tc_free(void *);
#define FIRST(size) tc_malloc(size)
#define SECOND(size) tc_memalign(64, size)
#define GIVE(block, size) tc_free(block)
#endif

__attribute__((noinline)) static void plain(void) {
  for (int i = 0; i < 7; i++) {
    void *volatile block = malloc(30);
    free(block);
  }
}

__attribute__((noinline)) static void own(void) {
  for (int i = 0; i < 4; i++) {
    char *first = FIRST(40), *second = SECOND(50);
    first[39] = second[49] = 1;
    GIVE(first, 40);
    GIVE(second, 50);
  }
}

int main(void) {
  heaptally_window_begin("w");
  plain();
  own();
  heaptally_window_end("w");
  puts("done");
  return 0;
}
