// Four threads take 4000 entries from one queue, each into an array of its own that doubles: how often an array grows
// depends on how many each is served. That is left to no luck: in run r (counted in the file "runs") r threads share the
// queue evenly, and the others take one entry each.
// Window "w": 4 mallocs in first_room, one for each thread; one realloc in grow for each time that an array is full; 1 malloc in
// fixed. Prints the number of grows.
#include <heaptally.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, ENTRIES = 4000 };
static int next, run, grows;

struct list {
  int *entries, used, room;
};

__attribute__((noinline)) static int *first_room(void) { return malloc(4 * sizeof(int)); }

__attribute__((noinline)) static void grow(struct list *list) {
  list->room *= 2;
  list->entries = realloc(list->entries, (size_t)list->room * sizeof(int));
  __atomic_fetch_add(&grows, 1, __ATOMIC_RELAXED);
}

static void *take(void *argument) {
  struct list list = {first_room(), 0, 4};
  int share = *(int *)argument < run ? ENTRIES / run + 1 : 1;
  while (list.used < share) {
    int entry = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
    if (entry >= ENTRIES) break;
    if (list.used == list.room) grow(&list);
    list.entries[list.used++] = entry;
  }
  free(list.entries);
  return NULL;
}

__attribute__((noinline)) static void fixed(void) {
  void *block = malloc(3);
  __asm__ volatile("" ::"r"(block) : "memory");
  free(block);
}

int main(void) {
  FILE *file = fopen("runs", "r+");
  if (!file || fscanf(file, "%d", &run) != 1) return 2;
  run++;
  rewind(file);
  fprintf(file, "%d\n", run);
  fclose(file);
  pthread_t thread[THREADS];
  int number[THREADS];
  heaptally_window_begin("w");
  for (int i = 0; i < THREADS; i++) {
    number[i] = i;
    pthread_create(&thread[i], NULL, take, &number[i]);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  fixed();
  heaptally_window_end("w");
  printf("%d\n", grows);
  return 0;
}
