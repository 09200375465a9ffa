#include "cli/info_summary.h"

#include <algorithm>
#include <utility>

#include "analysis/trace/memory_event.h"
#include "proto/gmt.pb.h"

namespace gmt::cli {
namespace {

// Lists replace lists: later Facts with any device hold all devices.
void Merge(const Facts& later, Facts* facts) {
  if (later.argv_size() > 0) facts->clear_argv();
  if (later.devices_size() > 0) facts->clear_devices();
  if (later.settings_size() > 0) facts->clear_settings();
  if (later.libraries_size() > 0) facts->clear_libraries();
  if (later.sources_size() > 0) facts->clear_sources();
  if (later.options_size() > 0) facts->clear_options();
  facts->MergeFrom(later);
}

}  // namespace

absl::Status InfoSummary::OnHeader(const Header& value) {
  if (!std::exchange(has_header_, true)) header = value;
  facts.clear_ended_by();  // it describes the previous part
  ++parts;
  return absl::OkStatus();
}

absl::Status InfoSummary::OnEvents(const format::EventBatch& batch) {
  for (const format::Event& event : batch.events) {
    last_t_ns = std::max(last_t_ns, event.t_ns);
    cross_check_.OnEvent(event);
    Count({event.kind, event.heap, event.result, 1});
  }
  return absl::OkStatus();
}

// The cross-check compares the events themselves, if there is anything to compare them with.
bool InfoSummary::OnEventCounts(const std::vector<format::EventCount>& counts, int64_t t_ns) {
  last_t_ns = std::max(last_t_ns, t_ns);
  for (const format::EventCount& row : counts) {
    if (row.kind == WITNESS) return false;
    Count(row);
  }
  return true;
}

void InfoSummary::Count(const format::EventCount& row) {
  switch (row.kind) {
    case ALLOC:
      alloc += row.count;
      heaps[std::string(definitions_.string(row.heap))].allocations += row.count;
      break;
    case FREE:
      free += row.count;
      heaps[std::string(definitions_.string(row.heap))].frees += row.count;
      break;
    case FREE_DONE:  // the second half of a free, and its result
      if (row.result != 0) free_failed += row.count;
      break;
    case ALLOC_FAILED:
      alloc_failed += row.count;
      if (analysis::IsLackOfMemory(row.result)) out_of_memory += row.count;
      break;
    case ROLE:
      role += row.count;
      break;
    case STACK_LINE:
      break;
    default:
      other += row.count;
  }
}

absl::Status InfoSummary::OnSnapshot(const Snapshot& value) {
  last_t_ns = std::max(last_t_ns, value.t_ns());
  if (value.has_losses()) losses = value.losses();
  if (value.reason() == "part") return absl::OkStatus();  // repeats what the events hold
  snapshots.push_back(
      {value.name(), value.reason(), value.t_ns(), value.exact(), value.live().count()});
  return absl::OkStatus();
}

absl::Status InfoSummary::OnAggregates(const Aggregates& value) {
  const uint64_t events = alloc + free + free_failed + alloc_failed + role + other;
  if (parts == 1 && events == 0 && value.events() > 0) before = value;
  return absl::OkStatus();
}

absl::Status InfoSummary::OnFacts(const Facts& value) {
  cross_check_.OnFacts(value);
  Merge(value, &facts);
  if (value.has_losses()) losses = value.losses();
  return absl::OkStatus();
}

absl::Status InfoSummary::OnLosses(const Losses& value) {
  losses = value;
  return absl::OkStatus();
}

int64_t InfoSummary::duration_ns() const {
  return facts.has_end_t_ns() ? facts.end_t_ns() : last_t_ns;
}

bool InfoSummary::losses_add_up() const {
  return losses.written() == losses.delivered() + losses.overrun() + losses.holes() +
                                 losses.abandoned() + losses.backlog();
}

namespace {

absl::StatusOr<Summarized> BeginSummary(const interop::InputFile& file, answers::TextForm form) {
  auto input = interop::OpenInput(file);
  if (!input.ok()) return input.status();
  if (form == answers::TextForm::kPrintable) (*input)->MakeStringsPrintable();
  auto summary = std::make_unique<InfoSummary>(&(*input)->definitions());
  return Summarized{*std::move(input), std::move(summary)};
}

}  // namespace

absl::StatusOr<Summarized> Summarize(const std::string& path, answers::TextForm form) {
  const auto file = interop::OpenInputFile(path);
  if (!file.ok()) return file.status();
  if (file->format == interop::InputFile::Format::kRecording) {
    auto counted = BeginSummary(*file, form);
    if (!counted.ok()) return counted;
    const absl::StatusOr<bool> is_whole = counted->input->ReadCounts(*counted->summary);
    if (!is_whole.ok()) return is_whole.status();
    if (*is_whole) return counted;
  }
  auto read = BeginSummary(*file, form);
  if (!read.ok()) return read;
  if (absl::Status status = read->input->Read(*read->summary); !status.ok()) return status;
  return read;
}

}  // namespace gmt::cli
