// What the compiler is given to chew: standard headers, and some templates to instantiate.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

struct entry {
    std::string name;
    std::vector<std::shared_ptr<entry>> children;
};

using table = std::map<std::string, std::unordered_map<int, std::vector<entry>>>;

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
        entries[argv[i]][i].push_back({argv[i], {}});
    std::function<std::string(const table &)> const text = join;
    std::vector<std::string> words(argv, argv + argc);
    std::sort(words.begin(), words.end());
    return static_cast<int>(text(entries).size() + words.size());
}
