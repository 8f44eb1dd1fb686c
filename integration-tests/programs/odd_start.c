/* A program that does odd things to itself before its window of 4 allocations: odd_start WHAT... */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "heaptally.h"

static void *volatile sink;

__attribute__((noinline)) static void work(void) {
    for (int i = 0; i < 4; i++) {
        sink = malloc(16);
        free(sink);
    }
}

static void odd(const char *what) {
    if (strcmp(what, "close-all") == 0) {
        for (int i = 3; i < 1024; i++) close(i);
    } else if (strcmp(what, "no-files") == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_NOFILE, &none);
    } else if (strcmp(what, "no-file-size") == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_FSIZE, &none);
    } else if (strcmp(what, "no-stack") == 0) {
        struct rlimit little = {65536, 65536};
        setrlimit(RLIMIT_STACK, &little);
    } else if (strcmp(what, "undumpable") == 0) {
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    } else if (strcmp(what, "no-new-privileges") == 0) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    } else if (strcmp(what, "chdir") == 0) {
        if (chdir("/") != 0) exit(99);
    } else if (strcmp(what, "clear-environment") == 0) {
        clearenv();
    } else if (strcmp(what, "preload-none") == 0) {
        setenv("LD_PRELOAD", "", 1);
    } else {
        exit(98);
    }
}

int main(int count, char **words) {
    if (count > 1 && strcmp(words[1], "exec") == 0) {
        odd(words[2]);
        execv(words[3], words + 3);
        return 97;
    }
    for (int i = 1; i < count; i++) odd(words[i]);
    heaptally_window_begin("w");
    work();
    heaptally_window_end("w");
    return 5;
}
