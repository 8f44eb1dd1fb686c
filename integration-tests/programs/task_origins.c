/* Tasks of Swift, by hand: `swift_task_create_common` gets a block for a task and its first context, `swift_job_run` resumes
   it, and it allocates. The windows are named after what is done with the tasks. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void heaptally_window_begin(const char *) __attribute__((weak));
void heaptally_window_end(const char *) __attribute__((weak));

static void begin(const char *name) {
  if (heaptally_window_begin)
    heaptally_window_begin(name);
}

static void end(const char *name) {
  if (heaptally_window_end)
    heaptally_window_end(name);
}

/* Sections of that name tell Swift code. */
__attribute__((section("swift5_nothing"), used)) static int swift_section = 1;

struct context {
  struct context *parent;
  void (*resume)(void);
};

/* Where a finished task goes on. Nobody calls it. */
__attribute__((noinline)) void task_end(void) { __asm__ volatile("nop; nop; nop; nop; nop; nop"); }

static struct context *created;

__attribute__((noinline)) void allocate(void) {
  char *volatile block = malloc(24);
  free(block);
}

/* A task's block: a head, then the first context. */
enum { HEAD = 208, TASK = 320 };

__attribute__((noinline)) struct context *swift_task_create_common(void) {
  char *block = malloc(TASK);
  struct context *first = (struct context *)(block + HEAD);
  *first = (struct context){0, task_end};
  return first;
}

static void destroy(struct context *first) { free((char *)first - HEAD); }

__attribute__((noinline)) struct context *by_one(void) {
  struct context *first = swift_task_create_common();
  __asm__ volatile("");
  return first;
}

__attribute__((noinline)) struct context *by_two(void) {
  struct context *first = swift_task_create_common();
  __asm__ volatile("nop");
  return first;
}

/* One task creates the next. */
__attribute__((noinline)) void by_a_task(void) {
  created = swift_task_create_common();
  __asm__ volatile("nop; nop");
}

/* part(context), creating_part(context): r14 is the context at the call. */
#define PART(NAME, CALLS)                                                                                              \
  void NAME(const struct context *);                                                                                   \
  __asm__(".text\n.type " #NAME ", @function\n" #NAME ":\n"                                                            \
          ".cfi_startproc\n"                                                                                           \
          "push %r14\n"                                                                                                \
          ".cfi_def_cfa_offset 16\n"                                                                                   \
          ".cfi_offset %r14, -16\n"                                                                                    \
          "mov %rdi, %r14\n"                                                                                           \
          "call " #CALLS "\n"                                                                                          \
          "pop %r14\n"                                                                                                 \
          ".cfi_def_cfa_offset 8\n"                                                                                    \
          "ret\n"                                                                                                      \
          ".cfi_endproc\n"                                                                                             \
          ".size " #NAME ", . - " #NAME "\n")
PART(part, allocate);
PART(creating_part, by_a_task);

__attribute__((noinline)) void swift_job_run(void (*function)(const struct context *), const struct context *context) {
  function(context);
  __asm__ volatile("");
}

int main(void) {
  struct context *before = by_one();
  begin("created before");
  for (int i = 0; i < 10; i++)
    swift_job_run(part, before);
  end("created before");

  /* The same place for tasks of two creators in turn: the allocator gives a block that was just freed. */
  int same = 0;
  begin("in turn");
  uintptr_t last = 0;
  for (int i = 0; i < 20; i++) {
    struct context *task = i % 2 ? by_one() : by_two();
    same += (uintptr_t)task == last;
    last = (uintptr_t)task;
    for (int run = 0; run <= i % 2; run++)
      swift_job_run(part, task);
    destroy(task);
  }
  end("in turn");
  if (same != 19)
    return 2;

  /* A block in which there was a task, and which something else has now. */
  struct context *over = by_one();
  swift_job_run(part, over);
  destroy(over);
  char *block = malloc(TASK);
  if (block + HEAD != (char *)over)
    return 3;
  *over = (struct context){0, task_end};
  begin("no task any more");
  for (int i = 0; i < 10; i++)
    swift_job_run(part, over);
  end("no task any more");

  /* A context that lies in no task. */
  static struct context elsewhere = {0, task_end};
  begin("elsewhere");
  for (int i = 0; i < 10; i++)
    swift_job_run(part, &elsewhere);
  end("elsewhere");

  /* Each of a thousand tasks creates the next. */
  created = by_two();
  begin("by each other");
  for (int i = 0; i < 1000; i++) {
    struct context *task = created;
    swift_job_run(part, task);
    swift_job_run(creating_part, task);
  }
  end("by each other");
  return 0;
}
