// Children of every kind. Usage: children KIND [N]
//
// The program allocates 5 blocks in `parent_work`, makes its child (N of them, one after the other), waits, and allocates
// 6 blocks in `parent_after`. A child that stays this program allocates 7 blocks in `child_work`; one that is started
// anew (`children worker`) 11 in `worker_work`. The children's ends are printed.
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
void heaptally_window_begin(const char *) __attribute__((weak));
void heaptally_window_end(const char *) __attribute__((weak));

static void *volatile sink;

#define WORK(name, count)                                    \
    __attribute__((noinline)) static void name(void) {       \
        for (int at = 0; at < (count); at++) {               \
            sink = malloc(16 + at);                          \
            free(sink);                                      \
        }                                                    \
    }

WORK(parent_work, 5)
WORK(parent_after, 6)
WORK(child_work, 7)
WORK(worker_work, 11)

static char *self;
static char *worker[] = {"children", "worker", NULL};

static void *kept;

static void in_child(void) {
    child_work();
    free(kept); // The parent's.
    _exit(3);
}

static int run_worker(void *unused) {
    (void)unused;
    execve(self, worker, environ);
    _exit(99);
}

static pid_t make(const char *kind, char *stack) {
    char command[4096];
    snprintf(command, sizeof command, "exec '%s' worker", self);
    pid_t pid = -1;
    if (!strcmp(kind, "fork")) {
        if ((pid = fork()) == 0) in_child();
    } else if (!strcmp(kind, "raw_fork")) {
        if ((pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) == 0) in_child();
    } else if (!strcmp(kind, "quiet_fork")) {
        if ((pid = fork()) == 0) _exit(3);
    } else if (!strcmp(kind, "outliving_fork")) {
        if (fork() == 0) usleep(300000);
        _exit(5);
    } else if (!strcmp(kind, "window_fork")) {
        if (heaptally_window_begin) heaptally_window_begin("outer");
        if ((pid = fork()) == 0) {
            child_work();
            if (heaptally_window_begin) heaptally_window_begin("inner");
            child_work();
            if (heaptally_window_end) heaptally_window_end("inner");
            _exit(3);
        }
        parent_work();
        if (heaptally_window_end) heaptally_window_end("outer");
    } else if (!strcmp(kind, "grandchild")) {
        if ((pid = fork()) == 0) {
            child_work();
            pid_t inner = fork();
            if (inner == 0) in_child();
            int status = 0;
            waitpid(inner, &status, 0);
            _exit(WEXITSTATUS(status));
        }
    } else if (!strcmp(kind, "other_user")) {
        // As servers do that drop their privileges; who has none becomes nobody in a namespace of its own.
        if (geteuid() == 0 ? setgid(65534) || setuid(65534) : unshare(CLONE_NEWUSER)) exit(97);
        if ((pid = fork()) == 0) {
            pid_t inner = fork();
            if (inner == 0) in_child();
            int status = 0;
            waitpid(inner, &status, 0);
            child_work();
            _exit(WEXITSTATUS(status));
        }
    } else if (!strcmp(kind, "other_root")) {
        if (geteuid() != 0 && unshare(CLONE_NEWUSER)) exit(97);
        if (chroot(".")) exit(97);
        if ((pid = fork()) == 0) in_child();
    } else if (!strcmp(kind, "fork_exec")) {
        if ((pid = fork()) == 0) run_worker(NULL);
    } else if (!strcmp(kind, "raw_fork_exec")) {
        if ((pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) == 0) run_worker(NULL);
    } else if (!strcmp(kind, "fork_work_exec")) {
        if ((pid = fork()) == 0) {
            child_work();
            run_worker(NULL);
        }
    } else if (!strcmp(kind, "vfork_exec")) {
        if ((pid = vfork()) == 0) {
            execve(self, worker, environ);
            _exit(99);
        }
    } else if (!strcmp(kind, "vfork_fail")) {
        if ((pid = vfork()) == 0) {
            execve("/no/such/program", worker, environ);
            _exit(98);
        }
    } else if (!strcmp(kind, "clone_vfork")) {
        pid = clone(run_worker, stack + 65536, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    } else if (!strcmp(kind, "spawn")) {
        if (posix_spawn(&pid, self, NULL, NULL, worker, environ) != 0) pid = -1;
    } else if (!strcmp(kind, "spawn_fail")) {
        printf("spawn %d\n", posix_spawn(&pid, "/no/such/program", NULL, NULL, worker, environ));
        pid = 0;
    } else if (!strcmp(kind, "spawnp")) {
        if (posix_spawnp(&pid, self, NULL, NULL, worker, environ) != 0) pid = -1;
    } else if (!strcmp(kind, "system")) {
        printf("system %d\n", WEXITSTATUS(system(command)));
        pid = 0;
    } else if (!strcmp(kind, "popen")) {
        char line[64] = "";
        FILE *pipe = popen(command, "r");
        fgets(line, sizeof line, pipe);
        printf("popen %s", line);
        printf("pclose %d\n", WEXITSTATUS(pclose(pipe)));
        pid = 0;
    } else {
        fprintf(stderr, "no kind %s\n", kind);
        exit(2);
    }
    return pid;
}

int main(int argc, char **argv) {
    (void)argc;
    self = realpath("/proc/self/exe", NULL);
    if (!strcmp(argv[1], "worker")) {
        worker_work();
        printf("worker\n");
        return 4;
    }
    setvbuf(stdout, NULL, _IONBF, 0);
    kept = malloc(100);
    char *stack = malloc(65536);
    int count = argc > 2 ? atoi(argv[2]) : 1;
    parent_work();
    for (int at = 0; at < count; at++) {
        pid_t pid = make(argv[1], stack);
        int status = 0;
        if (pid > 0) {
            waitpid(pid, &status, 0);
            printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status));
        } else if (pid < 0) {
            printf("no child: %s\n", strerror(errno));
        }
    }
    parent_after();
    free(stack);
    return 5;
}
