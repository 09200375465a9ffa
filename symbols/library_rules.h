// symbols/library_rules.h
//
// LibraryRules: identifies frames of libraries that allocate device memory of their own: NCCL,
// cuBLAS, PyTorch's caching allocator, ... The rules are text: symbols/library_rules.txt, which is
// built in and documents the format.
//
// Thread safety: const methods may be called from any thread.

#ifndef GMT_SYMBOLS_LIBRARY_RULES_H_
#define GMT_SYMBOLS_LIBRARY_RULES_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "symbols/frame_pattern.h"

namespace gmt::symbols {

class LibraryRules {
 public:
  // Returns the built-in rules.
  static const LibraryRules& BuiltIn();
  // `name`: name of the text in errors.
  static absl::StatusOr<LibraryRules> Parse(std::string_view text, const std::string& name);

  // Returns "" for a frame that matches no rule.
  std::string_view LibraryOf(const FrameView& frame) const;
  size_t size() const { return rules_.size(); }

 private:
  std::vector<std::pair<std::string, FramePattern>> rules_;
};

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_LIBRARY_RULES_H_
