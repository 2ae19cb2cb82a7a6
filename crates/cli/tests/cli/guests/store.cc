// Overloads, templates, operators and hidden functions, to be named mangled and not.

namespace app {
struct Store {
  long n;
  long add(int) const;
  long add(long);
  bool operator!() const;
};
namespace {
__attribute__((noinline)) long hidden(long x) {
  asm volatile("" : "+r"(x));
  return x * 3;
}
}  // namespace
long Store::add(int x) const { return n + hidden(x); }
long Store::add(long x) { return n -= hidden(x); }
__attribute__((noinline)) bool Store::operator!() const {
  asm volatile("");
  return n == 0;
}
template <class T> __attribute__((noinline)) T biggest(T a, T b) {
  asm volatile("" : "+r"(a));
  return a < b ? b : a;
}
}  // namespace app

int main(int count, char **) {
  app::Store store{count};
  long sum = 0;
  for (int i = 0; i < 5; i++) sum += store.add(i) + store.add(2L * i) + app::biggest<long>(i, 3);
  return sum == 0 || !store;
}
