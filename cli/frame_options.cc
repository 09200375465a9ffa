#include "cli/frame_options.h"

#include "absl/strings/str_cat.h"

namespace gmt::cli {

void FrameOptions::AddTo(Command& command) {
  command.Flag("--raw-frames", &raw, "show every frame of a stack, without folding");
  command.Option("--frames-rules", &rules_file, "FILE",
                 "file of rules for folding frames, applied before the built-in ones");
}

absl::StatusOr<symbols::FrameRules> FrameOptions::Rules() const {
  if (rules_file.empty()) return symbols::FrameRules::BuiltIn();
  auto rules = symbols::FrameRules::WithFile(rules_file);
  if (rules.ok()) return rules;
  return absl::Status(rules.status().code(),
                      absl::StrCat("--frames-rules: ", rules.status().message()));
}

}  // namespace gmt::cli
