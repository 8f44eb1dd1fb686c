// Writes values as text.
#include <fmt/args.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

static size_t work() {
    std::vector<int> list{1, 2, 3};
    std::map<std::string, double> map{{"a", 1.5}, {"b", 2e300}};
    std::string text = fmt::format(fmt::runtime("{:>40} {:<8.3f} {:#x} {:+d} {} {:c}"), "text", 3.14159, 255, 7, true, 'c');
    text += fmt::format(fmt::runtime("{} {} {:%Y-%m-%d %H:%M:%S} {}"), list, map, fmt::gmtime(std::time_t(0)), std::chrono::seconds(75));
    text += fmt::format(fmt::runtime("{name:*^{width}} {value:.{precision}e}"), fmt::arg("name", "middle"), fmt::arg("width", 20),
                        fmt::arg("value", 12345.678), fmt::arg("precision", 3));
    fmt::dynamic_format_arg_store<fmt::format_context> store;
    store.push_back(std::string("a text that is kept by the store itself"));
    store.push_back(42);
    store.push_back(fmt::arg("pi", 3.14));
    text += fmt::vformat("{} {:08b} {pi}", store);
    text += fmt::to_string(123456789012345LL) + fmt::to_string(2.5) + fmt::format("{}", fmt::join(list, ", "));
    fmt::memory_buffer buffer;
    fmt::format_to(std::back_inserter(buffer), fmt::runtime("{:500}|{:g}|{:a}|{}"), "wide", 1e-7, 0.5, static_cast<const void *>(nullptr));
    size_t sum = text.size() + buffer.size();
    try {
        (void)fmt::format(fmt::runtime("{:d} {"), "wrong");
    } catch (const fmt::format_error &error) {
        sum += std::string(error.what()).size();
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
