#include "symbols/library_rules.h"

#include "symbols/builtin_frame_rules.h"

namespace gmt::symbols {

const LibraryRules& LibraryRules::BuiltIn() {
  // A test parses the same text, so an error here, which would hide all libraries, cannot go
  // unnoticed.
  static const LibraryRules* const rules =
      new LibraryRules(Parse(BuiltInLibraryRules(), "library_rules.txt").value_or(LibraryRules()));
  return *rules;
}

absl::StatusOr<LibraryRules> LibraryRules::Parse(std::string_view text, const std::string& name) {
  LibraryRules rules;
  const absl::Status status = ForEachRule(text, name, [&](std::string_view line) {
    std::string library = TakeRuleName(&line);
    auto pattern = FramePattern::Parse(line, library);
    if (pattern.ok()) rules.rules_.emplace_back(std::move(library), *std::move(pattern));
    return pattern.status();
  });
  if (!status.ok()) return status;
  return rules;
}

std::string_view LibraryRules::LibraryOf(const FrameView& frame) const {
  for (const auto& [library, pattern] : rules_) {
    if (pattern.Fits(frame)) return library;
  }
  return "";
}

}  // namespace gmt::symbols
