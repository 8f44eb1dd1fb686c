// Loops of heaptally_benchmark.h: of a small harness that is inlined into them, or (-DREAL) of Google Benchmark's. Six allocations
// in each iteration, if not said otherwise.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>

#ifdef REAL

#include <benchmark/benchmark.h>

#else

namespace benchmark {

class State {
  public:
    struct Value {
        ~Value() {}
    };
    struct Iterator {
        State *state;
        std::int64_t left;
        Value operator*() const { return Value(); }
        Iterator &operator++()
        {
            left--;
            return *this;
        }
        bool operator!=(const Iterator &) const
        {
            if (left != 0)
                return true;
            state->FinishKeepRunning();
            return false;
        }
    };

    State(std::int64_t iterations, int threads, std::int64_t range)
        : max_iterations(iterations), threads_(threads), range_(range) {}
    Iterator begin() { return {this, is_skipped_ ? 0 : max_iterations}; }
    Iterator end()
    {
        std::free(std::malloc(100));
        return {this, 0};
    }
    void PauseTiming() { std::free(std::malloc(200)); }
    void ResumeTiming() { std::free(std::malloc(300)); }
    void SkipWithError(const char *) { is_skipped_ = true; }
    int threads() const { return threads_; }
    std::int64_t range(int) const { return range_; }
    const std::int64_t max_iterations;

  private:
    void FinishKeepRunning() { std::free(std::malloc(400)); }
    int threads_;
    std::int64_t range_;
    bool is_skipped_ = false;
};

} // namespace benchmark

#endif

#include "heaptally_benchmark.h"

static void allocate(int count, std::size_t size)
{
    for (int i = 0; i < count; i++) {
        void *block = std::malloc(size);
        asm volatile("" : "+r"(block));
        std::free(block);
    }
}

static void plain(benchmark::State &state)
{
    allocate(10, 1000);
    for (auto _ : HEAPTALLY_LOOP(state))
        allocate(6, 64);
    allocate(3, 1000);
}

static void pausing(benchmark::State &state)
{
    for (auto _ : HEAPTALLY_LOOP(state)) {
        allocate(2, 64);
        HEAPTALLY_PAUSE(state);
        allocate(50, 2000);
        HEAPTALLY_RESUME(state);
        allocate(4, 64);
    }
}

static void named(benchmark::State &state)
{
    for (auto _ : HEAPTALLY_LOOP_NAMED(state, "named/" + std::to_string(state.range(0))))
        allocate(static_cast<int>(state.range(0)), 64);
}

static void left_early(benchmark::State &state)
{
    int done = 0;
    for (auto _ : HEAPTALLY_LOOP(state)) {
        allocate(6, 64);
        if (++done == 4)
            break;
    }
    state.SkipWithError("in the fourth");
    allocate(3, 1000);
}

static void skipped(benchmark::State &state)
{
    state.SkipWithError("before");
    for (auto _ : HEAPTALLY_LOOP(state))
        allocate(6, 64);
}

static void threaded(benchmark::State &state)
{
    for (auto _ : HEAPTALLY_LOOP(state))
        allocate(6, 64);
}

#ifdef REAL

BENCHMARK(plain)->Iterations(20);
BENCHMARK(pausing)->Iterations(20);
BENCHMARK(named)->Arg(2)->Arg(5)->Iterations(20);
BENCHMARK(left_early)->Iterations(20);
BENCHMARK(skipped)->Iterations(20);
BENCHMARK(threaded)->Threads(4)->Iterations(20);
BENCHMARK_MAIN();

#else

static void run(void (*function)(benchmark::State &), std::int64_t range, int threads)
{
    auto one = [=] {
        benchmark::State state(20, threads, range);
        function(state);
    };
    std::thread others[4];
    for (int i = 1; i < threads; i++)
        others[i] = std::thread(one);
    one();
    for (int i = 1; i < threads; i++)
        others[i].join();
}

int main()
{
    run(plain, 0, 1);
    run(pausing, 0, 1);
    run(named, 2, 1);
    run(named, 5, 1);
    run(left_early, 0, 1);
    run(skipped, 0, 1);
    run(threaded, 0, 4);
    return 0;
}

#endif
