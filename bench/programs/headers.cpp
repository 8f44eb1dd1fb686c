// What the compiler is given to chew: many standard headers, and some templates to instantiate.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

struct entry {
    std::string name;
    std::variant<int, double, std::string> value;
    std::vector<std::shared_ptr<entry>> children;
};

using table = std::map<std::string, std::unordered_map<int, std::vector<entry>>>;

int count_words(const std::string &text)
{
    std::regex const word("[a-z]+");
    std::sregex_iterator const begin(text.begin(), text.end(), word);
    return static_cast<int>(std::distance(begin, std::sregex_iterator()));
}

std::string join(const table &entries)
{
    std::ostringstream out;
    for (auto const &[name, by_number] : entries)
        for (auto const &[number, list] : by_number)
            out << name << number << list.size();
    return out.str();
}

int main(int argc, char **argv)
{
    table entries;
    for (int i = 0; i < argc; i++)
        entries[argv[i]][i].push_back({argv[i], i, {}});
    std::function<int(const std::string &)> const count = count_words;
    std::vector<std::string> words(argv, argv + argc);
    std::sort(words.begin(), words.end());
    std::thread worker([&] { std::cout << join(entries) << '\n'; });
    worker.join();
    return std::transform_reduce(words.begin(), words.end(), 0, std::plus<>(), count);
}
