// A small harness with the names and the objects of Google Benchmark, linked into what it runs: a program, or (-shared) a
// library that -DLOADER's program loads for itself alone. -DPARTS=7: as before version 1.7. -DHARNESS and -DBENCHMARKS: the
// harness and its runner, and what it runs, apart.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#ifdef LOADER

#include <dlfcn.h>

int main(int, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    reinterpret_cast<void (*)()>(dlsym(library, "run_all"))();
    return 0;
}

#else

#ifndef PARTS
#define PARTS 8
#endif

namespace benchmark {

struct BenchmarkName {
    std::string parts[PARTS];
    std::string str() const;
};

class State {
  public:
    explicit State(int64_t iterations) : max_iterations(iterations) {}
    bool next() {
        if (!started) {
            started = true;
            StartKeepRunning();
        }
        if (left > 0) {
            left--;
            return true;
        }
        FinishKeepRunning();
        return false;
    }
    void StartKeepRunning();
    void FinishKeepRunning();
    void PauseTiming();
    void ResumeTiming();
    void SkipWithError(const std::string &message);

  private:
    int64_t left = 0;
    int64_t leftover = 0;
    const int64_t max_iterations;
    bool started = false;
    int64_t times[32] = {};
};

#ifndef BENCHMARKS

[[gnu::noipa]] std::string BenchmarkName::str() const {
    std::string joined;
    for (const std::string &part : parts)
        joined += (joined.empty() || part.empty() ? "" : "/") + part;
    return joined;
}

[[gnu::noipa]] void State::StartKeepRunning() {
    left = max_iterations;
    ResumeTiming();
}

[[gnu::noipa]] void State::FinishKeepRunning() {
    PauseTiming();
    left = 0;
}

[[gnu::noipa]] void State::PauseTiming() { times[0]++; }
[[gnu::noipa]] void State::ResumeTiming() { times[1]++; }
[[gnu::noipa]] void State::SkipWithError(const std::string &message) {
    times[2] += static_cast<int64_t>(message.size());
    left = 0;
}

#endif

} // namespace benchmark

void run(const char *name, const char *argument, int threads, void (*function)(benchmark::State &));

#ifndef BENCHMARKS

void run(const char *name, const char *argument, int threads, void (*function)(benchmark::State &)) {
    benchmark::BenchmarkName full;
    full.parts[0] = name;
    full.parts[1] = argument;
    if (threads > 0)
        full.parts[PARTS - 1] = "threads:" + std::to_string(threads);
    std::printf("%s\n", full.str().c_str());
    auto one = [function] {
        benchmark::State state(20);
        function(state);
    };
    std::thread others[8];
    for (int i = 1; i < threads; i++)
        others[i] = std::thread(one);
    one();
    for (int i = 1; i < threads; i++)
        others[i].join();
}

#endif
#ifndef HARNESS

extern "C" {

[[gnu::noipa]] void allocate(int count) {
    for (int i = 0; i < count; i++) {
        void *block = std::malloc(64);
        asm volatile("" : "+r"(block));
        std::free(block);
    }
}

[[gnu::noipa]] int measured(int count) { return allocate(count), 0; }
[[gnu::noipa]] int outside(int count) { return allocate(count), 0; }

} // extern "C"

static void pausing(benchmark::State &state) {
    outside(10);
    while (state.next()) {
        measured(6);
        state.PauseTiming();
        outside(5);
        state.ResumeTiming();
    }
    outside(3);
}

static void given_up(benchmark::State &state) {
    for (int done = 1; state.next(); done++) {
        measured(6);
        if (done == 4)
            state.SkipWithError("in the fourth");
    }
}

static void given_up_before(benchmark::State &state) {
    state.SkipWithError("a message that is too long to lie in the string itself");
    outside(2);
}

extern "C" void run_all() {
    run("pausing", "", 0, pausing);
    run("pausing_with_an_argument", "8", 1, pausing);
    run("pausing", "", 8, pausing);
    run("given_up_before", "", 0, given_up_before);
    run("given_up", "", 0, given_up);
    run("after", "", 0, pausing);
}

int main(int argc, char **) {
    if (argc > 1)
        std::puts(" [--benchmark_list_tests={true|false}]");
    run_all();
    return 0;
}

#endif
#endif
