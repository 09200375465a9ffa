// answers/report/report_answer.h
//
// ReportAnswer: what holds the memory (analysis/report/report.h).
//
// Ownership: the recording must outlive it. Thread safety: one thread at a time.

#ifndef GMT_ANSWERS_REPORT_REPORT_ANSWER_H_
#define GMT_ANSWERS_REPORT_REPORT_ANSWER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/report/report.h"
#include "answers/recording.h"
#include "answers/stacks/stack_text.h"
#include "answers/terminal.h"

namespace gmt::answers {

class ReportAnswer {
 public:
  static absl::StatusOr<ReportAnswer> Make(const Recording& recording,
                                           const analysis::ReportOptions& options = {});

  // Adds the devices of another answer about the same recording, made from another part of it.
  void Add(const ReportAnswer& other) { analysis::AddDevices(other.report_, &report_); }

  const analysis::Report& report() const { return report_; }
  // `top`: rows per device; 0: the default.
  std::string Text(const Terminal& terminal, size_t top = 0,
                   FramesShown shown = FramesShown::kFolded) const;
  // 0: all rows.
  std::string Json(size_t top = 0) const;

 private:
  ReportAnswer(const Recording& recording, analysis::Report report);

  const Recording* recording_;
  analysis::Report report_;
  std::vector<std::string> lacks_;
};

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_REPORT_REPORT_ANSWER_H_
