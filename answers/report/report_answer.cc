#include "answers/report/report_answer.h"

#include <utility>

#include "answers/report/report_text.h"

namespace gmt::answers {

constexpr size_t kReportRows = 10;

absl::StatusOr<ReportAnswer> ReportAnswer::Make(const Recording& recording,
                                                const analysis::ReportOptions& options) {
  analysis::ReportOptions with_sums = options;
  with_sums.sums = recording.sums();
  auto report = analysis::MakeReport(recording.examination(), recording.categories(), with_sums);
  if (!report.ok()) return recording.InFile(report.status());
  return ReportAnswer(recording, *std::move(report));
}

ReportAnswer::ReportAnswer(const Recording& recording, analysis::Report report)
    : recording_(&recording),
      report_(std::move(report)),
      lacks_(analysis::IsByCode(report_.by) ? recording.LacksWithoutBeforeAttach()
                                            : recording.lacks()) {
  lacks_.insert(lacks_.end(), recording.unnamed().begin(), recording.unnamed().end());
}

std::string ReportAnswer::Text(const Terminal& terminal, size_t top, FramesShown shown) const {
  return ReportText(report_, lacks_, top == 0 ? kReportRows : top, shown, terminal);
}

std::string ReportAnswer::Json(size_t top) const {
  return ReportJson(report_,
                    {recording_->path(), lacks_, &recording_->trace(), recording_->complete()},
                    top == 0 ? report_.rows.size() : top);
}

}  // namespace gmt::answers
