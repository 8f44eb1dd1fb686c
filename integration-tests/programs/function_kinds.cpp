// Functions of C++ beneath which windows are to be; nothing here knows of the recorder. 10 rounds of each:
//
// thrower       3 allocations, and what an exception takes; it is left by that exception
// Shape::draw   virtual, of two classes: 1 allocation in Square::draw, 2 in Circle::draw
// twice<T>      a template of two instances: 1 allocation of each
// the lambda    1 allocation
// recursive     4 levels with 1 allocation each: one entry a round
// outer, inner  outer allocates 1, inner below it 2; inner alone 2 more
// own::qsort    1 allocation; the C library has a function of that name
// inlined       1 allocation a call, and no code of its own
#include <cstdio>
#include <cstdlib>
#include <memory>

#define APART __attribute__((noinline))

APART static void use(void *pointer) { __asm__ volatile("" ::"r"(pointer) : "memory"); }
APART static void allocate(int count) {
  for (int i = 0; i < count; i++) {
    void *block = malloc(12);
    use(block);
    free(block);
  }
}

APART int thrower(int number) {
  allocate(3);
  if (number >= 0) throw number;
  return number;
}

struct Shape {
  virtual ~Shape() = default;
  virtual void draw() = 0;
};
struct Square : Shape {
  APART void draw() override { allocate(1); use(this); }
};
struct Circle : Shape {
  APART void draw() override { allocate(2); use(this); }
};

template <typename T> APART void twice(T value) {
  allocate(1);
  use(&value);
}

APART int recursive(int depth) {
  allocate(1);
  int below = depth > 1 ? recursive(depth - 1) : 0;
  use(&below);
  return below + 1;
}

APART void inner() { allocate(2); use(nullptr); }
APART void outer() {
  allocate(1);
  inner();
  use(nullptr);
}
namespace own {
APART void qsort() { allocate(1); use(nullptr); }
}
__attribute__((always_inline)) inline void inlined() { allocate(1); }

int main() {
  std::unique_ptr<Shape> square(new Square), circle(new Circle);
  auto lambda = [](int number) APART { allocate(1); use(&number); return number; };
  int sum = 0;
  for (int i = 0; i < 10; i++) {
    try {
      thrower(i);
    } catch (int number) {
      sum += number;
    }
    square->draw();
    circle->draw();
    twice(1);
    twice(2.5);
    sum += lambda(1);
    sum += recursive(4);
    outer();
    inner();
    own::qsort();
    inlined();
  }
  printf("%d\n", sum);
  return 0;
}
