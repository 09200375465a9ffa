// session/slice.h
//
// Slice: std::string_view::substr for code that must not throw. The exception that substr can throw
// would link the C++ runtime, with its own unwinder, into every traced process.

#ifndef GMT_SESSION_SLICE_H_
#define GMT_SESSION_SLICE_H_

#include <stddef.h>

#include <string_view>

namespace gmt::session {

// Returns up to `count` bytes of `text` from offset `from`, or "" if `from` is past its end.
constexpr std::string_view Slice(std::string_view text, size_t from,
                                 size_t count = std::string_view::npos) {
  if (from >= text.size()) return {};
  const size_t rest = text.size() - from;
  return {text.data() + from, count < rest ? count : rest};
}

// Returns the part of *rest before the first `separator` and removes both from *rest. Returns all
// of *rest if there is no separator.
constexpr std::string_view Cut(std::string_view* rest, char separator) {
  const size_t end = rest->find(separator);
  const std::string_view part = Slice(*rest, 0, end);
  *rest = end == std::string_view::npos ? std::string_view() : Slice(*rest, end + 1);
  return part;
}

}  // namespace gmt::session

#endif  // GMT_SESSION_SLICE_H_
