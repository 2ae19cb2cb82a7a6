// Exceptions through procedures that are split, virtual calls and static initializers. The output has no addresses.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <typeinfo>
#include <vector>
#include <pthread.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static std::string log_text;
static volatile int zero;

struct Guard {
    const char *name;
    explicit Guard(const char *given) : name(given) { log_text += '('; log_text += name; }
    ~Guard() { log_text += name; log_text += ')'; }
};

struct Failure : std::runtime_error {
    int code;
    Failure(const std::string &text, int number) : std::runtime_error(text), code(number) {}
};
struct Special : Failure {
    Special() : Failure("special", 99) {}
};
namespace { struct Private { long value; }; }

struct Shape {
    virtual ~Shape() {}
    virtual long area(int) const = 0;
    virtual const char *kind() const { return "shape"; }
};
struct Named {
    std::string name;
    virtual ~Named() {}
    virtual std::string title() const { return "<" + name + ">"; }
};
struct Square : Shape, Named {
    long side;
    explicit Square(long s) : side(s) { name = "square"; }
    long area(int n) const override {
        if (__builtin_expect(n < 0, 0)) throw Failure("negative", n);
        return side * side * n;
    }
};
struct Circle : Shape {
    long radius;
    explicit Circle(long r) : radius(r) {}
    long area(int n) const override { return 3 * radius * radius * n; }
    const char *kind() const override { return "circle"; }
};
static std::map<std::string, std::unique_ptr<Shape>> shapes = [] {
    std::map<std::string, std::unique_ptr<Shape>> made;
    made["a"].reset(new Square(4));
    made["b"].reset(new Circle(2));
    return made;
}();

// The throwing paths are cold: the compiler and a layout by counts move them out of the way.
NOINLINE static int thrower(int what) {
    Guard guard("t");
    switch (what) {
    case 0: return 1;
    case 1: throw 17;
    case 2: throw Failure("failure", 2);
    case 3: throw Special();
    case 4: throw std::string("text");
    case 5: throw Private{5};
    case 6: return std::stoi("no number");
    case 7: return static_cast<int>(std::vector<int>(3).at(what));
    case 8: throw "chars";
    default: return what * 2 + zero;
    }
}

NOINLINE static int middle(int what) {
    Guard outer("m");
    try {
        Guard inner("i");
        return thrower(what) + 1;
    } catch (const Special &special) {
        log_text += "S";
        if (what == 3) throw;
        return special.code;
    } catch (const std::string &text) {
        log_text += text;
        try {
            throw Failure("nested", 7);
        } catch (const std::exception &other) {
            log_text += other.what();
        }
        return 40;
    }
}

NOINLINE static int outer(int what) {
    Guard guard("o");
    int result = -1;
    try {
        result = middle(what);
    } catch (const Failure &failure) {
        result = failure.code * 10;
    } catch (int number) {
        result = number;
    } catch (const std::out_of_range &) {
        result = -7;
    } catch (const std::exception &) {
        result = -6;
    } catch (const Private &own) {
        result = static_cast<int>(own.value);
    } catch (...) {
        result = -100;
    }
    return result;
}

struct Member {
    Guard guard{"M"};
    explicit Member(int what) try : part(what) { log_text += "made"; } catch (...) { log_text += "failed"; }
    struct Part {
        explicit Part(int what) { if (what) throw Failure("part", what); }
    } part;
};

NOINLINE static void never(int what) noexcept {
    try { thrower(what); } catch (...) { log_text += "N"; }
}

NOINLINE static long recurse(int depth, std::vector<long> &values) {
    std::string name = std::to_string(depth);
    if (depth == 0) throw values.size();
    values.push_back(depth);
    long result = recurse(depth - 1, values) + static_cast<long>(name.size());
    values.pop_back();
    return result;
}

static thread_local Guard per_thread("P");

static void *cancelled(void *) {
    Guard guard("C");
    try {
        for (;;) usleep(1000);
    } catch (...) {
        log_text += "forced";
        throw;
    }
    return nullptr;
}

int main(int count, char **arguments) {
    if (count > 1 && !freopen(arguments[1], "w", stdout)) return 2;
    for (int what = 0; what < 11; what++) printf("%d ", outer(what));
    printf("\n%s\n", log_text.c_str());
    log_text.clear();
    long sum = 0;
    for (int round = 0; round < 50; round++)
        for (auto &entry : shapes) sum += entry.second->area(round);
    printf("areas %ld", sum);
    for (auto &entry : shapes) {
        auto *named = dynamic_cast<Named *>(entry.second.get());
        printf(" %s %s %s", entry.first.c_str(), entry.second->kind(), named ? named->title().c_str() : "-");
        try { printf(" %ld", entry.second->area(-1)); } catch (const Failure &failure) { printf(" %s", failure.what()); }
    }
    printf(" %d\n", typeid(*shapes["a"]) == typeid(Square));
    for (int what = 0; what < 2; what++)
        try { Member member(what); } catch (const Failure &failure) { log_text += failure.what(); }
    never(1);
    never(0);
    std::vector<long> values;
    try { recurse(30, values); } catch (size_t size) { printf("size %zu\n", size); }
    std::vector<std::string> words = {"pear", "apple", "fig", "quince"};
    std::sort(words.begin(), words.end(), [](const std::string &a, const std::string &b) {
        return a.size() != b.size() ? a.size() < b.size() : a < b;
    });
    for (auto &word : words) printf("%s ", word.c_str());
    std::thread([] { log_text += per_thread.name; outer(2); }).join();
    pthread_t thread;
    pthread_create(&thread, nullptr, cancelled, nullptr);
    usleep(20000);
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
    printf("\n%s\n", log_text.c_str());
    return 4;
}
