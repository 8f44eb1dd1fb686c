// Allocations for the tests of other tools: two windows, names with templates, spaces and punctuation, recursion,
// blocks that stay, are freed, freed later and grow, a call that fails. With an argument `more` one function allocates
// more.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heaptally.h"

#define NOINLINE __attribute__((noinline))

static void *volatile kept[64];
static int kept_count;

template <typename Key, typename... Values>
struct Table {
    NOINLINE void add(int count)
    {
        for (int i = 0; i < count; i++)
            entries[std::to_string(i) + " is a key that is not short"].push_back(i);
    }
    std::map<Key, std::vector<int>> entries;
};

namespace {
struct Buffer {
    // The name of this function has a space, and its class has no linkage.
    NOINLINE explicit operator bool() { return (block = static_cast<char *>(std::realloc(block, size *= 2))); }
    char *block = nullptr;
    std::size_t size = 16;
};

NOINLINE void descend(int depth)
{
    kept[kept_count++] = std::malloc(100 + depth);
    if (depth > 0)
        descend(depth - 1);
    asm volatile("");
}

NOINLINE void churn(int count)
{
    for (int i = 0; i < count; i++) {
        void *block = std::malloc(1000);
        asm volatile("" : "+r"(block)); // the pair is not to be optimised away
        std::free(block);
    }
}
} // namespace

NOINLINE static void parse(int extra)
{
    Table<std::string, std::pair<int, char>, decltype(nullptr)> table;
    table.add(7);
    const auto shout = [](const std::string &text) NOINLINE { return std::make_unique<std::string>(text + text); };
    for (int i = 0; i < 3; i++)
        shout("not a short text, for certain");
    churn(5 + extra);
}

NOINLINE static void draw()
{
    Buffer buffer;
    for (int i = 0; i < 4; i++)
        if (!buffer)
            std::abort();
    std::free(buffer.block);
    descend(9);
    std::size_t huge = SIZE_MAX / 4;
    asm volatile("" : "+r"(huge));
    void *none = std::malloc(huge);
    asm volatile("" : "+r"(none));
    std::free(none);
}

int main(int argc, char **argv)
{
    const int extra = argc > 1 && !std::strcmp(argv[1], "more") ? 6 : 0;
    for (int i = 0; i < 4; i++) {
        heaptally_window_begin("parse");
        parse(extra);
        heaptally_window_end("parse");
    }
    heaptally_window_begin("draw <b>; all 100% of it");
    draw();
    heaptally_window_end("draw <b>; all 100% of it");
    for (int i = 0; i < kept_count / 2; i++)
        std::free(kept[i]);
    return 0;
}
