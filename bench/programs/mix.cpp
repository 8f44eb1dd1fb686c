// Maps, strings and vectors, as a program of today uses them.
//
//     mix ROUNDS
//
// Each round indexes words in an ordered and in a hashed map, splits and joins text, and sorts. Prints one line of JSON:
// the rounds, and the nanoseconds that they took.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct Random {
    std::uint64_t state = 88172645463325252u;

    std::uint64_t operator()()
    {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
    }
};

// Some words are too long to lie inside of a string.
std::string word(Random &random)
{
    std::string text;
    for (std::uint64_t left = 4 + random() % 28; left > 0; left--)
        text.push_back(static_cast<char>('a' + random() % 26));
    return text;
}

std::vector<std::string> split(std::string const &text)
{
    std::vector<std::string> parts;
    std::size_t start = 0;
    for (;;) {
        std::size_t const end = text.find(' ', start);
        parts.push_back(text.substr(start, end - start));
        if (end == std::string::npos)
            return parts;
        start = end + 1;
    }
}

struct Entry {
    std::string name;
    std::vector<int> places;
};

std::uint64_t round(Random &random)
{
    std::string text;
    for (int i = 0; i < 120; i++)
        text += word(random) + ' ';
    std::vector<std::string> const parts = split(text);

    std::map<std::string, std::unique_ptr<Entry>> index;
    std::unordered_map<std::string, std::uint64_t> weights;
    for (std::size_t i = 0; i < parts.size(); i++) {
        std::string const key = parts[i].substr(0, 3) + "/" + parts[i];
        std::unique_ptr<Entry> &entry = index[key];
        if (!entry)
            entry = std::make_unique<Entry>(Entry{parts[i], {}});
        entry->places.push_back(static_cast<int>(i));
        weights[parts[i]] += i;
    }
    std::vector<std::pair<std::uint64_t, std::string>> ranking;
    for (auto const &[name, weight] : weights)
        ranking.emplace_back(weight, name);
    std::sort(ranking.begin(), ranking.end());

    std::uint64_t sum = 0;
    for (auto const &[name, entry] : index)
        sum += entry->places.size() * name.size();
    return sum + ranking.size();
}

} // namespace

int main(int count, char **words)
{
    std::uint64_t const rounds = count == 2 ? std::strtoull(words[1], nullptr, 10) : 0;
    if (rounds == 0) {
        std::fputs("usage: mix ROUNDS\n", stderr);
        return 2;
    }
    Random random;
    std::uint64_t sum = 0;
    auto const start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < rounds; i++)
        sum += round(random);
    auto const time = std::chrono::steady_clock::now() - start;
    long long const wall_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
    std::printf("{\"pairs\": %llu, \"wall_ns\": %lld, \"sum\": %llu}\n", static_cast<unsigned long long>(rounds),
                wall_ns, static_cast<unsigned long long>(sum));
    return 0;
}
