// Walks the list of loaded objects again and again, and allocates in the walk's callback, which holds the loader's lock,
// while threads allocate and another one loads and unloads a library (argv[1]).
// Window "w": 200 mallocs in callback, 3 * 20000 in thread_alloc, beside what the loader itself allocates.
#include <dlfcn.h>
#include <heaptally.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>

static const char *library;
static int is_done;

__attribute__((noinline)) static void allocate(void) {
  void *block = malloc(40);
  __asm__ volatile("" ::"r"(block) : "memory");
  free(block);
}

__attribute__((noinline)) static int callback(struct dl_phdr_info *info, size_t size, void *data) {
  (void)info, (void)size, (void)data;
  allocate();
  __asm__ volatile("");
  return 1; // the first alone
}

__attribute__((noinline)) static void *thread_alloc(void *argument) {
  for (int i = 0; i < 20000; i++) allocate();
  return argument;
}

static void *load(void *argument) {
  while (!__atomic_load_n(&is_done, __ATOMIC_RELAXED)) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle || dlclose(handle)) exit(3);
  }
  return argument;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  library = argv[1];
  pthread_t thread[4];
  heaptally_window_begin("w");
  for (int i = 0; i < 3; i++) pthread_create(&thread[i], NULL, thread_alloc, NULL);
  pthread_create(&thread[3], NULL, load, NULL);
  for (int i = 0; i < 200; i++) dl_iterate_phdr(callback, NULL);
  for (int i = 0; i < 3; i++) pthread_join(thread[i], NULL);
  __atomic_store_n(&is_done, 1, __ATOMIC_RELAXED);
  pthread_join(thread[3], NULL);
  heaptally_window_end("w");
  return 0;
}
