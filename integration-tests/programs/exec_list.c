/* Calls the exec functions that take a list: two that fail, then `env`, or `printf` with more arguments than registers
 * hold. Exits with the number of the first thing that is wrong. */
#include <errno.h>
#include <unistd.h>

int main(int count, char **words)
{
    char *environment[] = {"A=1", 0};
    if (execl("/nonexistent", "x", "1", "2", "3", "4", "5", "6", "7", (char *)0) != -1 || errno != ENOENT)
        return 1;
    if (execle("/nonexistent", "x", (char *)0, environment) != -1 || errno != ENOENT)
        return 2;
    if (count > 1 && words[1][0] == 'e')
        execle("/usr/bin/env", "env", (char *)0, environment);
    if (count > 1)
        execlp("printf", "printf", "%s%s%s%s%s%s%s%s", "a", "b", "c", "d", "e", "f", "g", "h", (char *)0);
    return 3;
}
