// What of the C library allocates for the program or manages its heap, each in a window of its name: TIMES blocks each.
// argv[1]: a file of at least TIMES short lines. Prints what the calls say. "before" is allocated before any window and freed in one.
#include <errno.h>
#include <malloc.h>
#include <netdb.h>
#include <obstack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define obstack_chunk_alloc malloc
#define obstack_chunk_free free

// By weak functions: the header's look-up allocates where there is no recorder.
extern __attribute__((weak)) void heaptally_window_begin(const char *);
extern __attribute__((weak)) void heaptally_window_end(const char *);

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

enum { TIMES = 10 };
#define WINDOW(name, ...)                                                   \
  if (heaptally_window_begin) heaptally_window_begin(name);                                             \
  for (int i = 0; i < TIMES; i++) {                                         \
    __VA_ARGS__                                                             \
  }                                                                         \
  if (heaptally_window_end) heaptally_window_end(name)

int main(int argc, char **argv) {
  if (argc < 2) return 9;
  void *before[TIMES];
  for (int i = 0; i < TIMES; i++) before[i] = malloc(70);
  WINDOW("before", free(before[i]););
  WINDOW("strdup", free(strdup("hello"));)
  ;
  WINDOW("strndup", free(strndup("hello", 3)););
  WINDOW("asprintf", char *text; if (asprintf(&text, "%d", i) < 0) return 2; free(text););
  FILE *file = fopen(argv[1], "r");
  if (!file) return 3;
  char *line = NULL;
  size_t room = 0;
  if (heaptally_window_begin) heaptally_window_begin("getline");
  for (int i = 0; i < TIMES; i++) {
    free(line);
    line = NULL;
    room = 0;
    if (getline(&line, &room, file) < 0) return 4;
  }
  free(line);
  if (heaptally_window_end) heaptally_window_end("getline");
  WINDOW("open_memstream", char *text; size_t size; FILE *stream = open_memstream(&text, &size); fputs("hello", stream);
         fclose(stream); free(text););
  WINDOW("libc names", void *block = __libc_malloc(24); block = __libc_realloc(block, 48); __libc_free(block);
         free(__libc_calloc(2, 8)); free(__libc_memalign(64, 24)););
  WINDOW("obstack", struct obstack stack; obstack_init(&stack); obstack_alloc(&stack, 100); obstack_free(&stack, NULL););
  int same = 0;
  WINDOW("manage", void *block = malloc(100); same += malloc_usable_size(block) >= 100; mallopt(M_MXFAST, 64);
         malloc_trim(0); struct mallinfo2 info = mallinfo2(); same += info.uordblks >= 100; free(block););
  WINDOW("reallocarray", free(reallocarray(NULL, 3, 8)););
  WINDOW("valloc", free(valloc(10)); free(pvalloc(10)););
  WINDOW("zero", void *block = malloc(0); block = realloc(block, 10); block = realloc(block, 0); free(block););
  struct addrinfo hints = {.ai_family = AF_INET, .ai_flags = AI_NUMERICHOST};
  if (heaptally_window_begin) heaptally_window_begin("getaddrinfo");
  struct addrinfo *found = NULL;
  int failed = getaddrinfo("127.0.0.1", NULL, &hints, &found);
  if (!failed) freeaddrinfo(found);
  if (heaptally_window_end) heaptally_window_end("getaddrinfo");
  printf("%d %d\n", same, failed);
  fclose(file);
  return 0;
}
