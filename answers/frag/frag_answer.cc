#include "answers/frag/frag_answer.h"

#include <cstdint>
#include <utility>

#include "analysis/stacks/source_line.h"
#include "answers/frag/frag_text.h"

namespace gmt::answers {

constexpr size_t kDefaultPins = 3;

absl::StatusOr<FragAnswer> FragAnswer::Make(const Recording& recording,
                                            const analysis::FragmentationOptions& options) {
  auto found = analysis::FindFragmentation(recording.examination(), options);
  if (!found.ok()) return recording.InFile(found.status());
  return FragAnswer(recording, ReplayEach(recording.examination(), *std::move(found)));
}

FragAnswer::FragAnswer(const Recording& recording, std::vector<DeviceFragmentation> devices)
    : recording_(&recording), devices_(std::move(devices)) {}

std::string FragAnswer::Text(const Terminal& terminal, size_t top) const {
  analysis::SourceLines sources(recording_->trace().start_unix_ns);
  return FragText(devices_, recording_->examination(), sources, recording_->path(),
                  top == 0 ? kDefaultPins : top, terminal);
}

std::string FragAnswer::Json(size_t top) const {
  analysis::SourceLines sources(recording_->trace().start_unix_ns);
  return FragJson(devices_, recording_->examination(), sources, recording_->path(),
                  top == 0 ? SIZE_MAX : top);
}

}  // namespace gmt::answers
