#include "preload/stacks/greenlets.h"

#include <string.h>

namespace gmt::preload {
namespace {

// greenlet/_greenlet.cpython-312-x86_64-linux-gnu.so; greenlet.*.so before 1.0.
bool IsGreenlets(const char* path) {
  const char* slash = strrchr(path, '/');
  const char* name = slash == nullptr ? path : slash + 1;
  if (*name == '_') ++name;
  constexpr char kBeginning[] = "greenlet.";
  return strncmp(name, kBeginning, sizeof(kBeginning) - 1) == 0;
}

}  // namespace

// Cache: where the library is loaded.
constinit std::atomic<uint64_t> Greenlets::start_{0}, Greenlets::end_{0};

bool Greenlets::Note(const LoadedModule& module) {
  if (!IsGreenlets(module.path)) return false;
  const bool is_news = start_.exchange(module.start, std::memory_order_relaxed) != module.start;
  return end_.exchange(module.end, std::memory_order_relaxed) != module.end || is_news;
}

}  // namespace gmt::preload
