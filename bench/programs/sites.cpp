// A large program with debug information: 5,000 functions, each with a call of malloc of its own.
//
//     sites
//
// Built with -g, so that its file has about 25 MB: each function has a type of its own with many members, which only the
// debug information describes. With the calls of these functions there are 10,000 addresses. Prints nothing.

#include <cstdlib>

namespace {

void *volatile sink;

#define MEMBER(number, name) unsigned long member_##name##_of_record_##number;
#define PART(number, part)                                                                                       \
    MEMBER(number, first_##part) MEMBER(number, second_##part) MEMBER(number, third_##part)                      \
    MEMBER(number, fourth_##part) MEMBER(number, fifth_##part) MEMBER(number, sixth_##part)                      \
    MEMBER(number, seventh_##part) MEMBER(number, eighth_##part) MEMBER(number, ninth_##part)
#define MEMBERS(number)                                                                                          \
    PART(number, one) PART(number, two) PART(number, three) PART(number, four) PART(number, five)                \
    PART(number, six) PART(number, seven) PART(number, eight) PART(number, nine) PART(number, ten)

#define SITE(number)                                                                                             \
    struct record_##number {                                                                                     \
        MEMBERS(number)                                                                                          \
    };                                                                                                           \
    void site_##number(record_##number *record)                                                                  \
    {                                                                                                            \
        sink = std::malloc(sizeof *record);                                                                      \
        std::free(sink);                                                                                         \
    }
#define CALL(number) site_##number(nullptr);

#define TEN(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) X(n##8) X(n##9)
#define HUNDRED(X, n)                                                                                            \
    TEN(X, n##0) TEN(X, n##1) TEN(X, n##2) TEN(X, n##3) TEN(X, n##4)                                             \
    TEN(X, n##5) TEN(X, n##6) TEN(X, n##7) TEN(X, n##8) TEN(X, n##9)
#define THOUSAND(X, n)                                                                                           \
    HUNDRED(X, n##0) HUNDRED(X, n##1) HUNDRED(X, n##2) HUNDRED(X, n##3) HUNDRED(X, n##4)                         \
    HUNDRED(X, n##5) HUNDRED(X, n##6) HUNDRED(X, n##7) HUNDRED(X, n##8) HUNDRED(X, n##9)
#define ALL(X) THOUSAND(X, 1) THOUSAND(X, 2) THOUSAND(X, 3) THOUSAND(X, 4) THOUSAND(X, 5)

ALL(SITE)

} // namespace

int main()
{
    ALL(CALL)
    return 0;
}
