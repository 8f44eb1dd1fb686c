// A stand-in with the outside of Swift's package-benchmark: a program with benchmarks, and the tool that starts it.
//
//   probe --filter NAME                 runs NAME by hand; without --filter both benchmarks
//   probe --input-fd N --output-fd N    answers requests: 8 bytes of length, JSON
//   probe tool PROBE REQUEST…           starts PROBE once to list and once for each REQUEST, and other programs between
//
// The entries of `pre` and `post` are where a measurement begins and ends; the test gives them the names that they have in Swift.
#define _GNU_SOURCE
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
#define APART __attribute__((noinline, noclone, used))

static void *volatile kept;
static int is_sampling;

APART static void allocate(size_t size, int times) {
  for (int i = 0; i < times; i++) {
    kept = malloc(size);
    free(kept);
  }
}

// What the harness takes for itself: 8 blocks before a measurement and behind it, in which it reads counters of the system.
APART static void read_counters(void) { allocate(512, 8); }
APART static void startSampling(void) {
  is_sampling = 1;
  allocate(64, 4);
}
APART static void pre(int is_explicit) {
  if (is_explicit >= 0) read_counters();
  startSampling();
}
APART static void post(int is_explicit) {
  is_sampling = 0;
  if (is_explicit >= 0) read_counters();
}

APART static void plain(void) { allocate(24, 3); }
APART static void explicit_start(void) {
  allocate(100, 5); // set-up
  pre(1);
  allocate(24, 2);
  post(1);
  allocate(100, 7); // tear-down
}

APART static void run(const char *name) {
  allocate(2000, 2); // warm-up, without measurement
  for (int i = 0; i < 10; i++) {
    pre(0);
    if (!strncmp(name, "explicit", 8))
      explicit_start();
    else {
      plain();
      post(0);
    }
  }
}

static void put(int fd, const char *text) {
  uint64_t length = strlen(text);
  if (write(fd, &length, sizeof length) != sizeof length) exit(3);
  for (size_t at = 0; at < length;) {
    ssize_t done = write(fd, text + at, length - at);
    if (done <= 0) exit(4);
    at += (size_t)done;
  }
}

static char *get(int fd) {
  uint64_t length = 0;
  if (read(fd, &length, sizeof length) != sizeof length) exit(5);
  char *text = calloc(length + 1, 1);
  for (size_t at = 0; at < length;) {
    ssize_t count = read(fd, text + at, length - at);
    if (count <= 0) exit(6);
    at += (size_t)count;
  }
  return text;
}

static int serve(int in, int out) {
  for (;;) {
    char *request = get(in);
    if (!strcmp(request, "{\"end\":{}}")) return 0;
    if (strstr(request, "\"run\"")) run(strstr(request, "\"name\":\"explicit") ? "explicit" : "plain");
    put(out, "{\"end\":{}}");
    free(request);
  }
}

static int start(char *const *words) {
  pid_t child;
  if (posix_spawn(&child, words[0], NULL, NULL, words, environ)) exit(7);
  return child;
}

static void finish(pid_t child) {
  int status = -1;
  if (waitpid(child, &status, 0) != child || status) exit(8);
}

static void ask(char *probe, const char *request, int is_late) {
  int to[2], from[2];
  char in[16], out[16];
  if (pipe(to) || pipe(from)) exit(9);
  snprintf(in, sizeof in, "%d", to[0]);
  snprintf(out, sizeof out, "%d", from[1]);
  char *words[] = {probe, "--input-fd", in, "--output-fd", out, "--quiet", "false", NULL};
  pid_t child = start(words);
  close(to[0]);
  close(from[1]);
  if (is_late) usleep(300000);
  put(to[1], request);
  free(get(from[0]));
  put(to[1], "{\"end\":{}}");
  finish(child);
  close(to[1]);
  close(from[0]);
}

static int tool(char *probe, char **requests) {
  ask(probe, "{\"list\":{}}", 0);
  char *compiler[] = {"/bin/sh", "-c", "/bin/true; exec /bin/true", NULL};
  finish(start(compiler));
  for (int i = 0; requests[i]; i++) ask(probe, requests[i], i == 0);
  return 0;
}

int main(int count, char **words) {
  if (count > 2 && !strcmp(words[1], "tool")) return tool(words[2], words + 3);
  // As `swift package` does: a child that starts the tool.
  if (count > 2 && !strcmp(words[1], "package")) {
    words[1] = "tool";
    if (fork() == 0) {
      execv(words[0], words);
      exit(10);
    }
    int status = -1;
    wait(&status);
    return status != 0;
  }
  const char *filter = NULL;
  int in = -1, out = -1;
  for (int i = 1; i + 1 < count; i++) {
    if (!strcmp(words[i], "--filter")) filter = words[i + 1];
    if (!strcmp(words[i], "--input-fd")) in = atoi(words[i + 1]);
    if (!strcmp(words[i], "--output-fd")) out = atoi(words[i + 1]);
  }
  if (in >= 0) return serve(in, out);
#ifndef NO_HELP
  puts("The input pipe filedescriptor used for communication with host process.");
#endif
  const char *names[] = {"plain", "explicit"};
  for (int i = 0; i < 2; i++)
    if (!filter || !strcmp(filter, names[i])) run(names[i]);
  return 0;
}
