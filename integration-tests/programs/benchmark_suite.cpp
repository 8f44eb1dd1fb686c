// Benchmarks by Google Benchmark whose allocations can be counted by hand: six in each iteration, if not said otherwise, and
// others where nothing is measured. Sizes tell from where they are.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "heaptally.h"

// With plain names.
extern "C" {

[[gnu::noipa]] void allocate(int count, std::size_t size) {
    for (int i = 0; i < count; i++) {
        void *block = std::malloc(size);
        benchmark::DoNotOptimize(block);
        std::free(block);
    }
}

[[gnu::noipa]] void measured(int count) { allocate(count, 64); benchmark::ClobberMemory(); }
[[gnu::noipa]] void set_up(int count) { allocate(count, 1000); benchmark::ClobberMemory(); }
[[gnu::noipa]] void paused(int count) { allocate(count, 2000); benchmark::ClobberMemory(); }
[[gnu::noipa]] void tear_down(int count) { allocate(count, 3000); benchmark::ClobberMemory(); }
[[gnu::noipa]] void worker(int count) { allocate(count, 128); benchmark::ClobberMemory(); }

} // extern "C"

namespace {

void plain(benchmark::State &state) {
    set_up(10);
    for (auto _ : state)
        measured(6);
    tear_down(3);
}
BENCHMARK(plain)->Iterations(1000);
// As often as the harness finds it necessary.
BENCHMARK(plain)->Name("grown")->MinTime(0.02);
BENCHMARK(plain)->Name("repeated")->Iterations(20)->Repetitions(3);

void with_arguments(benchmark::State &state) {
    for (auto _ : state)
        measured(static_cast<int>(state.range(0)));
}
BENCHMARK(with_arguments)->Arg(2)->Arg(5)->Iterations(10);
BENCHMARK(with_arguments)->Name("named")->ArgNames({"count", ""})->Args({3, 4})->Iterations(10);

void pausing(benchmark::State &state) {
    for (auto _ : state) {
        measured(2);
        state.PauseTiming();
        paused(50);
        state.ResumeTiming();
        measured(4);
    }
}
BENCHMARK(pausing)->Iterations(100);

void threaded(benchmark::State &state) {
    set_up(7);
    for (auto _ : state) {
        measured(6);
        state.PauseTiming();
        paused(5);
        state.ResumeTiming();
    }
    tear_down(state.thread_index() + 1);
}
BENCHMARK(threaded)->Threads(1)->Threads(2)->Threads(8)->Iterations(100);

void keep_running(benchmark::State &state) {
    set_up(4);
    while (state.KeepRunning())
        measured(6);
    tear_down(4);
}
BENCHMARK(keep_running)->Iterations(50);

// The last batch is whole: a hundred are run.
void batch(benchmark::State &state) {
    while (state.KeepRunningBatch(10))
        measured(60);
}
BENCHMARK(batch)->Iterations(95);

class fixture : public benchmark::Fixture {
  public:
    void SetUp(const benchmark::State &) override { set_up(9); }
    void TearDown(const benchmark::State &) override { tear_down(9); }
};
BENCHMARK_DEFINE_F(fixture, method)(benchmark::State &state) {
    for (auto _ : state)
        measured(6);
}
BENCHMARK_REGISTER_F(fixture, method)->Iterations(10);

template <class T> void generic(benchmark::State &state) {
    for (auto _ : state)
        measured(sizeof(T));
}
BENCHMARK_TEMPLATE(generic, char)->Iterations(10);
BENCHMARK_TEMPLATE(generic, int)->Iterations(10);

void given_up_before(benchmark::State &state) {
    set_up(5);
    state.SkipWithError("before the loop");
    for (auto _ : state)
        measured(6);
    tear_down(5);
}
BENCHMARK(given_up_before)->Iterations(10);

void never_begun(benchmark::State &state) {
    set_up(5);
    state.SkipWithError("no loop at all");
}
BENCHMARK(never_begun)->Iterations(10);

// In the fourth of ten.
void given_up_inside(benchmark::State &state) {
    int done = 0;
    for (auto _ : state) {
        measured(6);
        if (++done == 4) {
            state.PauseTiming();
            paused(3);
            state.SkipWithError("inside");
            break;
        }
    }
    tear_down(5);
}
BENCHMARK(given_up_inside)->Iterations(10);

void kept_running_until_given_up(benchmark::State &state) {
    int done = 0;
    while (state.KeepRunning()) {
        measured(6);
        if (++done == 4)
            state.SkipWithError("inside");
    }
    tear_down(5);
}
BENCHMARK(kept_running_until_given_up)->Iterations(10);

// What follows one that was given up is none the worse.
BENCHMARK(plain)->Name("after")->Iterations(10);

void with_own_window(benchmark::State &state) {
    heaptally_window_begin("around");
    set_up(2);
    for (auto _ : state) {
        measured(6);
        heaptally_window_begin("own");
        worker(2);
        heaptally_window_end("own");
    }
    tear_down(3);
    heaptally_window_end("around");
}
BENCHMARK(with_own_window)->Iterations(10);

void with_workers(benchmark::State &state) {
    for (auto _ : state) {
        std::thread other([] { worker(4); });
        measured(6);
        other.join();
    }
}
BENCHMARK(with_workers)->Iterations(10);

} // namespace

int main(int argc, char **argv) {
    // Long, and with a blank.
    std::string name(40, 'x');
    benchmark::RegisterBenchmark((name + " y").c_str(), [](benchmark::State &state) {
        for (auto _ : state)
            measured(6);
    })->Iterations(10);
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
