// Windows and threads, kind by argv[1]:
//   crossing: main begins "w", a thread allocates 5 in thread_alloc and ends "w", main allocates 3 in main_alloc outside
//   foreign:  a thread ends the thread window "mine" that main has open; main allocates 4 in main_alloc, 2 of them behind it
//   open:     9 threads end while "mine" is open in them (twice begun in one), 2 mallocs in thread_alloc each
//   resume:   a thread resumes 3 times without a pause, and allocates 2 in thread_alloc in "w"
//   churn:    while "w" is open 200 threads come and go, 3 mallocs in thread_alloc each; "w" is entered 5 times
#include <heaptally.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char *way;

#define ALLOCATE(name)                                                                                                 \
  __attribute__((noinline)) static void name(int count) {                                                              \
    for (int at = 0; at < count; at++) {                                                                               \
      void *volatile block = malloc(24);                                                                               \
      free(block);                                                                                                     \
    }                                                                                                                  \
  }
ALLOCATE(thread_alloc)
ALLOCATE(main_alloc)

static int is(const char *name) {
  return !strcmp(way, name);
}

static void *worker(void *argument) {
  if (is("crossing")) {
    thread_alloc(5);
    heaptally_window_end("w");
  } else if (is("foreign")) {
    heaptally_thread_window_end("mine");
  } else if (is("open")) {
    heaptally_thread_window_begin("mine");
    if (argument) heaptally_thread_window_begin("mine");
    thread_alloc(2);
  } else if (is("resume")) {
    for (int at = 0; at < 3; at++) heaptally_resume();
    thread_alloc(2);
  } else {
    thread_alloc(3);
  }
  return NULL;
}

static void in_thread(void *argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, worker, argument)) exit(3);
  pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  way = argv[1];
  if (is("crossing")) {
    heaptally_window_begin("w");
    in_thread(NULL);
    main_alloc(3);
  } else if (is("foreign")) {
    heaptally_thread_window_begin("mine");
    main_alloc(2);
    in_thread(NULL);
    main_alloc(2);
    heaptally_thread_window_end("mine");
  } else if (is("open")) {
    for (int at = 0; at < 9; at++) in_thread(at == 4 ? &way : NULL);
  } else if (is("resume")) {
    heaptally_window_begin("w");
    in_thread(NULL);
    heaptally_window_end("w");
  } else {
    for (int entry = 0; entry < 5; entry++) {
      heaptally_window_begin("w");
      for (int batch = 0; batch < 10; batch++) {
        pthread_t threads[4];
        for (int at = 0; at < 4; at++)
          if (pthread_create(&threads[at], NULL, worker, NULL)) return 3;
        for (int at = 0; at < 4; at++) pthread_join(threads[at], NULL);
      }
      heaptally_window_end("w");
    }
  }
  return 0;
}
