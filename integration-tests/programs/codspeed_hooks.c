/* A program with functions as CodSpeed's library has them, which believes not to be measured. -DPLUGIN: the same as a library that
 * -DLOADER's program loads. -DCOPY: with functions of a harness that the library measures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef LOADER

#include <dlfcn.h>

int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library || argc < 2)
        return puts(dlerror()), 1;
    ((void (*)(void))dlsym(library, "run_all"))();
    return 0;
}

#else

struct hooks { int calls; };

#define HOOK __attribute__((noipa))

HOOK _Bool instrument_hooks_is_instrumented(struct hooks *hooks) { return hooks->calls < 0 && getenv("NEVER"); }
HOOK unsigned char instrument_hooks_start_benchmark(struct hooks *hooks) { return hooks->calls++, 0; }
HOOK unsigned char instrument_hooks_stop_benchmark(struct hooks *hooks) { return hooks->calls++, 0; }
HOOK unsigned char instrument_hooks_set_executed_benchmark(struct hooks *hooks, int pid, const char *uri) {
    return hooks->calls += pid > 0 && strlen(uri) > 0, 0;
}
/* The older name. */
HOOK unsigned char instrument_hooks_executed_benchmark(struct hooks *hooks, int pid, const char *uri) {
    return instrument_hooks_set_executed_benchmark(hooks, pid, uri);
}

#ifdef COPY
/* A copy of Google Benchmark, as CodSpeed has one, that it measures. */
HOOK void _ZN9benchmark5State16StartKeepRunningEv(long *state) { state[0]++; }
HOOK void _ZN9benchmark5State17FinishKeepRunningEv(long *state) { state[1]++; }
#endif

HOOK void allocate(int count) {
    for (int i = 0; i < count; i++) {
        void *block = malloc(64);
        __asm__ volatile("" : "+r"(block));
        free(block);
    }
}
HOOK int measured(int count) { return allocate(count), 0; }
HOOK int outside(int count) { return allocate(count), 0; }

static struct hooks hooks;

static void benchmark(const char *uri, int count, _Bool is_old) {
    outside(10);
    if (!instrument_hooks_is_instrumented(&hooks)) {
        printf("Checked: %s\n", uri ? uri : "");
        return;
    }
#ifdef COPY
    static long state[64];
    printf("%s\n", "Codspeed mode: ");
    _ZN9benchmark5State16StartKeepRunningEv(state);
#endif
    instrument_hooks_start_benchmark(&hooks);
    measured(count);
#ifdef COPY
    _ZN9benchmark5State17FinishKeepRunningEv(state);
#endif
    instrument_hooks_stop_benchmark(&hooks);
    outside(5);
    if (uri && is_old)
        instrument_hooks_executed_benchmark(&hooks, 1, uri);
    else if (uri)
        instrument_hooks_set_executed_benchmark(&hooks, 1, uri);
    outside(3);
}

void run_all(void) {
    char longer[1100];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    benchmark("a.c::one", 6, 0);
    benchmark("a.c::two", 12, 1);
    benchmark("a.c::one", 6, 0);
    benchmark("a.c::one", 7, 1);
    benchmark(longer, 1, 0);
    if (getenv("UNNAMED")) {
        benchmark(NULL, 2, 0);
        benchmark(NULL, 2, 0);
    }
    /* Left without an end. */
    instrument_hooks_start_benchmark(&hooks);
    measured(1);
    benchmark("a.c::last", 6, 0);
}

#ifndef PLUGIN
int main(void) {
    run_all();
    return 0;
}
#endif
#endif
