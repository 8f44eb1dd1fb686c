// Reads TOML, changes it and writes it.
#include <sstream>
#include <toml++/toml.h>

static const char *const TEXT = R"(
title = "a text that is longer than a short one" # a comment
[owner]
name = 'Some One'
born = 1979-05-27T07:32:00-08:00
day = 2026-12-02
at = 07:32:00.5
[numbers]
list = [1, 2.5, 0xff, 0b101, 1_000, -inf, nan]
nested = [[1, 2], ["a", "b\u00e4\n"]]
inline = { x = 1, y.z = true }
[[row]]
name = "first"
text = """
several
lines \
   of it"""
[[row]]
name = "second"
[a.b."c d".e]
deep = '''raw \ text'''
)";

static size_t work() {
    toml::table table = toml::parse(TEXT, std::string_view("a file"));
    size_t sum = table.size();
    sum += table["owner"]["name"].value_or(std::string("none")).size();
    sum += table.at_path("numbers.list[2]").value_or(0);
    sum += table.at_path("a.b.\"c d\".e.deep").value_or(std::string()).size();
    if (toml::array *list = table["numbers"]["list"].as_array()) {
        list->push_back("a text that needs memory of its own");
        list->insert(list->begin(), 7);
        list->emplace_back<toml::table>(toml::table{{"key", 1}, {"other", toml::array{1, 2, 3}}});
        list->flatten();
        list->for_each([&](auto &&value) { sum += size_t(value.type()); });
        sum += list->is_homogeneous();
    }
    table.insert_or_assign("added", toml::table{{"one", 1.5}, {"two", toml::date{2026, 1, 2}}, {"three", "a value of some length, longer than short"}});
    table.erase("title");
    toml::table copy = table;
    std::ostringstream out;
    out << table << toml::json_formatter{table} << toml::yaml_formatter{copy};
    sum += out.str().size() + (copy == table);
    for (const char *text : {"a = [1, 2", "a = 1\na = 2", "= 1", "a = \"\\x\"", "[a]\n[a]"}) {
        try {
            sum += toml::parse(text).size();
        } catch (const toml::parse_error &error) {
            sum += error.description().size();
        }
    }
    return sum;
}

int main() {
    std::printf("%zu\n", work());
    planted::measure(10, [] {
        size_t sum = work();
        planted::keep(&sum);
    });
}
