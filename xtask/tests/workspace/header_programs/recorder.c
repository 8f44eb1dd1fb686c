/* Stands in for the recorder: a table of TABLE_SIZE bytes whose functions print what they are called with. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

static void window_begin(const char *name) { printf("begin %s\n", name); }
static void window_end(const char *name) { printf("end %s\n", name); }
static void thread_window_begin(const char *name) { printf("thread begin %s\n", name); }
static void thread_window_end(const char *name) { printf("thread end %s\n", name); }
static void window_iterations(const char *name, uint64_t n) { printf("iterations %s %" PRIu64 "\n", name, n); }
static void pause_thread(void) { puts("pause"); }
static void resume_thread(void) { puts("resume"); }

struct table {
    uint64_t size;
    void (*begin)(const char *);
    void (*end)(const char *);
    void (*thread_begin)(const char *);
    void (*thread_end)(const char *);
    void (*iterations)(const char *, uint64_t);
    void (*pause)(void);
    void (*resume)(void);
};
const struct table heaptally_abi_v1 = {
    TABLE_SIZE,        window_begin, window_end,   thread_window_begin, thread_window_end,
    window_iterations, pause_thread, resume_thread};
