// Part of a plugin: a table of functions that the loader resolves one by one, in memory that it
// write-protects afterwards.
#include <cstddef>
#include <cstdlib>
#include <utility>

namespace {

using Function = void (*)(void*);

template <size_t... I>
struct Table {
  static constexpr Function functions[] = {(static_cast<void>(I), &free)...};
};

template <size_t... I>
constexpr const Function* Make(std::index_sequence<I...>) {
  return Table<I...>::functions;
}

}  // namespace

extern "C" const Function* SlowTable() { return Make(std::make_index_sequence<8192>()); }
