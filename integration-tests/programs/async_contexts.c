/* What a resumed async function of Swift looks like to a recorder, by hand: `swift_job_run` calls `part`, which keeps
   its context in r14 while it allocates. Good contexts and bad ones come to one and the same call.

   Each window is named after its contexts and has 10 allocations. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void heaptally_window_begin(const char *) __attribute__((weak));
void heaptally_window_end(const char *) __attribute__((weak));

/* Sections of that name tell Swift code. */
__attribute__((section("swift5_nothing"), used)) static int swift_section = 1;

struct context {
  const struct context *parent;
  void (*resume)(void);
};

/* Where suspended callers go on. Nobody calls them. */
__attribute__((noinline)) void inner_caller(void) { __asm__ volatile("nop; nop; nop; nop"); }
__attribute__((noinline)) void outer_caller(void) { __asm__ volatile("nop; nop; nop; nop; nop"); }
__attribute__((noinline)) void task_end(void) { __asm__ volatile("nop; nop; nop; nop; nop; nop"); }

__attribute__((noinline)) void allocate(void) {
  char *volatile block = malloc(24);
  free(block);
}

/* part(context): r14 is the context at the call. */
void part(const struct context *);
__asm__(".text\n"
        ".type part, @function\n"
        "part:\n"
        ".cfi_startproc\n"
        "push %r14\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %r14, -16\n"
        "mov %rdi, %r14\n"
        "call allocate\n"
        "pop %r14\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size part, . - part\n");

/* The same with the context in r14 when it is resumed, and something else in it at the call; `saved` pushes r14 itself. */
void clobbering_part(const struct context *);
__asm__(".type clobbering_part, @function\n"
        "clobbering_part:\n"
        ".cfi_startproc\n"
        "push %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "mov %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "push %rdi\n"
        "push %r14\n"
        ".cfi_offset %r14, -32\n"
        "mov $42, %r14\n"
        "call allocate\n"
        "pop %r14\n"
        "pop %rdi\n"
        "pop %rbp\n"
        ".cfi_def_cfa %rsp, 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size clobbering_part, . - clobbering_part\n");

__attribute__((noinline)) void swift_job_run(void (*function)(const struct context *), const struct context *context) {
  function(context);
  __asm__ volatile("");
}

static struct context end = {0, task_end};
static struct context outer = {&end, outer_caller};
static struct context good = {&outer, inner_caller};

static void run(const char *name, void (*function)(const struct context *), const void *context) {
  if (heaptally_window_begin)
    heaptally_window_begin(name);
  for (int i = 0; i < 10; i++)
    swift_job_run(function, context);
  if (heaptally_window_end)
    heaptally_window_end(name);
}

static char data[64];

int main(void) {
  const size_t page = 4096;
  run("good", part, &good);
  run("one caller", part, &end);
  run("below the base", clobbering_part, &good);
  run("null", part, 0);
  run("small", part, (void *)0x1234);
  run("misaligned", part, (char *)&good + 4);
  run("the kernel's", part, (void *)0xffff800000001000);
  run("not canonical", part, (void *)0x0123456789abcdf0);

  /* A page that held good ones, and is gone. */
  struct context *mapped = mmap(0, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mapped[0] = good;
  run("mapped", part, mapped);
  munmap(mapped, page);
  run("unmapped", part, mapped);

  /* A large block has a mapping of its own, which goes with it. */
  struct context *block = malloc(1 << 20);
  *block = good;
  run("allocated", part, block);
  free(block);
  run("freed", part, block);

  /* A mapping that moves away. */
  struct context *moving = mmap(0, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *moving = good;
  run("before it moves", part, moving);
  void *room = mmap(0, 4 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mremap(moving, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, room);
  run("moved", part, moving);

  /* The end of the last page that is there. */
  char *edge = mmap(0, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(edge + page, page);
  run("half a context", part, edge + page - 8);

  static struct context self = {&self, inner_caller};
  run("its own parent", part, &self);
  static struct context one, two;
  one = (struct context){&two, inner_caller};
  two = (struct context){&one, outer_caller};
  run("in a circle", part, &one);
  static struct context lead;
  lead = (struct context){&one, inner_caller};
  run("into a circle", part, &lead);

  /* Code, but no function's start. */
  static struct context inside;
  inside = (struct context){0, (void (*)(void))((char *)inner_caller + 1)};
  run("inside of a function", part, &inside);
  static struct context in_data;
  in_data = (struct context){0, (void (*)(void))data};
  run("no code", part, &in_data);
  struct context on_stack = {0, (void (*)(void))&page};
  run("the stack", part, &on_stack);

  /* A good one whose parent is none. */
  static struct context broken;
  broken = (struct context){(struct context *)0x10000, inner_caller};
  run("a parent that is not there", part, &broken);
  static struct context into_data;
  into_data = (struct context){&in_data, inner_caller};
  run("a parent that is no context", part, &into_data);

  /* More than anybody writes. */
  static struct context many[3000];
  for (int i = 0; i < 3000; i++)
    many[i] = (struct context){i < 2999 ? &many[i + 1] : &end, i % 2 ? outer_caller : inner_caller};
  run("very many", part, many);

  /* And a good one again, where all of them were. */
  run("good again", part, &good);
  return swift_section - 1;
}
