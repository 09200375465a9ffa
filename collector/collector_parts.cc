// The parts of a bounded history (collector/collector.h, collector/output/history.h).
//
//   EndPart()      the next part's file is made; the old part gets its end; the next one its base
//   RetryOutput()  both are on disk: the next part takes the recording's name
//   DropParts()    what is too much goes, oldest first
//
// Nothing is drained between EndPart() and the moment when both are on disk: a full disk is met as
// it is without parts, after the older ones have been given up for it.

#include <utility>

#include "absl/strings/str_cat.h"
#include "collector/collector.h"
#include "format/definitions_builder.h"

namespace gmt::collector {
namespace {

constexpr uint64_t kTryPartsAgain = 10 * kSecond;

}  // namespace

bool Collector::OutputIsWritable() {
  while (true) {
    if (ending_ == nullptr && !output_->stalled() && !unpublished_) return true;
    const absl::Status status = RetryOutput();
    if (ending_ == nullptr && !output_->stalled()) return true;
    // What is new is worth more than the oldest.
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
  const uint64_t now = around_.clock->NowNs();
  if (now < parts_retry_ns_) return absl::OkStatus();
  absl::Status status = around_.parts->Publish(history_->newest() - 1);
  unpublished_ = !status.ok();
  parts_problem_ = std::string(status.message());
  parts_retry_ns_ = status.ok() ? 0 : now + kTryPartsAgain;
  return status;
}

void Collector::EndPartIfDue() {
  if (!history_.has_value() || unpublished_) return;
  const uint64_t now = around_.clock->NowNs();
  DropParts();
  if (now < parts_retry_ns_) return;
  const char* why =
      history_->WhyToEnd(recorder_.bytes_of_part(), recorder_.has_events_of_part(), now);
  if (why != nullptr) EndPart(why);
}

void Collector::EndPart(const char* why) {
  auto next = around_.parts->Create();
  if (!next.ok()) {
    parts_problem_ = std::string(next.status().message());
    parts_retry_ns_ = around_.clock->NowNs() + kTryPartsAgain;
    return;
  }
  const session::Header& session = around_.session.header();
  AskForNames();
  WriteNames();
  gmt::Facts end;
  end.set_ended_by(why);
  end.set_end_t_ns(static_cast<int64_t>(recorder_.newest_ns() - session.monotonic_ns));
  *end.mutable_losses() = MakeLosses(around_.session.control(), drain_.losses());
  recorder_.AddFacts(end);
  recorder_.Flush();

  gmt::Header header = MakeHeader(session, info_);
  header.set_part(history_->newest() + 1);
  gmt::Facts facts = MakeStartFacts(session, info_);
  devices_.AddTo(recorder_.devices(), &facts);
  OutputFile* file = next->get();
  ending_ = recorder_.BeginPart(*std::move(next), header, facts, ExactnessNow(), drain_.losses());
  if (ending_ == nullptr) return;  // the recording cannot be written: its status says why
  ending_file_ = std::exchange(output_, file);
  history_->BeginPart(ending_file_->size(), recorder_.bytes_of_part(), around_.clock->NowNs());
  unpublished_ = true;
  OutputIsWritable();
  DropParts();
}

void Collector::DropParts() {
  if (unpublished_) return;  // the part before the newest has no name of its own yet
  while (const auto part = history_->TakeDropped(around_.clock->NowNs()))
    around_.parts->Remove(*part);
}

bool Collector::DropOldestPart() {
  // The newest of the older ones is the one that is being ended, or has not got its name.
  if (!history_.has_value() || history_->older_count() < (unpublished_ ? 2u : 1u)) return false;
  const auto part = history_->TakeOldest();
  around_.parts->Remove(*part);
  return true;
}

}  // namespace gmt::collector
