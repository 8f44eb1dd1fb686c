/* Refuses system calls, as an old kernel or a sandbox does, and goes on to a program:
     refuse_call ERRNO|kill CALL[:ADVICE],... PROGRAM ARGUMENT...
   A call is its number; ADVICE is the value of its third argument (madvise). */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int count, char **words) {
    struct sock_filter code[256];
    int len = 0;
    if (count < 4) return 99;
    unsigned action = SECCOMP_RET_ERRNO | (unsigned)atoi(words[1]);
    if (strcmp(words[1], "kill") == 0) action = SECCOMP_RET_KILL_PROCESS;
    for (char *call = strtok(words[2], ","); call && len < 240; call = strtok(NULL, ",")) {
        char *advice = strchr(call, ':');
        code[len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
        code[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(call), 0, advice ? 3 : 1);
        if (advice) {
            code[len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]));
            code[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(advice + 1), 0, 1);
        }
        code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    }
    code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)len, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("refuse_call");
        return 98;
    }
    execvp(words[3], words + 3);
    perror(words[3]);
    return 97;
}
