/* A small program of its own. Each line that says so can hold one allocation more. */
#include <heaptally.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *volatile sink;

struct node {
    struct node *next;
    char name[16];
};

static char *copy(const char *text)
{
    /* plant copy */
    char *copied = malloc(strlen(text) + 1);
    return strcpy(copied, text);
}

static struct node *push(struct node *list, const char *name)
{
    struct node *node = malloc(sizeof *node);
    /* plant push */
    snprintf(node->name, sizeof node->name, "%s", name);
    node->next = list;
    return node;
}

static size_t measure(const struct node *list)
{
    size_t length = 0;
    for (; list != NULL; list = list->next)
        length += strlen(list->name);
    /* plant measure */
    return length;
}

static void drop(struct node *list)
{
    while (list != NULL) {
        struct node *next = list->next;
        free(list);
        list = next;
    }
    /* plant drop */
}

static size_t words(const char *line)
{
    struct node *list = NULL;
    char *text = copy(line);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
        list = push(list, word);
    /* plant words */
    size_t length = measure(list);
    drop(list);
    free(text);
    return length;
}

static size_t parse(const char *line)
{
    size_t length = words(line);
    /* plant parse */
    return length + words("a b");
}

static size_t request(int number)
{
    char line[64];
    snprintf(line, sizeof line, "get the page %d now", number);
    size_t length = parse(line);
    /* plant request */
    return length;
}

int main(void)
{
    size_t length = 0;
    heaptally_window_begin("w");
    for (int number = 0; number < 100; number++)
        length += request(number);
    heaptally_window_iterations("w", 100);
    heaptally_window_end("w");
    printf("%zu\n", length);
    (void)sink;
    return 0;
}
