#include "format/printable_visitor.h"

#include "format/event.h"
#include "format/printable.h"
#include "proto/gmt.pb.h"

namespace gmt::format {
namespace {

template <typename Message>
Message PrintableCopy(Message message) {
  MakePrintable(&message);
  return message;
}

}  // namespace

absl::Status PrintableVisitor::OnHeader(const Header& header) {
  return target_.OnHeader(PrintableCopy(header));
}

// Events themselves have no text, only ids of definitions.
absl::Status PrintableVisitor::OnEvents(const EventBatch& batch) {
  if (batch.samples.empty() && batch.snapshots.empty() && batch.gaps.empty())
    return target_.OnEvents(batch);
  EventBatch copy = batch;
  for (Sample& sample : copy.samples) MakePrintable(&sample);
  for (SnapshotTaken& snapshot : copy.snapshots) MakePrintable(&snapshot);
  for (Gap& gap : copy.gaps) MakePrintable(&gap);
  return target_.OnEvents(copy);
}

absl::Status PrintableVisitor::OnSnapshot(const Snapshot& snapshot) {
  return target_.OnSnapshot(PrintableCopy(snapshot));
}

absl::Status PrintableVisitor::OnFacts(const Facts& facts) {
  return target_.OnFacts(PrintableCopy(facts));
}

absl::Status PrintableVisitor::OnLosses(const Losses& losses) { return target_.OnLosses(losses); }

absl::Status PrintableVisitor::OnAggregates(const Aggregates& aggregates) {
  return target_.OnAggregates(PrintableCopy(aggregates));
}

}  // namespace gmt::format
