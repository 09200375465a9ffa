// The parts of a bounded history (collector/collector.h, collector/output/history.h).
//
//   EndPart()      creates the next part's file, completes the old part, writes the next base
//   RetryOutput()  when both are on disk, gives the recording's name to the next part
//   DropParts()    drops what exceeds the limits, oldest first
//
// Nothing is drained between EndPart() and the moment when both are on disk. A full disk is handled
// as without parts, but only after the older parts have been dropped to make room.

#include <utility>

#include "absl/strings/str_cat.h"
#include "collector/collector.h"
#include "format/definitions_builder.h"

namespace gmt::collector {
namespace {

constexpr uint64_t kPartsRetryNs = 10 * kSecond;

}  // namespace

bool Collector::OutputIsWritable() {
  while (true) {
    if (ending_ == nullptr && !output_->stalled() && !unpublished_) return true;
    const absl::Status status = RetryOutput();
    if (ending_ == nullptr && !output_->stalled()) return true;
    // New events are worth more than the oldest part.
    if (!absl::IsResourceExhausted(status) || !DropOldestPart()) return false;
  }
}

absl::Status Collector::RetryOutput() {
  if (ending_ != nullptr) {
    if (absl::Status status = ending_file_->Retry(); !status.ok()) return status;
    ending_ = nullptr;
    ending_file_ = nullptr;
  }
  if (absl::Status status = output_->Retry(); !status.ok()) return status;
  return unpublished_ ? PublishPart() : absl::OkStatus();
}

absl::Status Collector::PublishPart() {
  const uint64_t now = deps_.clock->NowNs();
  if (now < parts_retry_ns_) return absl::OkStatus();
  absl::Status status = deps_.parts->Publish(history_->newest() - 1);
  unpublished_ = !status.ok();
  parts_problem_ = std::string(status.message());
  parts_retry_ns_ = status.ok() ? 0 : now + kPartsRetryNs;
  return status;
}

void Collector::EndPartIfDue() {
  if (!history_.has_value() || unpublished_) return;
  const uint64_t now = deps_.clock->NowNs();
  DropParts();
  if (now < parts_retry_ns_) return;
  const char* why =
      history_->WhyToEnd(recorder_.bytes_of_part(), recorder_.has_events_of_part(), now);
  if (why != nullptr) EndPart(why);
}

void Collector::EndPart(const char* why) {
  auto next = deps_.parts->Create();
  if (!next.ok()) {
    parts_problem_ = std::string(next.status().message());
    parts_retry_ns_ = deps_.clock->NowNs() + kPartsRetryNs;
    return;
  }
  const session::Header& session = deps_.session.header();
  RequestNames();
  WriteNames();
  gmt::Facts end;
  end.set_ended_by(why);
  end.set_end_t_ns(static_cast<int64_t>(recorder_.newest_ns() - session.monotonic_ns));
  *end.mutable_losses() = MakeLosses(deps_.session.control(), drain_.losses());
  recorder_.AddFacts(end);
  recorder_.Flush();

  gmt::Header header = MakeHeader(session, info_);
  header.set_part(history_->newest() + 1);
  gmt::Facts facts = MakeStartFacts(session, info_);
  devices_.AddTo(recorder_.devices(), &facts);
  OutputFile* file = next->get();
  ending_ = recorder_.BeginPart(*std::move(next), header, facts, ExactnessNow(), drain_.losses());
  if (ending_ == nullptr) return;  // status() has the reason
  ending_file_ = std::exchange(output_, file);
  history_->BeginPart(ending_file_->size(), recorder_.bytes_of_part(), deps_.clock->NowNs());
  unpublished_ = true;
  OutputIsWritable();
  DropParts();
}

void Collector::DropParts() {
  if (unpublished_) return;  // the previous part does not have its own name yet
  while (const auto part = history_->TakeDropped(deps_.clock->NowNs())) deps_.parts->Remove(*part);
}

bool Collector::DropOldestPart() {
  // The newest of the older parts is the one being ended, or does not have its name yet.
  if (!history_.has_value() || history_->older_count() < (unpublished_ ? 2u : 1u)) return false;
  const auto part = history_->TakeOldest();
  deps_.parts->Remove(*part);
  return true;
}

}  // namespace gmt::collector
