// A library to be preloaded beside the recorder: its constructor allocates 3 blocks and asks for a function that is not
// there, its destructor frees them.
#include <dlfcn.h>
#include <stdlib.h>

static void *blocks[3];

__attribute__((constructor)) static void begin(void) {
  for (int i = 0; i < 3; i++) blocks[i] = malloc(1000 + i);
  dlsym(RTLD_NEXT, "no_such_function_anywhere");
}

__attribute__((destructor)) static void end(void) {
  for (int i = 0; i < 3; i++) free(blocks[i]);
}
