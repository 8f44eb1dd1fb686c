// One of two libraries that take each other's place: NAME is its letter, SIZE the stack that its inner function takes.
// All instructions lie at the same offsets in both, the names and the frame's size differ: what was remembered of the
// one is wrong for the other.
#include <stdlib.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define INNER JOIN(inner_, NAME)
#define OUTER JOIN(outer_, NAME)

void *INNER(size_t size);

__asm__(".text\n"
        ".p2align 12\n"
        ".globl inner_" TEXT(NAME) "\n"
        ".type inner_" TEXT(NAME) ", @function\n"
        "inner_" TEXT(NAME) ":\n"
        ".cfi_startproc\n"
        // sub rsp, SIZE with a 32-bit operand, so that both have the same length
        ".byte 0x48, 0x81, 0xec\n"
        ".long " TEXT(SIZE) "\n"
        ".cfi_adjust_cfa_offset " TEXT(SIZE) "\n"
        "call malloc@PLT\n"
        ".byte 0x48, 0x81, 0xc4\n"
        ".long " TEXT(SIZE) "\n"
        ".cfi_adjust_cfa_offset -" TEXT(SIZE) "\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size inner_" TEXT(NAME) ", .-inner_" TEXT(NAME) "\n");

void OUTER(int count) {
  for (int i = 0; i < count; i++) {
    void *block = INNER(40);
    __asm__ volatile("" ::"r"(block) : "memory");
    free(block);
  }
}
