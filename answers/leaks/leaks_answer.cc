#include "answers/leaks/leaks_answer.h"

#include <algorithm>

#include "analysis/stacks/source_line.h"
#include "answers/leaks/leaks_text.h"

namespace gmt::answers {

namespace {

constexpr size_t kDefaultSuspects = 3;

// A live set without a history, as a memory profile of JAX is, has no births and no deaths.
bool ShowsHistory(const analysis::Trace& trace) {
  return trace.last_step() > 0 || trace.rows.count() == 0;
}

}  // namespace

LeaksAnswer::LeaksAnswer(const Recording& recording, const analysis::LeakOptions& options)
    : recording_(recording), report_(analysis::FindLeaks(recording.examination(), options)) {}

LeaksAnswer::LeaksAnswer(const Recording& recording) : LeaksAnswer(recording, {}) {}

absl::StatusOr<LeaksAnswer> LeaksAnswer::Make(const Recording& recording,
                                              const analysis::LeakOptions& options) {
  if (options.device) {
    if (absl::Status status = recording.examination().CheckGpu(*options.device); !status.ok())
      return status;
  }
  return LeaksAnswer(recording, options);
}

bool LeaksAnswer::HasLeak() const {
  return std::any_of(report_.suspects.begin(), report_.suspects.end(), [](const auto& suspect) {
    return suspect.tier != analysis::LeakTier::kPossible;
  });
}

std::string LeaksAnswer::Text(const Terminal& terminal, size_t top) const {
  analysis::SourceLines sources(recording_.trace().start_unix_ns);
  return LeaksText(report_,
                   {recording_.path(), top == 0 ? kDefaultSuspects : top, recording_.lacks(),
                    ShowsHistory(recording_.trace())},
                   sources, terminal);
}

std::string LeaksAnswer::Json(size_t top) const {
  analysis::SourceLines sources(recording_.trace().start_unix_ns);
  return LeaksJson(report_,
                   {recording_.path(), top == 0 ? report_.suspects.size() : top, recording_.lacks(),
                    ShowsHistory(recording_.trace())},
                   recording_.examination().stacks(), sources);
}

}  // namespace gmt::answers
