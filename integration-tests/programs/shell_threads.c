// `system` and `popen` in several threads, one of them cancelled, while another thread changes variables and reads them.
// At the end the environment is the program's own. Exit code: 0, or how many things were not as they should be.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VARIABLES = 50, CALLS = 15 };

extern char **environ;
static int faults;

static void fault(int is_fault, const char *what) {
  if (!is_fault) return;
  printf("%s\n", what);
  __atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
}

static void *cancelled(void *unused) {
  (void)unused;
  system("exec sleep 100");
  return NULL;
}

static void *shells(void *unused) {
  (void)unused;
  for (int at = 0; at < CALLS; at++) fault(system("exit 7") != 7 << 8, "system");
  return NULL;
}

static void *pipes(void *unused) {
  (void)unused;
  for (int at = 0; at < CALLS; at++) {
    char line[16] = "";
    FILE *pipe = popen("echo word; exit 5", "r");
    fault(!fgets(line, sizeof line, pipe) || strcmp(line, "word\n") != 0, "popen");
    fault(pclose(pipe) != 5 << 8, "pclose");
  }
  return NULL;
}

int main(void) {
  pthread_t waiting, threads[4];
  void *result;
  pthread_create(&waiting, NULL, cancelled, NULL);
  usleep(100000);
  pthread_cancel(waiting);
  pthread_join(waiting, &result);
  fault(result != PTHREAD_CANCELED, "not cancelled");
  struct sigaction action;
  sigaction(SIGINT, NULL, &action);
  fault(action.sa_handler != SIG_DFL, "SIGINT");
  char name[16];
  for (int at = 0; at < VARIABLES; at++) {
    snprintf(name, sizeof name, "V%d", at);
    setenv(name, "old", 1);
  }
  for (int at = 0; at < 4; at++) pthread_create(&threads[at], NULL, at % 2 ? pipes : shells, NULL);
  for (int round = 0; round < 500; round++) {
    snprintf(name, sizeof name, "V%d", round % VARIABLES);
    setenv(name, "new", 1);
    const char *value = getenv(name);
    fault(!value || strcmp(value, "new") != 0, "getenv");
    fault(!getenv("PATH"), "PATH");
    usleep(100);
  }
  for (int at = 0; at < 4; at++) pthread_join(threads[at], NULL);
  int variables = 0;
  for (char **entry = environ; *entry; entry++) {
    variables += strncmp(*entry, "V", 1) == 0 && strstr(*entry, "=new") != NULL;
    fault(strncmp(*entry, "HEAPTALLY_SEGMENT=", 18) == 0 || strncmp(*entry, "LD_PRELOAD", 10) == 0, *entry);
  }
  fault(variables != VARIABLES, "variables");
  fault(system("test \"$(env | grep -c '^V.*=new$')\" = 50") != 0, "variables of a child");
  return faults;
}
