#include "collector/output/recording_output.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gmt::collector {
namespace {

constexpr uint64_t kCheckEvery = kSecond;  // whether the file is still there
constexpr uint64_t kPartsRetryNs = 10 * kSecond;
constexpr uint64_t kDiskWait = 50 * kMillisecond;

}  // namespace

RecordingOutput::RecordingOutput(OutputFile* file, Clock* clock, CreateNext create_next,
                                 PartFiles* parts, const HistoryLimits& limits)
    : file_(file), clock_(clock), create_next_(std::move(create_next)), parts_(parts) {
  if (parts_ != nullptr && limits.bounded()) history_.emplace(limits, clock_->NowNs());
}

bool RecordingOutput::IsWritable() {
  while (true) {
    if (ending_ == nullptr && !file_->stalled() && !unpublished_) return true;
    const absl::Status status = Retry();
    if (ending_ == nullptr && !file_->stalled()) return true;
    // New events are worth more than the oldest part.
    if (!absl::IsResourceExhausted(status) || !DropOldestPart()) return false;
  }
}

absl::Status RecordingOutput::Complete(absl::Status status, uint64_t patience_ns) {
  parts_retry_ns_ = 0;
  if (unpublished_) status = Retry();
  for (uint64_t waited = 0; !status.ok() && waited < patience_ns; waited += kDiskWait) {
    status = Retry();
    if (!status.ok()) clock_->Wait(kDiskWait);
  }
  return status;
}

absl::Status RecordingOutput::Retry() {
  if (ending_ != nullptr) {
    if (absl::Status status = ending_file_->Retry(); !status.ok()) return status;
    ending_ = nullptr;
    ending_file_ = nullptr;
  }
  if (absl::Status status = file_->Retry(); !status.ok()) return status;
  return unpublished_ ? PublishPart() : absl::OkStatus();
}

absl::Status RecordingOutput::PublishPart() {
  const uint64_t now = clock_->NowNs();
  if (now < parts_retry_ns_) return absl::OkStatus();
  absl::Status status = parts_->Publish(history_->newest() - 1);
  unpublished_ = !status.ok();
  parts_problem_ = std::string(status.message());
  parts_retry_ns_ = status.ok() ? 0 : now + kPartsRetryNs;
  return status;
}

absl::Status RecordingOutput::CheckIfDue() {
  const uint64_t now = clock_->NowNs();
  if (now - checked_ns_ < kCheckEvery) return absl::OkStatus();
  checked_ns_ = now;
  return Check();
}

// The result is sticky, because a truncated file grows past its old size again.
absl::Status RecordingOutput::Check() {
  if (absl::Status status = file_->Check(); !status.ok()) problem_ = std::string(status.message());
  if (problem_.empty()) return absl::OkStatus();
  if (create_next_) {
    if (auto next = create_next_(); next.ok()) next_ = *std::move(next);
  }
  return absl::DataLossError(absl::StrCat("the recording ", problem_));
}

const char* RecordingOutput::WhyToEndPart(uint64_t bytes, bool has_events) {
  if (!history_.has_value() || unpublished_) return nullptr;
  DropParts();
  const uint64_t now = clock_->NowNs();
  return now < parts_retry_ns_ ? nullptr : history_->WhyToEnd(bytes, has_events, now);
}

std::unique_ptr<OutputFile> RecordingOutput::CreatePart() {
  auto next = parts_->Create();
  if (next.ok()) return *std::move(next);
  parts_problem_ = std::string(next.status().message());
  parts_retry_ns_ = clock_->NowNs() + kPartsRetryNs;
  return nullptr;
}

void RecordingOutput::BeginPart(OutputFile* file, std::unique_ptr<format::Sink> ending,
                                uint64_t base_bytes) {
  ending_ = std::move(ending);
  ending_file_ = std::exchange(file_, file);
  history_->BeginPart(ending_file_->size(), base_bytes, clock_->NowNs());
  unpublished_ = true;
  IsWritable();
  DropParts();
}

void RecordingOutput::DropParts() {
  if (unpublished_) return;  // the previous part does not have its own name yet
  while (const auto part = history_->TakeDropped(clock_->NowNs())) parts_->Remove(*part);
}

bool RecordingOutput::DropOldestPart() {
  // The newest of the older parts is the one being ended, or does not have its name yet.
  if (!history_.has_value() || history_->older_count() < (unpublished_ ? 2u : 1u)) return false;
  const auto part = history_->TakeOldest();
  parts_->Remove(*part);
  return true;
}

std::string RecordingOutput::Note(const std::string& first) const {
  std::vector<std::string> notes;
  if (!first.empty()) notes.push_back(first);
  if (!problem_.empty()) notes.push_back(absl::StrCat("the file ", problem_));
  if (!parts_problem_.empty())
    notes.push_back(absl::StrCat("its size is not bounded: ", parts_problem_));
  if (file_->stalls() > 0) {
    notes.push_back(absl::StrCat("writing failed ", file_->stalls(), " time(s), last: ",
                                 file_->stall_reason(), "; events from then may be missing"));
  }
  return absl::StrJoin(notes, "; ");
}

}  // namespace gmt::collector
