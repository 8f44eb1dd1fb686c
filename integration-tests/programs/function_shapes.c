// Functions whose first instructions are of every kind, each called with the processor stopping after every instruction
// (trap flag), and an allocation made by the signal's handler there: in the moved instructions too, in which an unwinder
// finds no information. Before and after, the registers that a call must not change, and those that carry arguments, are
// compared; each function returns its number times its argument. Prints the number of stops.
//
// outer_begin .. outer_end: the whole; shape_* are to be edges of another window, which shape_end closes.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHAPE(name, body)                                                                          \
  long name(long);                                                                                 \
  __asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name                \
          ":\n.cfi_startproc\n" body ".cfi_endproc\n.size " #name ", .-" #name "\n")

long shape_variable = 2;
long shape_helper(long argument);
long (*shape_pointer)(long) = shape_helper;

SHAPE(shape_helper, "lea (%rdi,%rdi), %rax\nret\n");
// The frame pointer, and more pushes.
SHAPE(shape_push,
      "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\nmov %rsp, %rbp\n.cfi_def_cfa_register %rbp\n"
      "push %r15\n.cfi_offset %r15, -24\npush %rbx\nmov %rdi, %r15\nmov $3, %ebx\nimul %r15, %rbx\nmov %rbx, %rax\n"
      "pop %rbx\npop %r15\npop %rbp\n.cfi_def_cfa %rsp, 8\nret\n");
SHAPE(shape_sub, "sub $40, %rsp\n.cfi_adjust_cfa_offset 40\nlea (%rdi,%rdi,2), %rax\nadd $40, %rsp\n"
                 ".cfi_adjust_cfa_offset -40\nret\n");
SHAPE(shape_relative, "mov shape_variable(%rip), %rax\nimul %rdi, %rax\nret\n");
SHAPE(shape_relative_immediate, "cmpl $7, shape_variable(%rip)\nje 1f\nlea (%rdi,%rdi), %rax\n1: ret\n");
SHAPE(shape_branch, "test %edi, %edi\nje 1f\njs 1f\nlea (%rdi,%rdi,4), %rax\nret\n1: xor %eax, %eax\nret\n");
SHAPE(shape_call, "call shape_helper\nadd %rdi, %rax\nret\n");
SHAPE(shape_push_call, "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx, -16\ncall shape_helper\n"
                       "pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n");
SHAPE(shape_pointer_call, "call *shape_pointer(%rip)\nadd %rdi, %rax\nret\n");
SHAPE(shape_jump, "jmp shape_helper\nnop\nnop\nnop\n");
SHAPE(shape_long_jump, "add $1, %rdi\n.byte 0xe9\n.long shape_helper - 1f\n1:\n");
SHAPE(shape_marked, "endbr64\npush %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx, -16\nxor %ebx, %ebx\n"
                    "lea (%rdi,%rdi), %rax\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n");
SHAPE(shape_nops, ".byte 0x0f, 0x1f, 0x44, 0, 0\nlea (%rdi,%rdi), %rax\nret\n");
SHAPE(shape_counter, "mov %rdi, %rcx\njrcxz 1f\nlea (%rdi,%rdi), %rax\nret\n1: xor %eax, %eax\nret\n");
// Reads its arguments' registers and flags that no C function is given.
SHAPE(shape_flags, "setc %al\nmovzbl %al, %eax\nadd %rdi, %rax\nadd %r10, %rax\nadd %r11, %rax\nret\n");
long shape_end(long);
SHAPE(shape_end, "mov %rdi, %rax\nnop\nnop\nret\n");

__attribute__((noinline)) void outer_begin(void) { __asm__ volatile("nop; nop; nop; nop; nop"); }
__attribute__((noinline)) void outer_end(void) { __asm__ volatile("nop; nop; nop; nop; nop; nop"); }

static volatile long stops;

__attribute__((noinline)) static void stopped(int signal) {
  (void)signal;
  stops++;
  void *block = malloc(16);
  __asm__ volatile("" ::"r"(block) : "memory");
  free(block);
}

// Calls with known values in all registers; nothing of them but rax, rcx and what the function itself uses may change.
long call_stepping(long (*function)(long), long argument, unsigned long long *vectors, int stepping);
__asm__(".text\n.globl call_stepping\n.type call_stepping, @function\ncall_stepping:\n.cfi_startproc\n"
        "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\nmov %rsp, %rbp\n.cfi_def_cfa_register %rbp\n"
        "push %rbx\n.cfi_offset %rbx, -24\npush %r12\n.cfi_offset %r12, -32\n"
        "mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %r12\n"
        "movups (%r12), %xmm0\nmovups 16(%r12), %xmm1\nmovups 32(%r12), %xmm7\nmovups 48(%r12), %xmm15\n"
        "mov $5, %r10\nmov $6, %r11\nmov $7, %r8\nmov $8, %r9\nmov $9, %esi\nmov $10, %edx\n"
        "test %ecx, %ecx\nje 1f\npushf\norl $0x100, (%rsp)\npopf\n"
        "1: stc\ncall *%rax\n"
        "pushf\nandl $~0x100, (%rsp)\npopf\n"
        "movups %xmm0, (%r12)\nmovups %xmm1, 16(%r12)\nmovups %xmm7, 32(%r12)\nmovups %xmm15, 48(%r12)\n"
        "lea (%r8,%r9), %rcx\nadd %rsi, %rcx\nadd %rdx, %rcx\nadd %r10, %rcx\nadd %r11, %rcx\nmov %rcx, 64(%r12)\n"
        "pop %r12\npop %rbx\npop %rbp\n.cfi_def_cfa %rsp, 8\nret\n.cfi_endproc\n"
        ".size call_stepping, .-call_stepping\n");

static int check(const char *name, long (*function)(long), long argument, long expected) {
  for (int stepping = 0; stepping < 2; stepping++) {
    unsigned long long vectors[9], before[8];
    for (int i = 0; i < 8; i++) before[i] = vectors[i] = 0x0123456789abcdefULL * (i + 1);
    long found = call_stepping(function, argument, vectors, stepping);
    if (found != expected || memcmp(vectors, before, sizeof before) || vectors[8] != 7 + 8 + 9 + 10 + 5 + 6) {
      fprintf(stderr, "%s: %ld, not %ld; sum of registers %llu\n", name, found, expected, vectors[8]);
      return 1;
    }
    shape_end(0);
  }
  return 0;
}

// The whole of the wide vector registers, where the processor has them.
int call_wide(long (*function)(long), unsigned char *vectors);
__asm__(".text\n.globl call_wide\n.type call_wide, @function\ncall_wide:\n.cfi_startproc\n"
        "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx, -16\nmov %rdi, %rax\nmov %rsi, %rbx\n"
        "vmovups (%rbx), %ymm0\nvmovups 32(%rbx), %ymm7\nvmovups 64(%rbx), %ymm8\nvmovups 96(%rbx), %ymm15\n"
        "call *%rax\n"
        "vmovups %ymm0, (%rbx)\nvmovups %ymm7, 32(%rbx)\nvmovups %ymm8, 64(%rbx)\nvmovups %ymm15, 96(%rbx)\n"
        "vzeroupper\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size call_wide, .-call_wide\n");

static int check_wide(void) {
  unsigned char vectors[128], before[128];
  for (int i = 0; i < 128; i++) before[i] = vectors[i] = (unsigned char)(i * 7 + 1);
  if (!__builtin_cpu_supports("avx")) return 0;
  call_wide(shape_push, vectors);
  shape_end(0);
  if (!memcmp(vectors, before, sizeof before)) return 0;
  fprintf(stderr, "wide registers changed\n");
  return 1;
}

int main(void) {
  struct sigaction action = {.sa_handler = stopped};
  sigaction(SIGTRAP, &action, NULL);
  outer_begin();
  int wrong = check("push", shape_push, 5, 15) + check("sub", shape_sub, 5, 15) +
              check("relative", shape_relative, 5, 10) +
              check("relative_immediate", shape_relative_immediate, 5, 10) +
              check("branch", shape_branch, 5, 25) + check("branch taken", shape_branch, 0, 0) +
              check("call", shape_call, 5, 15) + check("push_call", shape_push_call, 5, 10) +
              check("pointer_call", shape_pointer_call, 5, 15) + check("jump", shape_jump, 5, 10) +
              check("long_jump", shape_long_jump, 5, 12) + check("marked", shape_marked, 5, 10) +
              check("nops", shape_nops, 5, 10) + check("counter", shape_counter, 5, 10) +
              check("counter taken", shape_counter, 0, 0) + check("flags", shape_flags, 5, 17) +
              check_wide();
  outer_end();
  printf("%ld\n", stops);
  return wrong;
}
