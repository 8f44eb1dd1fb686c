// Code without unwind information between a function and what it allocates; nothing here knows of the recorder. The argument
// says how many rounds: `work` makes 2 allocations, and 3 more beneath such code. Then come 2 of `outside`, whose stack is
// whole, and 1 beneath such code, of which the stack does not tell that it is not beneath `work`.
#include <stdlib.h>

#define APART __attribute__((noinline, noclone))

void through(void (*function)(int), int count);
__asm__(".text\n"
        ".type through, @function\n"
        "through: push %rbp\n"
        "xorl %ebp, %ebp\n"
        "movq %rdi, %rax\n"
        "movl %esi, %edi\n"
        "call *%rax\n"
        "pop %rbp\n"
        "ret\n"
        ".size through, . - through");

APART static void use(void *pointer) { __asm__ volatile("" ::"r"(pointer) : "memory"); }
APART static void allocate(int count) {
  for (int i = 0; i < count; i++) {
    void *block = malloc(12);
    use(block);
    free(block);
  }
}
APART void work(void) {
  allocate(2);
  through(allocate, 3);
  use(NULL);
}
APART void outside(void) {
  allocate(2);
  through(allocate, 1);
  use(NULL);
}

int main(int argc, char **argv) {
  for (long i = argc > 1 ? atol(argv[1]) : 1; i > 0; i--) {
    work();
    outside();
  }
  return 4;
}
