#include "answers/diff/diff_answer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace gmt::answers {
namespace {

// Names the file instead of the side of the comparison.
absl::Status InFiles(const absl::Status& status, const Recording& base, const Recording& changed) {
  absl::string_view message = status.message();
  if (absl::ConsumePrefix(&message, "base: ")) {
    return absl::Status(status.code(), absl::StrCat(base.path(), ": ", message));
  }
  if (absl::ConsumePrefix(&message, "new: ")) {
    return absl::Status(status.code(), absl::StrCat(changed.path(), ": ", message));
  }
  return status;
}

}  // namespace

absl::StatusOr<DiffAnswer> DiffAnswer::Make(const Recording& base, const Recording& changed,
                                            const analysis::DiffOptions& options,
                                            std::optional<Limit> limit) {
  auto comparison = analysis::Compare(base.examination(), base.categories(), changed.examination(),
                                      changed.categories(), options);
  if (!comparison.ok()) return InFiles(comparison.status(), base, changed);
  DiffSource source;
  source.base_file = base.path();
  source.new_file = changed.path();
  source.base_lacks = base.lacks();
  source.new_lacks = changed.lacks();
  source.new_start_unix_ns = changed.trace().start_unix_ns;
  source.limit = limit;
  return DiffAnswer(*std::move(comparison), std::move(source));
}

DiffAnswer::DiffAnswer(analysis::Comparison comparison, DiffSource source)
    : comparison_(std::move(comparison)), source_(std::move(source)) {}

bool DiffAnswer::HasFailed() const { return answers::HasFailed(comparison_, source_); }

std::string DiffAnswer::Text(const Terminal& terminal, size_t top) const {
  return DiffText(comparison_, source_, top, terminal);
}

std::string DiffAnswer::Markdown(size_t top) const {
  return DiffMarkdown(comparison_, source_, top);
}

std::string DiffAnswer::Json() const { return DiffJson(comparison_, source_); }

}  // namespace gmt::answers
