// Looks for names that no library has, in a constructor, before the first allocation of its own: `dlsym` and `dlerror`
// then allocate inside the loader, before anything else did. Prints what dlerror says, twice: the second is of no error.
// Window "w": 3 mallocs in main_work. Its exit code is 4.
#include <dlfcn.h>
#include <heaptally.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char told[256];
static int was_empty;

__attribute__((constructor(101))) static void look(void) {
  if (dlsym(RTLD_DEFAULT, "heaptally_test_no_such_name")) abort();
  const char *error = dlerror();
  strncpy(told, error ? error : "nothing", sizeof told - 1);
  if (dlsym(RTLD_NEXT, "heaptally_test_no_such_name_either")) abort();
  if (dlopen("libheaptally_test_no_such_library.so", RTLD_NOW)) abort();
  was_empty = dlerror() != NULL && dlerror() == NULL;
}

__attribute__((noinline)) static void main_work(void) {
  for (int i = 0; i < 3; i++) {
    void *block = malloc(40);
    __asm__ volatile("" ::"r"(block) : "memory");
    free(block);
  }
}

int main(void) {
  heaptally_window_begin("w");
  main_work();
  heaptally_window_end("w");
  printf("%s\n%d\n", told, was_empty);
  return 4;
}
