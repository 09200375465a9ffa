// format/printable_visitor.h
//
// PrintableVisitor: passes a recording on with all text that is not in its definitions made safe to
// print (format/printable.h). Definitions do the same for theirs
// (Definitions::MakeStringsPrintable).
//
// Ownership: the target must outlive it. Thread safety: one thread at a time.

#ifndef GMT_FORMAT_PRINTABLE_VISITOR_H_
#define GMT_FORMAT_PRINTABLE_VISITOR_H_

#include "absl/status/status.h"
#include "format/recording_reader.h"

namespace gmt::format {

class PrintableVisitor : public RecordingVisitor {
 public:
  explicit PrintableVisitor(RecordingVisitor* target) : target_(*target) {}

  absl::Status OnHeader(const Header& header) override;
  absl::Status OnEvents(const EventBatch& batch) override;
  absl::Status OnSnapshot(const Snapshot& snapshot) override;
  absl::Status OnFacts(const Facts& facts) override;
  absl::Status OnLosses(const Losses& losses) override;
  absl::Status OnAggregates(const Aggregates& aggregates) override;

 private:
  RecordingVisitor& target_;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_PRINTABLE_VISITOR_H_
