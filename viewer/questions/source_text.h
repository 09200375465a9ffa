// viewer/questions/source_text.h
//
// SourceTexts: the lines of the program around one that a stack names, if they are available
// (analysis/stacks/source_line.h). No other file is read, whatever path is requested.
//
// Ownership: the examination must outlive it. Thread safety: one thread at a time.

#ifndef GMT_VIEWER_QUESTIONS_SOURCE_TEXT_H_
#define GMT_VIEWER_QUESTIONS_SOURCE_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "analysis/examination/examination.h"
#include "analysis/stacks/source_line.h"
#include "viewer/questions/queries.h"

namespace gmt::viewer {

class SourceTexts {
 public:
  static constexpr uint32_t kLinesAround = 4;
  static constexpr size_t kMaxColumns = 200;

  explicit SourceTexts(const analysis::Examination& examination)
      : definitions_(examination.definitions()), sources_(examination.trace().start_unix_ns) {}

  // Returns NOT_FOUND if no stack of the recording names the file.
  absl::StatusOr<SourceText> Around(const std::string& path, uint32_t line);

 private:
  bool IsNamed(const std::string& path);

  const format::Definitions& definitions_;
  analysis::SourceLines sources_;
  absl::flat_hash_set<std::string_view> named_;
  bool knows_named_ = false;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_SOURCE_TEXT_H_
