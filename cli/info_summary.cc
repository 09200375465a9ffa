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
    switch (event.kind) {
      case ALLOC:
        ++alloc;
        ++heaps[std::string(definitions_.string(event.heap))].allocations;
        break;
      case FREE:
        ++free;
        ++heaps[std::string(definitions_.string(event.heap))].frees;
        break;
      case FREE_DONE:  // the second half of a free, and its result
        if (event.result != 0) ++free_failed;
        break;
      case ALLOC_FAILED:
        ++alloc_failed;
        if (analysis::LackedMemory(event)) ++out_of_memory;
        break;
      case ROLE:
        ++role;
        break;
      case STACK_LINE:
        break;
      default:
        ++other;
    }
  }
  return absl::OkStatus();
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

}  // namespace gmt::cli
