// symbols/frame_pattern.h
//
// FramePattern: the frames to which a rule applies, as text: "module=libnccl*",
// "file=*/torch/optim/* function=step". symbols/frame_rules.txt documents the format.
//
// Thread safety: const methods may be called from any thread.

#ifndef GMT_SYMBOLS_FRAME_PATTERN_H_
#define GMT_SYMBOLS_FRAME_PATTERN_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gmt::symbols {

// Fields may be empty, which means unknown.
struct FrameView {
  std::string_view function = {};  // demangled
  std::string_view module = {};    // path, or the module of a named frame
  std::string_view file = {};      // source file
  std::string_view language = "c++";
};

class FramePattern {
 public:
  // Parses the part of a rule after its first word. Returns INVALID_ARGUMENT with the reason.
  // `name`: the first word, for messages.
  static absl::StatusOr<FramePattern> Parse(std::string_view text, const std::string& name);

  bool Fits(const FrameView& frame) const;

 private:
  enum class Field { kFunction, kModuleName, kModulePath, kFile, kLanguage };
  struct Condition {
    Field field;
    std::vector<std::string> parts;  // parts of the pattern between its stars
  };

  static absl::StatusOr<Condition> ParseCondition(std::string_view* rest);

  std::vector<Condition> conditions_;
};

// Reads a file of rules. Returns NOT_FOUND with the file name if it cannot be read, and
// INVALID_ARGUMENT if it is longer than 1 MiB.
absl::StatusOr<std::string> ReadRules(const std::string& path);

// Calls `take` for each line that is not a comment. Prefixes its errors with `name` and line
// number.
absl::Status ForEachRule(std::string_view text, const std::string& name,
                         const std::function<absl::Status(std::string_view line)>& take);

// Removes the first word from *line and returns it. A word with blanks is in double quotes.
std::string TakeRuleName(std::string_view* line);

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_FRAME_PATTERN_H_
