// Machine code made at run time, of which no unwind information exists, calls malloc: window "framed" through code that
// keeps frame pointers (5), "frameless" through code that keeps none and leaves rbp as it was (6), "junk" through code
// that uses rbp for something else (7), "stack" where rbp points at a made-up frame on the stack whose return address
// lies in data (8), "unmapped" where it points nowhere (9). The true stack of each:
// malloc, the made code, call_made, main.
#include <heaptally.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef void *(*made)(uint64_t);

static unsigned char *code;
static size_t used;

static void emit(const void *bytes, size_t count) {
  memcpy(code + used, bytes, count);
  used += count;
}

static void emit_call_malloc(void) {
  void *(*function)(size_t) = malloc;
  emit("\xbf\x20\x00\x00\x00", 5); // mov edi, 32
  emit("\x48\xb8", 2);             // mov rax, malloc
  emit(&function, 8);
  emit("\xff\xd0", 2); // call rax
}

static made begin(void) {
  used = (used + 63) & ~(size_t)63;
  return (made)(void *)(code + used);
}

__attribute__((noinline)) static void call_made(made function, int count, uint64_t argument) {
  for (int i = 0; i < count; i++) {
    void *block = function(argument);
    __asm__ volatile("" ::"r"(block) : "memory");
    free(block);
  }
}

static uint64_t data[64];

int main(void) {
  code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 2;

  made framed = begin();
  emit("\x55\x48\x89\xe5", 4); // push rbp; mov rbp, rsp
  emit_call_malloc();
  emit("\x5d\xc3", 2); // pop rbp; ret

  made frameless = begin();
  emit("\x48\x83\xec\x08", 4); // sub rsp, 8
  emit_call_malloc();
  emit("\x48\x83\xc4\x08\xc3", 5); // add rsp, 8; ret

  made junk = begin();
  emit("\x55\x48\x89\xfd", 4); // push rbp; mov rbp, rdi
  emit_call_malloc();
  emit("\x5d\xc3", 2);

  heaptally_window_begin("framed");
  call_made(framed, 5, 0);
  heaptally_window_end("framed");

  heaptally_window_begin("frameless");
  call_made(frameless, 6, 0);
  heaptally_window_end("frameless");

  heaptally_window_begin("junk");
  call_made(junk, 7, 0x1234567);
  heaptally_window_end("junk");

  volatile uint64_t fake[4] = {(uint64_t)(uintptr_t)&fake[2], (uint64_t)(uintptr_t)&data[8], 0, 0};
  heaptally_window_begin("stack");
  call_made(junk, 8, (uint64_t)(uintptr_t)fake);
  heaptally_window_end("stack");

  char *hole = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  heaptally_window_begin("unmapped");
  call_made(junk, 9, (uint64_t)(uintptr_t)hole + 64);
  heaptally_window_end("unmapped");
  return 0;
}
