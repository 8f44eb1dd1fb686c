// Functions that are to be the edges of windows; nothing here knows of the recorder. The first argument says what is done,
// the second how often (or with how many threads):
//
// plain N    N entries of 3 allocations in `work`; 2 outside after each
// threads N  N threads at once, each 1000 times: begin, 1 allocation in `work`, end
// jump N     N times: begin, 3 allocations, a function that is left by longjmp is the end
// pause N    N times: begin, 1 allocation, paused twice, 5, resumed once, 7, resumed, 2, end; then 4 outside, and a resume
// leave N    N times a function that makes 3 allocations and is left by longjmp; 2 outside after each
// restart N  N times: begin, 3 allocations, begin, 2, 4 in `manage`, end; then 1 outside
// restart-killed N  N times: begin, 3 allocations, begin, 2, end; then begin, 1 allocation, and it kills itself
// turn N     N times: tick, 3 allocations, tick; then 2 outside
// pick       calls an indirect function
// restarts N N threads at once, each 1000 times: begin, 1 allocation in `work`; then end
// signal N   N times a signal's handler is the window: begin, 1 allocation, end
// storm N    begin and end N hundred times a millisecond long while a timer's handler allocates; prints how often it did
// fork N     N forked children each with one entry of 3 allocations, then the parent with one
// exec N     goes on to itself as `plain N`
// library N  N times: loads ./libplugin.so, one entry of its own functions with 4 allocations, and unloads it
// both N     N times: as library, and 2 allocations of `work`
// late N     a thread is there when ./libplugin.so is loaded
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline))

APART static void *use(void *pointer) {
  __asm__ volatile("" ::"r"(pointer) : "memory");
  return pointer;
}
APART void begin(long number) { use((void *)number); }
APART void end(long number) { use((void *)(number + 1)); }
APART void work(int count) {
  for (int i = 0; i < count; i++) free(use(malloc(8 + i)));
}

static jmp_buf back;
APART void end_by_jump(void) {
  use(&back);
  longjmp(back, 1);
}

APART void hold(long number) { use((void *)(number + 2)); }
APART void go_on(long number) { use((void *)(number + 3)); }
APART void leave(void) {
  work(3);
  longjmp(back, 1);
}

APART void tick(void) { use((void *)5); }
void tock(void) __attribute__((alias("tick")));
APART void pick_one(void) { use((void *)6); }
APART void pick_two(void) { use((void *)7); }
static volatile int which;
void *choose(void) { return which ? (void *)pick_two : (void *)pick_one; }
void pick(void) __attribute__((ifunc("choose")));
APART void manage(void) {
  work(4);
  use((void *)4);
}

static void *restart_thread(void *argument) {
  for (long i = 0; i < 1000; i++) {
    begin(i);
    work(1);
  }
  return argument;
}

static void *thread(void *argument) {
  for (long i = 0; i < 1000; i++) {
    begin(i);
    work(1);
    end(i);
  }
  return argument;
}

static void handler(int signal) {
  begin(signal);
  work(1);
  end(signal);
}

static volatile long ticks;
APART void in_storm(void) {
  work(1);
  ticks++;
}
static void on_tick(int signal) {
  (void)signal;
  in_storm();
}

static void *wait_long(void *argument) {
  usleep(200000);
  return argument;
}

static void library(long count) {
  for (long i = 0; i < count; i++) {
    void *plugin = dlopen("./libplugin.so", RTLD_NOW);
    if (!plugin) exit(9);
    ((void (*)(void))dlsym(plugin, "plugin_entry"))();
    dlclose(plugin);
  }
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "plain";
  long count = argc > 2 ? atol(argv[2]) : 1;
  if (!strcmp(mode, "plain")) {
    for (long i = 0; i < count; i++) {
      begin(i);
      work(3);
      end(i);
      work(2);
    }
  } else if (!strcmp(mode, "threads")) {
    pthread_t threads[64];
    for (long i = 0; i < count; i++) pthread_create(&threads[i], NULL, thread, NULL);
    for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
  } else if (!strcmp(mode, "jump")) {
    for (volatile long i = 0; i < count; i++) {
      begin(i);
      work(3);
      if (!setjmp(back)) end_by_jump();
      work(2);
    }
  } else if (!strcmp(mode, "pause")) {
    for (long i = 0; i < count; i++) {
      begin(i);
      work(1);
      hold(i);
      hold(i);
      work(5);
      go_on(i);
      work(7);
      go_on(i);
      work(2);
      end(i);
      work(4);
      go_on(i);
    }
  } else if (!strcmp(mode, "restart")) {
    for (long i = 0; i < count; i++) {
      begin(i);
      work(3);
      begin(i);
      work(2);
      manage();
      end(i);
      work(1);
    }
  } else if (!strcmp(mode, "restart-killed")) {
    for (long i = 0; i < count; i++) {
      begin(i);
      work(3);
      begin(i);
      work(2);
      end(i);
    }
    begin(count);
    work(1);
    kill(getpid(), SIGKILL);
  } else if (!strcmp(mode, "pick")) {
    pick();
  } else if (!strcmp(mode, "turn")) {
    for (long i = 0; i < count; i++) {
      tick();
      work(3);
      tick();
      work(2);
    }
  } else if (!strcmp(mode, "restarts")) {
    pthread_t threads[64];
    for (long i = 0; i < count; i++) pthread_create(&threads[i], NULL, restart_thread, NULL);
    for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
    end(0);
  } else if (!strcmp(mode, "leave")) {
    for (volatile long i = 0; i < count; i++) {
      if (!setjmp(back)) leave();
      work(2);
    }
  } else if (!strcmp(mode, "signal")) {
    signal(SIGUSR1, handler);
    for (long i = 0; i < count; i++) {
      raise(SIGUSR1);
      work(2);
    }
  } else if (!strcmp(mode, "storm")) {
    signal(SIGALRM, on_tick);
    begin(0);
    struct itimerval timer = {{0, 1000}, {0, 1000}};
    struct timespec now, last;
    clock_gettime(CLOCK_MONOTONIC, &last);
    setitimer(ITIMER_REAL, &timer, NULL);
    // What allocates here is the handler alone, so that it never interrupts the allocator.
    do {
      for (int i = 0; i < 1000; i++) {
        begin(i);
        end(i);
      }
      clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - last.tv_sec) * 1000 + (now.tv_nsec - last.tv_nsec) / 1000000 < count * 100);
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
    end(0);
    printf("%ld\n", ticks);
  } else if (!strcmp(mode, "fork")) {
    for (long i = 0; i < count; i++) {
      pid_t child = fork();
      if (!child) {
        begin(i);
        work(3);
        end(i);
        _exit(0);
      }
      waitpid(child, NULL, 0);
    }
    begin(0);
    work(3);
    end(0);
  } else if (!strcmp(mode, "exec")) {
    execl("/proc/self/exe", "again", "plain", argv[2], (char *)NULL);
  } else if (!strcmp(mode, "library")) {
    library(count);
  } else if (!strcmp(mode, "both")) {
    for (long i = 0; i < count; i++) {
      library(1);
      work(2);
    }
  } else if (!strcmp(mode, "late")) {
    pthread_t other;
    pthread_create(&other, NULL, wait_long, NULL);
    library(count);
    pthread_join(other, NULL);
  }
  return 4;
}
