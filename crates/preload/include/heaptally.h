/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * heaptally.h: measurement windows of C and C++ programs that heaptally records.
 *
 *     #include "heaptally.h"
 *
 *     heaptally_window_begin("parse");
 *     for (i = 0; i < 1000; i++)
 *         parse(input);
 *     heaptally_window_iterations("parse", 1000);
 *     heaptally_window_end("parse");
 *
 * Run the program under `heaptally run -- ./program`: the recorder is a library that this command preloads, and the
 * functions below look for its table of functions, `heaptally_abi_v1`, by dlsym(). Without the recorder they have no
 * effect, and a call costs one load and one test.
 *
 * Does not: record by itself, define a symbol that other files could see, need a library of heaptally's to link
 * with, or need _GNU_SOURCE. Works in C89 and later, C++98 and later, with GCC and Clang, in executables of any kind.
 * In a statically linked program, and elsewhere than on Linux, there is no recorder and thus no effect.
 *
 * Linking: dlsym() is in libc from glibc 2.34 on; before that add -ldl.
 *
 * The first call in each source file looks the table up. Where there is no recorder, this search allocates twice with
 * glibc (the loader's error and its text), and it clears what dlerror() would have said.
 *
 * Without this header: the recorder also exports functions of the same names and types, so that a program may declare
 *
 *     extern void heaptally_window_begin(const char *name) __attribute__((weak));
 *
 * and call them if they are not null. That works in position-independent executables and in libraries. In a non-PIE
 * executable such a weak function stays null although the recorder is loaded; use the header there. A source file can
 * do one or the other, not both, since the functions here are static; a program can mix such files.
 */
#ifndef HEAPTALLY_H
#define HEAPTALLY_H

#include <stddef.h>
#include <stdint.h>

#if defined(__linux__)
#include <dlfcn.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The recorder's table. It begins with its own size in bytes; a function that lies beyond this size does not exist in
 * the recorder at hand. Later versions add functions at the end and change nothing before it.
 */
struct heaptally_abi_v1 {
    uint64_t size;
    void (*window_begin)(const char *name);
    void (*window_end)(const char *name);
    void (*thread_window_begin)(const char *name);
    void (*thread_window_end)(const char *name);
    void (*window_iterations)(const char *name, uint64_t iterations);
    void (*pause)(void);
    void (*resume)(void);
};

/* What the pointer below holds until someone has looked. */
static const struct heaptally_abi_v1 heaptally_detail_unknown = {0, 0, 0, 0, 0, 0, 0, 0};

/* The recorder's table; null once it is known that there is none. Two threads that look at once find the same. */
static const struct heaptally_abi_v1 *heaptally_detail_table = &heaptally_detail_unknown;

#if defined(__GNUC__)
__attribute__((noinline, cold, unused))
#endif
static const struct heaptally_abi_v1 *heaptally_detail_look_up(void)
{
    const struct heaptally_abi_v1 *table = 0;
#if defined(__linux__)
#if defined(RTLD_DEFAULT)
    void *const everywhere = RTLD_DEFAULT;
#else
    /* glibc hides the name behind _GNU_SOURCE; the value is part of its binary interface. */
    void *const everywhere = 0;
#endif
    void *const found = dlsym(everywhere, "heaptally_abi_v1");
#ifdef __cplusplus
    table = static_cast<const struct heaptally_abi_v1 *>(found);
#else
    table = (const struct heaptally_abi_v1 *)found;
#endif
    /* A search that succeeds clears glibc's error, too, and unlike dlerror() it allocates nothing for that. */
    if (!found)
#if defined(__GLIBC__)
        (void)dlsym(everywhere, "dlsym");
#else
        (void)dlerror();
#endif
#endif
    __atomic_store_n(&heaptally_detail_table, table, __ATOMIC_RELEASE);
    return table;
}

/* The table, if there is one that holds the first `needed` bytes. */
static __inline__ const struct heaptally_abi_v1 *heaptally_detail_find(size_t needed)
{
    const struct heaptally_abi_v1 *table = __atomic_load_n(&heaptally_detail_table, __ATOMIC_ACQUIRE);
    if (!table)
        return 0;
    if (table == &heaptally_detail_unknown) {
        table = heaptally_detail_look_up();
        if (!table)
            return 0;
    }
    return table->size >= needed ? table : 0;
}

/* Calls a function of the table, if it is there. Undefined at the end of this header. */
#define HEAPTALLY_DETAIL_CALL(function, arguments)                                                               \
    const struct heaptally_abi_v1 *const table = heaptally_detail_find(                                          \
        offsetof(struct heaptally_abi_v1, function) + sizeof(heaptally_detail_unknown.function));                \
    if (table)                                                                                                   \
    table->function arguments

/*
 * Opens a window, which counts the allocations of all threads. `name` is a string of the caller's, which is read now
 * and not kept. Windows nest; the innermost is the last opened. Beginning an open window only raises its depth.
 */
static __inline__ void heaptally_window_begin(const char *name)
{
    HEAPTALLY_DETAIL_CALL(window_begin, (name));
}

/* Closes the window of this name that was opened last. An end without a begin is counted and reported, not fatal. */
static __inline__ void heaptally_window_end(const char *name)
{
    HEAPTALLY_DETAIL_CALL(window_end, (name));
}

/*
 * Opens a window that counts the calling thread only, and goes before a window that counts all threads. It is closed at
 * the thread's end at the latest, and then the report says so.
 */
static __inline__ void heaptally_thread_window_begin(const char *name)
{
    HEAPTALLY_DETAIL_CALL(thread_window_begin, (name));
}

/* Closes the calling thread's window of this name. */
static __inline__ void heaptally_thread_window_end(const char *name)
{
    HEAPTALLY_DETAIL_CALL(thread_window_end, (name));
}

/*
 * Says that `iterations` more iterations ran in the window: the report divides by the sum of these calls.
 * A window for which it is never called is divided by the number of its entries.
 */
static __inline__ void heaptally_window_iterations(const char *name, uint64_t iterations)
{
    HEAPTALLY_DETAIL_CALL(window_iterations, (name, iterations));
}

/*
 * A signal handler that interrupts one of these functions, or malloc, must return: after a siglongjmp() out of it the
 * thread counts as still inside, and what it allocates from then on is reported as not recorded.
 */

/* From here on the calling thread's allocations are not recorded. Nests. */
static __inline__ void heaptally_pause(void)
{
    HEAPTALLY_DETAIL_CALL(pause, ());
}

/* Undoes one heaptally_pause(). One too many is counted and reported, not fatal. */
static __inline__ void heaptally_resume(void)
{
    HEAPTALLY_DETAIL_CALL(resume, ());
}

#undef HEAPTALLY_DETAIL_CALL

#ifdef __cplusplus
}
#endif

#endif
