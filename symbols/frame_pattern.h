// symbols/frame_pattern.h
//
// FramePattern: which frames a rule means, as text: "module=libnccl*", "file=*/torch/optim/* function=step".
// symbols/frame_rules.txt states the format.
//
// Thread safety: const methods from any thread.

#ifndef GMT_SYMBOLS_FRAME_PATTERN_H_
#define GMT_SYMBOLS_FRAME_PATTERN_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gmt::symbols {

// Any of these may be empty: not known.
struct FrameView {
  std::string_view function = {};  // demangled
  std::string_view module = {};    // path, or a named frame's module
  std::string_view file = {};      // source file
  std::string_view language = "c++";
};

class FramePattern {
 public:
  // What stands behind the first word of a rule. INVALID_ARGUMENT says what is wrong; `name`: the
  // first word, for messages.
  static absl::StatusOr<FramePattern> Parse(std::string_view text, const std::string& name);

  bool Fits(const FrameView& frame) const;

 private:
  enum class Field { kFunction, kModuleName, kModulePath, kFile, kLanguage };
  struct Condition {
    Field field;
    std::vector<std::string> parts;  // of the pattern, between its stars
  };

  static absl::StatusOr<Condition> ParseCondition(std::string_view* rest);

  std::vector<Condition> conditions_;
};

// A file of rules, whole. NOT_FOUND with the file's name where it cannot be read.
absl::StatusOr<std::string> ReadRules(const std::string& path);

// Calls `take` with each line that is no comment; an error of it gets `name` and the line's number.
absl::Status ForEachRule(std::string_view text, const std::string& name,
                         const std::function<absl::Status(std::string_view line)>& take);

// The first word of *line, in double quotes where it has blanks, goes out of it.
std::string TakeRuleName(std::string_view* line);

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_FRAME_PATTERN_H_
