// Counts the calls of each allocation function, as an independent witness: it stands behind the recorder in LD_PRELOAD
// and sees what the recorder passes on.
//
// It allocates nothing and calls nothing that might, beside dlsym. The counts lie in a shared mapping of the file
// "$COUNTER_OUT.<pid>", so that they are right however the process ends; a forked child begins a file of its own, and so
// does an image that follows another in a process: "$COUNTER_OUT.<pid>.<n>". The file is one page: the magic number, the
// pid, the counts, the parent's pid, the path of the program.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MALLOC, CALLOC, REALLOC, MEMALIGN, ALIGNED_ALLOC, POSIX_MEMALIGN, VALLOC, PVALLOC, FREE, FUNCTIONS };

struct page {
  uint64_t magic; // 0x7265746e756f63, "counter"
  uint64_t pid;
  uint64_t counts[FUNCTIONS];
  uint64_t early; // calls while the real functions were looked up
  uint64_t parent;
  char program[2048];
};

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void *(*real_memalign)(size_t, size_t);
static void *(*real_aligned_alloc)(size_t, size_t);
static int (*real_posix_memalign)(void **, size_t, size_t);
static void *(*real_valloc)(size_t);
static void *(*real_pvalloc)(size_t);
static void (*real_free)(void *);

// In a page that a forked child finds empty.
struct state {
  struct page *page;
};
static struct state *state;
static struct page unwritten; // counts here where no file can be made
static int resolving;         // 0 not yet, 1 in progress, 2 done
static char early[65536] __attribute__((aligned(16)));
static size_t early_used;

static long raw(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

static const char *variable(const char *name) {
  extern char **environ;
  for (char **entry = environ; entry && *entry; entry++) {
    size_t i = 0;
    while (name[i] && (*entry)[i] == name[i]) i++;
    if (!name[i] && (*entry)[i] == '=') return *entry + i + 1;
  }
  return NULL;
}

// Writes `number` behind `length` bytes of `path`; the new length.
static size_t append_number(char *path, size_t length, uint64_t number) {
  char digits[24];
  int count = 0;
  for (uint64_t rest = number; rest || !count; rest /= 10) digits[count++] = (char)('0' + rest % 10);
  while (count) path[length++] = digits[--count];
  path[length] = 0;
  return length;
}

static struct page *open_page(void) {
  const char *prefix = variable("COUNTER_OUT");
  char path[1024];
  size_t length = 0;
  if (!prefix) return &unwritten;
  while (prefix[length] && length < sizeof path - 64) {
    path[length] = prefix[length];
    length++;
  }
  path[length++] = '.';
  uint64_t pid = (uint64_t)raw(SYS_getpid, 0, 0, 0, 0, 0, 0);
  length = append_number(path, length, pid);
  long fd = raw(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666, 0, 0);
  for (uint64_t image = 1; fd == -EEXIST; image++) {
    path[length] = '.';
    append_number(path, length + 1, image);
    fd = raw(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666, 0, 0);
  }
  if (fd < 0) return &unwritten;
  raw(SYS_ftruncate, fd, 4096, 0, 0, 0, 0);
  long at = raw(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  raw(SYS_close, fd, 0, 0, 0, 0, 0);
  if (at < 0 && at > -4096) return &unwritten;
  struct page *page = (struct page *)at;
  page->pid = pid;
  page->parent = (uint64_t)raw(SYS_getppid, 0, 0, 0, 0, 0, 0);
  long got = raw(SYS_readlink, (long)"/proc/self/exe", (long)page->program, sizeof page->program - 1, 0, 0, 0);
  page->program[got > 0 ? got : 0] = 0;
  page->magic = 0x7265746e756f63;
  return page;
}

static void resolve(void) {
  int expected = 0;
  if (__atomic_compare_exchange_n(&resolving, &expected, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    int saved = errno;
    real_malloc = dlsym(RTLD_NEXT, "malloc");
    real_calloc = dlsym(RTLD_NEXT, "calloc");
    real_realloc = dlsym(RTLD_NEXT, "realloc");
    real_memalign = dlsym(RTLD_NEXT, "memalign");
    real_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    real_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    real_valloc = dlsym(RTLD_NEXT, "valloc");
    real_pvalloc = dlsym(RTLD_NEXT, "pvalloc");
    real_free = dlsym(RTLD_NEXT, "free");
    long at = raw(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    raw(SYS_madvise, at, 4096, MADV_WIPEONFORK, 0, 0, 0);
    state = (struct state *)at;
    state->page = open_page();
    errno = saved;
    __atomic_store_n(&resolving, 2, __ATOMIC_RELEASE);
  }
}

static int is_early(const void *block) { return (const char *)block >= early && (const char *)block < early + sizeof early; }

static void *early_block(size_t size) {
  size_t at = __atomic_fetch_add(&early_used, (size + 15) & ~(size_t)15, __ATOMIC_RELAXED);
  unwritten.early++;
  return at + size <= sizeof early ? early + at : NULL;
}

// Counts a call; 0 while the real functions are being looked up.
static int count(int function) {
  int stage = __atomic_load_n(&resolving, __ATOMIC_ACQUIRE);
  if (stage != 2) {
    if (stage == 1) return 0;
    resolve();
  }
  struct page *page = state->page;
  if (!page) { // a forked child
    page = open_page();
    state->page = page;
  }
  __atomic_fetch_add(&page->counts[function], 1, __ATOMIC_RELAXED);
  return 1;
}

void *malloc(size_t size) { return count(MALLOC) ? real_malloc(size) : early_block(size); }
void *calloc(size_t number, size_t size) { return count(CALLOC) ? real_calloc(number, size) : early_block(number * size); }

void *realloc(void *block, size_t size) {
  if (!count(REALLOC)) return block ? NULL : early_block(size);
  if (!is_early(block)) return real_realloc(block, size);
  char *moved = real_malloc(size);
  size_t available = (size_t)(early + sizeof early - (char *)block);
  for (size_t i = 0; moved && i < size && i < available; i++) moved[i] = ((char *)block)[i];
  return moved;
}

void *memalign(size_t alignment, size_t size) { return count(MEMALIGN) ? real_memalign(alignment, size) : NULL; }
void *aligned_alloc(size_t alignment, size_t size) { return count(ALIGNED_ALLOC) ? real_aligned_alloc(alignment, size) : NULL; }
int posix_memalign(void **block, size_t alignment, size_t size) {
  return count(POSIX_MEMALIGN) ? real_posix_memalign(block, alignment, size) : ENOMEM;
}
void *valloc(size_t size) { return count(VALLOC) ? real_valloc(size) : NULL; }
void *pvalloc(size_t size) { return count(PVALLOC) ? real_pvalloc(size) : NULL; }

void free(void *block) {
  if (!block || is_early(block)) return;
  if (count(FREE)) real_free(block);
}
