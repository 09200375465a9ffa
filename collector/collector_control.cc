// What clients of the control socket receive and may request (collector/mailbox/mailbox.h).

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collector/collector.h"
#include "format/definitions_builder.h"
#include "session/attach.h"
#include "session/slice.h"

namespace gmt::collector {
namespace {

using control::Mailbox;

void Fill(const HeapCounts& counts, const EventTranslator& translator, control::HeapStatus* heap) {
  if (counts.device != session::kNoDevice) heap->set_device(counts.device);
  heap->set_heap(counts.heap);
  heap->set_live_bytes(counts.live_bytes);
  heap->set_live_count(counts.live_count);
  heap->set_peak_bytes(counts.peak_bytes);
  if (counts.peak_ns != 0) heap->set_peak_t_ns(translator.Time(counts.peak_ns));
  heap->set_allocations(counts.allocations);
  heap->set_allocated_bytes(counts.allocated_bytes);
  heap->set_frees(counts.frees);
  heap->set_failures(counts.failed);
  if (counts.peak_reported_reserved == 0) return;
  heap->set_reserved_bytes(counts.reported_reserved);
  heap->set_peak_reserved_bytes(counts.peak_reported_reserved);
}

// Allows only what the collector itself implements; the other options are fixed when the session is
// created.
absl::Status CheckChangeable(std::string_view text) {
  if (text.empty()) return absl::InvalidArgumentError("no option is named");
  while (!text.empty()) {
    const std::string_view pair = session::Cut(&text, ',');
    const std::string_view key = pair.substr(0, pair.find('='));
    if (key != "snapshot") {
      return absl::InvalidArgumentError(absl::StrCat(
          "the option ", std::string(key), " cannot be changed while a program is recorded"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void Collector::UpdateTrends() {
  const uint64_t now = deps_.clock->NowNs();
  rate_.Update(now, drain_.losses().delivered);
  if (!trend_.IsDue(now)) return;
  std::vector<uint64_t> live;
  for (const HeapCounts& heap : recorder_.tally().heaps()) live.push_back(heap.live_bytes);
  trend_.Keep(now, std::move(live));
}

void Collector::SnapshotIfDue() {
  const char* reason = policy_.Due(deps_.clock->NowNs(), recorder_.tally().heaps());
  if (reason != nullptr) AddSnapshot(reason, reason);
}

void Collector::ServeMailbox(bool drained) {
  if (deps_.mailbox == nullptr) return;
  const uint64_t now = deps_.clock->NowNs();
  if (const uint32_t kinds = deps_.mailbox->TakeRequestedKinds(now); kinds != 0)
    Publish(kinds, drained);
  if (!deps_.mailbox->has_requests()) return;
  for (const Mailbox::QueuedRequest& asked : deps_.mailbox->TakeRequests()) {
    control::Reply reply = HandleRequest(asked.request, drained);
    reply.set_id(asked.request.id());
    deps_.mailbox->Answer(asked.client, std::move(reply));
  }
}

gmt::LeakAnswer Collector::CurrentLeakAnswer() {
  if (recorder_.leaks() != nullptr) return recorder_.leaks()->Answer();
  gmt::LeakAnswer none;
  none.set_text(
      "a running program is searched for leaks only if it was attached to or its recording is "
      "bounded; "
      "search the recording: gpumemtrace leaks");
  return none;
}

void Collector::Publish(uint32_t kinds, bool drained) {
  const uint64_t began = deps_.clock->NowNs();
  control::Copy copy;
  copy.written = (kinds & Mailbox::kWritten) != 0;
  if (copy.written && !output_->stalled()) Flush(began);  // if the disk is full, the status says so
  copy.status = MakeStatus(began, drained);
  if ((kinds & Mailbox::kSites) != 0) copy.sites = CopySites();
  if ((kinds & Mailbox::kLeaks) != 0) copy.leaks = CurrentLeakAnswer();
  deps_.mailbox->Publish(std::move(copy));
  ++copies_;
  copy_ns_ += deps_.clock->NowNs() - began;
}

control::Status Collector::MakeStatus(uint64_t now_ns, bool drained) {
  const EventTranslator& translator = recorder_.translator();
  control::Status status;
  status.set_t_ns(translator.Time(now_ns));
  status.set_newest_t_ns(translator.Time(recorder_.newest_ns()));
  uint64_t live = 0;
  const std::vector<HeapCounts>& heaps = recorder_.tally().heaps();
  for (size_t i = 0; i < heaps.size(); ++i) {
    control::HeapStatus* heap = status.add_heaps();
    Fill(heaps[i], translator, heap);
    heap->set_growth_bytes_per_second(trend_.PerSecond(now_ns, i, heaps[i].live_bytes));
    live += heaps[i].live_count;
  }
  status.set_live_allocations(live);
  status.set_sites(recorder_.tally().site_count());
  AddDevices(&status);
  *status.mutable_losses() = MakeLosses(deps_.session.control(), drain_.losses());
  status.set_ring_capacity(drain_.capacity());
  status.set_events_per_second(rate_.rate());
  const uint64_t newest = recorder_.newest_ns();
  if (!drained && now_ns > newest) status.set_lag_ns(now_ns - newest);
  status.set_recording_bytes(recorder_.bytes_written());
  status.set_stalled(output_->stalled());
  if (output_->stalled()) status.set_stall_reason(output_->stall_reason());
  status.set_snapshots(recorder_.snapshots());
  status.set_session_bytes(deps_.session.MemoryBytes());
  status.set_copies(copies_);
  status.set_copy_ns(copy_ns_);
  status.set_inexact_because(ExactnessNow().inexact_because);
  return status;
}

void Collector::AddDevices(control::Status* status) const {
  gmt::Facts facts;
  devices_.AddTo(recorder_.devices(), &facts);
  for (const gmt::Device& known : facts.devices()) {
    control::DeviceStatus* device = status->add_devices();
    device->set_index(known.index());
    device->set_name(known.name());
    device->set_uuid(known.uuid());
    device->set_pci_bus_id(known.pci_bus_id());
    if (known.has_total_bytes()) device->set_total_bytes(known.total_bytes());
    if (known.has_physical_index()) device->set_physical_index(known.physical_index());
    for (const auto& [place, sample] : recorder_.samples()) {
      if (!sample.has_device() || sample.device() != known.index() || !sample.has_used_bytes())
        continue;
      device->set_used_bytes(sample.used_bytes());
      device->set_source(sample.source());
    }
  }
}

std::vector<control::SiteRow> Collector::CopySites() {
  std::vector<control::SiteRow> rows;
  const Tally& tally = recorder_.tally();
  rows.reserve(tally.site_count());
  for (size_t i = 0; i < tally.site_count(); ++i) {
    const SiteCounts site = tally.site(i);
    control::SiteRow& row = rows.emplace_back();
    row.heap = site.heap;
    row.other = site.stack == kOtherStack;
    if (!row.other) row.stack = recorder_.stacks().Translate(site.stack);
    row.live_bytes = site.live_bytes;
    row.live_count = site.live_count;
    row.allocations = site.allocations;
    row.allocated_bytes = site.allocated_bytes;
  }
  return rows;
}

control::Reply Collector::HandleRequest(const control::Request& request, bool drained) {
  control::Reply reply;
  const uint64_t now = deps_.clock->NowNs();
  switch (request.what_case()) {
    case control::Request::kSnapshot: {
      const Exactness exactness = ExactnessNow();
      control::SnapshotDone* done = reply.mutable_snapshot();
      done->set_name(AddSnapshot(request.snapshot().name(), "request"));
      done->set_t_ns(recorder_.translator().Time(recorder_.newest_ns()));
      done->set_exact(exactness.inexact_because.empty());
      done->set_inexact_because(exactness.inexact_because);
      done->set_recording(deps_.output_path);
      if (output_->stalled()) {
        reply.set_error(absl::StrCat("the snapshot is kept until the recording can be written: ",
                                     output_->stall_reason()));
      }
      break;
    }
    case control::Request::kMark: {
      const control::SetMark& mark = request.mark();
      recorder_.AddMark(drained ? now : recorder_.newest_ns(), mark.name(),
                        mark.has_index() ? std::optional<uint64_t>(mark.index()) : std::nullopt);
      SnapshotAtMark(mark.name(), now);
      recorder_.Flush();
      reply.mutable_done();
      break;
    }
    case control::Request::kOptions: {
      if (absl::Status status = ChangeOptions(request.options().text(), now); status.ok()) {
        reply.mutable_done();
      } else {
        reply.set_error(std::string(status.message()));
      }
      break;
    }
    default:
      // The recording ends at the next round; the socket closes when it is complete.
      if (attach_ != 0) {
        session::EndAttach(&deps_.session.control(), attach_);
        reply.mutable_done();
        break;
      }
      reply.set_error(
          "the process is recorded from its start by the preloaded library, until it ends; only "
          "what "
          "was attached to can be detached from");
  }
  return reply;
}

absl::Status Collector::ChangeOptions(const std::string& text, uint64_t now_ns) {
  if (absl::Status status = CheckChangeable(text); !status.ok()) return status;
  session::Options options = options_;
  std::string wrong;
  session::ParseOptions(
      text, &options,
      [](void* to, const session::OptionError& error) {
        *static_cast<std::string*>(to) = absl::StrCat(std::string(error.pair), ": ", error.why);
      },
      &wrong);
  if (!wrong.empty()) return absl::InvalidArgumentError(wrong);
  options_ = options;
  policy_.Follow(options_, now_ns);
  return absl::OkStatus();
}

}  // namespace gmt::collector
