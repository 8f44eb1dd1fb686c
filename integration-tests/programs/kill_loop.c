// A window that is entered for ever, for a kill at any moment: 7 mallocs per entry in entry_work. The program keeps its
// own count of finished entries in a page of the file argv[1], as two words: its pid, then the count.
#include <fcntl.h>
#include <heaptally.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void *volatile sink;

__attribute__((noinline)) static void entry_work(void) {
  for (int i = 0; i < 7; i++) {
    void *block = malloc(16 + (size_t)i * 40);
    sink = block;
    free(block);
  }
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096)) return 2;
  volatile uint64_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) return 2;
  __atomic_store_n(&page[0], (uint64_t)getpid(), __ATOMIC_RELEASE);
  for (;;) {
    heaptally_window_begin("w");
    entry_work();
    heaptally_window_end("w");
    __atomic_store_n(&page[1], page[1] + 1, __ATOMIC_RELEASE);
  }
}
