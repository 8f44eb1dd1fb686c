/* As many different stacks as it is asked for: every way of `depth` steps to the left or right, one allocation each.
 *
 * RENAMED: a function that is in every stack at every second place has another name. CALLED: it has one more caller.
 * Built with -O1 -fno-optimize-sibling-calls, so that every call is a frame. */
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noclone))
#ifdef RENAMED
#define step walk
#endif

static void *volatile sink;

static void step(int depth, unsigned way);

NOINLINE static void leaf(void) {
    sink = malloc(8);
    free(sink);
    __asm__ volatile("" ::: "memory");
}

NOINLINE static void left(int depth, unsigned way) {
    step(depth - 1, way);
    __asm__ volatile("nop" ::: "memory");
}

NOINLINE static void right(int depth, unsigned way) {
    step(depth - 1, way);
    __asm__ volatile("" ::: "memory");
}

NOINLINE static void step(int depth, unsigned way) {
    if (depth == 0)
        leaf();
    else if (way >> (depth - 1) & 1)
        left(depth, way);
    else
        right(depth, way);
    __asm__ volatile("" ::: "memory");
}

NOINLINE static int begin(int depth) {
    for (unsigned way = 0; way < 1u << depth; way++)
        step(depth, way);
    return 0;
}

#ifdef CALLED
NOINLINE static int more(int depth) {
    int code = begin(depth);
    __asm__ volatile("" ::: "memory");
    return code;
}
#define begin more
#endif

int main(int count, char **words) {
    int code = count > 1 ? begin(atoi(words[1])) : 2;
    __asm__ volatile("" ::: "memory");
    return code;
}
