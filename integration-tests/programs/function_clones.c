// A function beside what a compiler makes of it for some of its callers; nothing here knows of the recorder. The argument
// says how many rounds: `enlarge` is called once, with 3 allocations, its copy for a fixed argument once, with 2, and the part
// of it that is left where its begin was inlined once, with 1; that is no entry. Behind the first two are 2 allocations of
// `outside` each. All are written at one place, as a compiler has it.
#include <stdlib.h>

#define APART __attribute__((noinline, noclone))

void enlarge_by_two(void) __asm__("enlarge.constprop.0");
void rest_of_enlarge(void) __asm__("enlarge.part.0");

APART static void use(void *pointer) { __asm__ volatile("" ::"r"(pointer) : "memory"); }
APART static void allocate(int count) {
  for (int i = 0; i < count; i++) {
    void *block = malloc(12);
    use(block);
    free(block);
  }
}
#line 100
APART void enlarge(int count) {
  allocate(count);
  use(NULL);
}
#line 100
APART void enlarge_by_two(void) {
  allocate(2);
  use(NULL);
}
#line 100
APART void rest_of_enlarge(void) {
  allocate(1);
  use(NULL);
}
APART void outside(void) {
  allocate(2);
  use(NULL);
}

int main(int argc, char **argv) {
  for (long i = argc > 1 ? atol(argv[1]) : 1; i > 0; i--) {
    enlarge(3);
    outside();
    enlarge_by_two();
    outside();
    rest_of_enlarge();
  }
  return 4;
}
