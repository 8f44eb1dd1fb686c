// Loads argv[2] as argv[1] says: "lazy", "now", "deepbind-lazy", "deepbind-now" or "namespace". Then, in the window "w"
// unless argv[3] is "process": the plug-in's plug_own, 3 calls of back through plug_back, which makes a malloc each, and
// 2 mallocs of own_work. At last argv[4], if it is there: "kill" ends by SIGKILL, "close" unloads the plug-in.
#include <dlfcn.h>
#include <heaptally.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static void back(void) {
  void *block = malloc(56);
  __asm__ volatile("" ::"r"(block) : "memory");
  free(block);
}

__attribute__((noinline)) static void own_work(void) {
  for (int i = 0; i < 2; i++) back();
}

int main(int argc, char **argv) {
  if (argc < 3) return 9;
  const char *how = argv[1];
  int mode = (strstr(how, "lazy") ? RTLD_LAZY : RTLD_NOW) | (strstr(how, "deepbind") ? RTLD_DEEPBIND : 0);
  void *library = strcmp(how, "namespace") ? dlopen(argv[2], mode) : dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  void (*plug_own)(void) = (void (*)(void))dlsym(library, "plug_own");
  void (*plug_back)(void (*)(void), int) = (void (*)(void (*)(void), int))dlsym(library, "plug_back");
  int has_window = argc < 4 || strcmp(argv[3], "process");
  if (has_window) heaptally_window_begin("w");
  plug_own();
  plug_back(back, 3);
  own_work();
  if (has_window) heaptally_window_end("w");
  if (argc > 4 && !strcmp(argv[4], "kill")) raise(SIGKILL);
  if (argc > 4 && !strcmp(argv[4], "close")) return dlclose(library) ? 4 : 0;
  return 0;
}
