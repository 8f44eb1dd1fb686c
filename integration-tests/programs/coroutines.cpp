// C++20 coroutines: a generator of a generator that is resumed from two places. Window "w": 2 frames of each generator
// (4 operator new), 8 mallocs in item below the body of inner_numbers: 4 resumed by drain_left, 4 by drain_right.
#include <heaptally.h>

#include <coroutine>
#include <cstdlib>
#include <exception>

static void *volatile sink;

__attribute__((noinline)) static void item() {
  void *block = std::malloc(31);
  sink = block;
  std::free(block);
}

struct Numbers {
  struct promise_type {
    int value;
    Numbers get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(int next) {
      value = next;
      return {};
    }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
  bool next() {
    handle.resume();
    return !handle.done();
  }
};

static Numbers inner_numbers(int count) {
  for (int i = 0; i < count; i++) {
    item();
    co_yield i;
  }
}

static Numbers outer_numbers(int count) {
  Numbers inner = inner_numbers(count);
  while (inner.next()) co_yield inner.handle.promise().value;
  inner.handle.destroy();
}

__attribute__((noinline)) static int drain_left(Numbers &numbers) {
  int sum = 0;
  while (numbers.next()) sum += numbers.handle.promise().value;
  return sum;
}

__attribute__((noinline)) static int drain_right(Numbers &numbers) {
  int sum = 1;
  while (numbers.next()) sum += numbers.handle.promise().value;
  return sum;
}

int main() {
  heaptally_window_begin("w");
  Numbers left = outer_numbers(4);
  Numbers right = outer_numbers(4);
  int sum = drain_left(left) + drain_right(right);
  heaptally_window_end("w");
  left.handle.destroy();
  right.handle.destroy();
  return sum == 13 ? 0 : 1;
}
