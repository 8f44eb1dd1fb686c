// Reads, changes and writes JSON.
#include <nlohmann/json.hpp>

#include <map>

using nlohmann::json;

static size_t work() {
    json value = json::parse(R"({"name": "a \u00e9\n\"quoted\" text", "numbers": [1, -2, 3.25, 1e10, 18446744073709551615],
        "nested": {"list": [[], [true, false, null], {"deep": {"deeper": [1, 2, {"last": "x"}]}}]}, "empty": {}})");
    value["more"] = {{"a", {1, 2.5, "x"}}, {"b", nullptr}};
    value["nested"]["list"].push_back("tail");
    value["nested"].update({{"other", 7}});
    value.erase("empty");
    std::vector<int> list = json::parse("[1, 2, 3]").get<std::vector<int>>();
    std::map<std::string, double> map = json({{"a", 1.5}, {"b", 2}}).get<std::map<std::string, double>>();
    json patch = json::diff(value, json::parse(R"({"name": "b", "numbers": [1]})"));
    json patched = value.patch(patch);
    std::vector<uint8_t> packed = json::to_cbor(value);
    json unpacked = json::from_cbor(packed);
    size_t sum = value.dump().size() + value.dump(2).size() + unpacked.flatten().size() + patched.dump().size();
    sum += json::to_msgpack(value).size() + value.at("/nested/list/2"_json_pointer).size() + list.size() + map.size();
    try {
        json::parse("{\"a\": [1, 2");
    } catch (const json::parse_error &error) {
        sum += std::string(error.what()).size();
    }
    for (const auto &[key, inner] : value.items())
        sum += key.size() + inner.size();
    return sum + (unpacked == value);
}

int main() {
    std::printf("%zu\n", work());
    planted::measure(10, [] {
        size_t sum = work();
        planted::keep(&sum);
    });
}
