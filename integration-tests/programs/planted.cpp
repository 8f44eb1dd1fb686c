// A small program of its own. Each line that says so can hold one allocation more.
#include <heaptally.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

static void *volatile sink;

namespace {

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};

struct Square : Shape {
    double side;
    explicit Square(double side) : side(side) {
        /* plant Square */
    }
    double area() const override {
        /* plant area */
        return side * side;
    }
};

template <typename Key> class Index {
    std::map<Key, std::vector<int>> places;

public:
    void add(const Key &key, int place) {
        places[key].push_back(place);
        /* plant add */
    }
    size_t count(const Key &key) const {
        auto found = places.find(key);
        /* plant count */
        return found == places.end() ? 0 : found->second.size();
    }
};

template <typename Visit> void each(const std::vector<std::unique_ptr<Shape>> &shapes, Visit visit) {
    for (const auto &shape : shapes)
        visit(*shape);
    /* plant each */
}

std::string name_of(int number) {
    std::string name = "a rather long name of number " + std::to_string(number);
    /* plant name_of */
    return name;
}

double total(const std::vector<std::unique_ptr<Shape>> &shapes) {
    double sum = 0;
    each(shapes, [&](const Shape &shape) { sum += shape.area(); });
    /* plant total */
    return sum;
}

size_t request(int number) {
    Index<std::string> index;
    std::vector<std::unique_ptr<Shape>> shapes;
    for (int at = 0; at < 4; at++) {
        index.add(name_of(at), number);
        shapes.push_back(std::make_unique<Square>(at));
    }
    /* plant request */
    return index.count(name_of(1)) + static_cast<size_t>(total(shapes));
}

} // namespace

int main() {
    size_t sum = 0;
    heaptally_window_begin("w");
    for (int number = 0; number < 100; number++)
        sum += request(number);
    heaptally_window_iterations("w", 100);
    heaptally_window_end("w");
    std::printf("%zu\n", sum);
    (void)sink;
    return 0;
}
