// session/slice.h
//
// Slice: std::string_view::substr for code that may not throw. The exception that substr can throw
// would bring the C++ runtime, with its own unwinder, into every traced process.

#ifndef GMT_SESSION_SLICE_H_
#define GMT_SESSION_SLICE_H_

#include <stddef.h>

#include <string_view>

namespace gmt::session {

// Up to `count` bytes of `text` from `from` on; empty where `from` lies behind its end.
constexpr std::string_view Slice(std::string_view text, size_t from,
                                 size_t count = std::string_view::npos) {
  if (from >= text.size()) return {};
  const size_t rest = text.size() - from;
  return {text.data() + from, count < rest ? count : rest};
}

// What stands before the first `separator`, which *rest loses with it; all of *rest where there is
// none.
constexpr std::string_view Cut(std::string_view* rest, char separator) {
  const size_t end = rest->find(separator);
  const std::string_view part = Slice(*rest, 0, end);
  *rest = end == std::string_view::npos ? std::string_view() : Slice(*rest, end + 1);
  return part;
}

}  // namespace gmt::session

#endif  // GMT_SESSION_SLICE_H_
