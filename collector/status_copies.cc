#include "collector/status_copies.h"

#include <utility>

namespace gmt::collector {
namespace {

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

}  // namespace

void StatusCopies::UpdateTrends() {
  const uint64_t now = sources_.clock->NowNs();
  rate_.Update(now, sources_.drain->losses().delivered);
  if (!growth_.IsDue(now)) return;
  std::vector<uint64_t> live;
  for (const HeapCounts& heap : sources_.recorder->tally().heaps()) live.push_back(heap.live_bytes);
  growth_.Keep(now, std::move(live));
}

gmt::LeakAnswer StatusCopies::CurrentLeakAnswer() {
  if (sources_.recorder->leaks() != nullptr) return sources_.recorder->leaks()->Answer();
  gmt::LeakAnswer none;
  none.set_text(
      "a running program is searched for leaks only if it was "
      "attached to or its recording is "
      "bounded; "
      "search the recording: gpumemtrace leaks");
  return none;
}

control::Copy StatusCopies::Make(uint32_t kinds, uint64_t began_ns, bool drained,
                                 const OutputFile& output, const Exactness& exactness) {
  control::Copy copy;
  copy.written = (kinds & control::Mailbox::kWritten) != 0;
  copy.status = MakeStatus(began_ns, drained, output);
  copy.status.set_inexact_because(exactness.inexact_because);
  if ((kinds & control::Mailbox::kSites) != 0) copy.sites = CopySites();
  if ((kinds & control::Mailbox::kLeaks) != 0) copy.leaks = CurrentLeakAnswer();
  ++copies_;
  copy_ns_ += sources_.clock->NowNs() - began_ns;
  return copy;
}

control::Status StatusCopies::MakeStatus(uint64_t now_ns, bool drained, const OutputFile& output) {
  const EventTranslator& translator = sources_.recorder->translator();
  control::Status status;
  status.set_t_ns(translator.Time(now_ns));
  status.set_newest_t_ns(translator.Time(sources_.recorder->newest_ns()));
  AddHeaps(now_ns, &status);
  status.set_sites(sources_.recorder->tally().site_count());
  AddDevices(&status);
  *status.mutable_losses() = MakeLosses(sources_.session.control(), sources_.drain->losses());
  status.set_ring_capacity(sources_.drain->capacity());
  status.set_events_per_second(rate_.rate());
  const uint64_t newest = sources_.recorder->newest_ns();
  if (!drained && now_ns > newest) status.set_lag_ns(now_ns - newest);
  status.set_recording_bytes(sources_.recorder->bytes_written());
  status.set_stalled(output.stalled());
  if (output.stalled()) status.set_stall_reason(output.stall_reason());
  status.set_snapshots(sources_.recorder->snapshots());
  status.set_session_bytes(sources_.session.MemoryBytes());
  status.set_copies(copies_);
  status.set_copy_ns(copy_ns_);
  return status;
}

void StatusCopies::AddHeaps(uint64_t now_ns, control::Status* status) const {
  uint64_t live = 0;
  const std::vector<HeapCounts>& heaps = sources_.recorder->tally().heaps();
  for (size_t i = 0; i < heaps.size(); ++i) {
    control::HeapStatus* heap = status->add_heaps();
    Fill(heaps[i], sources_.recorder->translator(), heap);
    heap->set_growth_bytes_per_second(growth_.PerSecond(now_ns, i, heaps[i].live_bytes));
    live += heaps[i].live_count;
  }
  status->set_live_allocations(live);
}

void StatusCopies::AddDevices(control::Status* status) const {
  gmt::Facts facts;
  sources_.devices->AddTo(sources_.recorder->devices(), &facts);
  for (const gmt::Device& known : facts.devices()) {
    control::DeviceStatus* device = status->add_devices();
    device->set_index(known.index());
    device->set_name(known.name());
    device->set_uuid(known.uuid());
    device->set_pci_bus_id(known.pci_bus_id());
    if (known.has_total_bytes()) device->set_total_bytes(known.total_bytes());
    if (known.has_physical_index()) device->set_physical_index(known.physical_index());
    for (const auto& [place, sample] : sources_.recorder->samples()) {
      if (!sample.has_device() || sample.device() != known.index() || !sample.has_used_bytes())
        continue;
      device->set_used_bytes(sample.used_bytes());
      device->set_source(sample.source());
    }
  }
}

std::vector<control::SiteRow> StatusCopies::CopySites() {
  std::vector<control::SiteRow> rows;
  const Tally& tally = sources_.recorder->tally();
  rows.reserve(tally.site_count());
  for (size_t i = 0; i < tally.site_count(); ++i) {
    const SiteCounts site = tally.site(i);
    control::SiteRow& row = rows.emplace_back();
    row.heap = site.heap;
    row.other = site.stack == kOtherStack;
    if (!row.other) row.stack = sources_.recorder->stacks().Translate(site.stack);
    row.live_bytes = site.live_bytes;
    row.live_count = site.live_count;
    row.allocations = site.allocations;
    row.allocated_bytes = site.allocated_bytes;
  }
  return rows;
}

}  // namespace gmt::collector
