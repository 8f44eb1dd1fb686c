// Declares a command line, reads some and prints help.
#include <CLI/CLI.hpp>

static size_t work() {
    CLI::App app{"A program with a description that is longer than a short text", "program"};
    std::string name = "none";
    std::vector<int> numbers;
    std::map<std::string, int> levels{{"low", 1}, {"high", 2}};
    int level = 0, verbose = 0;
    double ratio = 0.5;
    bool flag = false;
    app.add_option("-n,--name", name, "A name")->required()->envname("NO_SUCH_VARIABLE");
    app.add_option("--numbers", numbers, "Some numbers")->expected(1, 5)->check(CLI::Range(0, 100));
    app.add_option("--level", level, "A level")->transform(CLI::CheckedTransformer(levels, CLI::ignore_case));
    app.add_option("--ratio", ratio, "A ratio")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_flag("-v,--verbose", verbose, "More words");
    CLI::Option *quiet = app.add_flag("--quiet,!--loud", flag, "Fewer words")->group("Others");
    app.add_option("--size", "A size")->excludes(quiet)->transform(CLI::AsSizeValue(false));
    CLI::App *run = app.add_subcommand("run", "Runs a thing");
    std::vector<std::string> files;
    run->add_option("files", files, "Files")->expected(-1);
    run->fallthrough();
    CLI::App *stop = app.add_subcommand("stop", "Stops a thing")->alias("halt");
    app.require_subcommand(0, 1);
    app.set_config("--config", "", "A file");
    size_t sum = 0;
    auto parse = [&](std::string line) {
        try {
            app.clear();
            app.parse(line, false);
        } catch (const CLI::Error &error) {
            sum += std::string(error.what()).size() + size_t(error.get_exit_code());
        }
        sum += name.size() + numbers.size() + size_t(level) + size_t(verbose) + files.size();
    };
    parse("--name \"some one\" --numbers 1 2 3 -vv run one.txt two.txt");
    parse("-n x --level HIGH --ratio 2.5 --loud halt");
    parse("--numbers 1");
    parse("--name a --numbers 1000");
    parse("--name a --level middle");
    parse("--name a --nothing");
    parse("--name a --quiet --size 10kb");
    sum += app.help("", CLI::AppFormatMode::All).size() + stop->help().size() + app.config_to_str(true, true).size();
    return sum;
}

int main() {
    std::printf("%zu\n", work());
    planted::measure(10, [] {
        size_t sum = work();
        planted::keep(&sum);
    });
}
