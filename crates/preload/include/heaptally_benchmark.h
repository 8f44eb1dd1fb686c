/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * heaptally_benchmark.h: windows of Google Benchmark's loops in programs whose build hides the harness's functions.
 *
 *     #include <benchmark/benchmark.h>
 *     #include "heaptally_benchmark.h"
 *
 *     static void parse(benchmark::State &state)
 *     {
 *         for (auto _ : HEAPTALLY_LOOP(state))
 *             parse_once();
 *     }
 *     BENCHMARK(parse);
 *
 * It is not needed where `heaptally run` finds these functions: in a shared library, and in a program that has their names.
 * Where a program is stripped, or its linker put them into the benchmarks (link-time optimisation), this loop tells the recorder
 * by itself what they would: it opens a window behind the set-up, and closes it, with its iterations, before the tear-down. Such a
 * program is to be run with --harness none where the harness's functions are found all the same: else there are two windows,
 * one inside the other.
 *
 * The window has the name of the function in which the loop is (in a fixture's method, or in a lambda, that says little), or the
 * text that is given: HEAPTALLY_LOOP_NAMED(state, "parse/" + std::to_string(state.range(0))). All runs of a name are one window.
 *
 * A pause is HEAPTALLY_PAUSE(state) and HEAPTALLY_RESUME(state), which call the harness's functions, too. It holds for the calling
 * thread: what others allocate meanwhile counts.
 *
 * A benchmark of one thread counts all threads; on several threads each one's own loop counts. A loop that is left by `break`,
 * by an exception or after state.SkipWithError() ends there, with the iterations that it had begun; without any it is no window.
 *
 * C++11 and later, Google Benchmark 1.6 and later. Without the recorder the loop takes a comparison and an addition more in each
 * iteration. Else as heaptally.h, which is included.
 */
#ifndef HEAPTALLY_BENCHMARK_H
#define HEAPTALLY_BENCHMARK_H

#include "heaptally.h"

#include <cstdint>
#include <string>
#include <utility>

namespace heaptally {

/* A benchmark's loop with its window. Made by HEAPTALLY_LOOP, and used by a range-for only. */
template <class State> class BenchmarkLoop {
  public:
    class Iterator {
      public:
        Iterator(BenchmarkLoop *loop, decltype(std::declval<State &>().begin()) inner) : loop_(loop), inner_(inner) {}
        auto operator*() const -> decltype(*std::declval<State &>().begin()) { return *inner_; }
        Iterator &operator++()
        {
            ++inner_;
            return *this;
        }
        bool operator!=(const Iterator &end) const { return loop_->goes_on(inner_, end.inner_); }

      private:
        BenchmarkLoop *loop_;
        decltype(std::declval<State &>().begin()) inner_;
    };

    BenchmarkLoop(State &state, std::string name) : state_(state), name_(std::move(name)) {}
    BenchmarkLoop(const BenchmarkLoop &) = delete;
    BenchmarkLoop &operator=(const BenchmarkLoop &) = delete;
    ~BenchmarkLoop() { close(); }

    Iterator begin() { return Iterator(this, state_.begin()); }
    Iterator end() { return Iterator(this, state_.end()); }

  private:
    template <class Inner> bool goes_on(const Inner &now, const Inner &end)
    {
        /* What the harness does at the end is not the benchmark's. */
        if (begun_ == static_cast<std::uint64_t>(state_.max_iterations))
            close();
        if (now != end) {
            /* The harness has started: a range-for asks for the end before that. */
            if (begun_ == 0)
                open();
            begun_++;
            return true;
        }
        close();
        return false;
    }

    void open()
    {
        is_open_ = true;
        is_thread_ = state_.threads() > 1;
        if (is_thread_)
            heaptally_thread_window_begin(name_.c_str());
        else
            heaptally_window_begin(name_.c_str());
    }

    void close()
    {
        if (!is_open_)
            return;
        is_open_ = false;
        if (is_thread_)
            heaptally_thread_window_end(name_.c_str());
        else
            heaptally_window_end(name_.c_str());
        heaptally_window_iterations(name_.c_str(), begun_);
    }

    State &state_;
    std::string name_;
    std::uint64_t begun_ = 0;
    bool is_open_ = false;
    bool is_thread_ = false;
};

} // namespace heaptally

#define HEAPTALLY_LOOP(state) HEAPTALLY_LOOP_NAMED(state, __func__)
#define HEAPTALLY_LOOP_NAMED(state, name) (::heaptally::BenchmarkLoop<::benchmark::State>((state), (name)))

#define HEAPTALLY_PAUSE(state) (heaptally_pause(), (state).PauseTiming())
#define HEAPTALLY_RESUME(state) ((state).ResumeTiming(), heaptally_resume())

#endif /* HEAPTALLY_BENCHMARK_H */
