#include "collector/output/aggregates.h"

#include <cstddef>
#include <vector>

#include "format/columns.h"
#include "format/definitions_builder.h"
#include "proto/gmt.pb.h"

namespace gmt::collector {
namespace {

constexpr uint32_t kOtherSites = 1;  // bit of Sites.flags
constexpr uint64_t kFew = 10000;

gmt::HeapCounts MakeHeap(const HeapCounts& counts, const Segments& segments,
                         const EventTranslator& translator) {
  gmt::HeapCounts heap;
  heap.set_heap(counts.heap);
  if (counts.device != session::kNoDevice) heap.set_device(counts.device);
  heap.set_live_bytes(counts.live_bytes);
  heap.set_live_count(counts.live_count);
  heap.set_allocations(counts.allocations);
  heap.set_allocated_bytes(counts.allocated_bytes);
  heap.set_frees(counts.frees);
  heap.set_failed(counts.failed);
  heap.set_peak_bytes(counts.peak_bytes);
  heap.set_peak_count(counts.peak_count);
  if (counts.peak_bytes != 0) heap.set_peak_t_ns(translator.Time(counts.peak_ns));
  heap.set_allocated_at_most(counts.allocated_at_most);
  const Segments::Bytes& in_segments = segments.OnDevice(counts.device);
  if (IsDriverHeap(counts) && in_segments.peak != 0) {
    heap.set_peak_segment_bytes(in_segments.peak);
    heap.set_peak_segment_t_ns(translator.Time(in_segments.peak_ns));
  }
  if (counts.peak_reported_reserved == 0) return heap;
  heap.set_reported_allocated(counts.reported_allocated);
  heap.set_reported_reserved(counts.reported_reserved);
  heap.set_peak_reported_reserved(counts.peak_reported_reserved);
  return heap;
}

void AddSite(const SiteCounts& site, StackTranslator* stacks, gmt::Sites* sites) {
  const bool other = site.stack == kOtherStack;
  sites->set_count(sites->count() + 1);
  sites->add_heap(site.heap);
  sites->add_stack(other ? 0 : stacks->Translate(site.stack));
  sites->add_forward_stack(other ? 0 : stacks->Translate(site.forward_stack));
  sites->add_flags(other ? kOtherSites : 0);
  sites->add_live_bytes(site.live_bytes);
  sites->add_live_count(site.live_count);
  sites->add_allocations(site.allocations);
  sites->add_allocated_bytes(site.allocated_bytes);
  sites->add_frees(site.frees);
  sites->add_bytes_at_peak(site.bytes_at_peak);
  sites->add_count_at_peak(site.count_at_peak);
}

void Trim(gmt::Sites* sites) {
  format::TrimColumn(sites->mutable_heap());
  format::TrimColumn(sites->mutable_stack());
  format::TrimColumn(sites->mutable_forward_stack());
  format::TrimColumn(sites->mutable_flags());
  format::TrimColumn(sites->mutable_live_bytes());
  format::TrimColumn(sites->mutable_live_count());
  format::TrimColumn(sites->mutable_allocations());
  format::TrimColumn(sites->mutable_allocated_bytes());
  format::TrimColumn(sites->mutable_frees());
  format::TrimColumn(sites->mutable_bytes_at_peak());
  format::TrimColumn(sites->mutable_count_at_peak());
}

}  // namespace

gmt::Aggregates MakeHeapSums(const Tally& tally, const EventTranslator& translator) {
  gmt::Aggregates aggregates;
  for (const HeapCounts& heap : tally.heaps())
    *aggregates.add_heaps() = MakeHeap(heap, tally.segments(), translator);
  return aggregates;
}

gmt::Aggregates MakeAggregates(const Tally& tally, const EventTranslator& translator,
                               StackTranslator* stacks) {
  gmt::Aggregates aggregates = MakeHeapSums(tally, translator);
  std::vector<SiteCounts> others(tally.heaps().size());
  for (size_t heap = 0; heap < others.size(); ++heap) {
    others[heap].heap = static_cast<uint32_t>(heap);
    others[heap].stack = kOtherStack;
  }
  gmt::Sites* sites = aggregates.mutable_sites();
  for (size_t n = 0; n < tally.site_count(); ++n) {
    const SiteCounts site = tally.site(n);
    const bool small = site.live_bytes == 0 && site.bytes_at_peak == 0 &&
                       site.allocations < tally.heaps()[site.heap].allocations / kFew;
    if (!small && site.stack != kOtherStack) {
      AddSite(site, stacks, sites);
      continue;
    }
    SiteCounts& other = others[site.heap];
    other.live_bytes += site.live_bytes;
    other.live_count += site.live_count;
    other.allocations += site.allocations;
    other.allocated_bytes += site.allocated_bytes;
    other.frees += site.frees;
    other.bytes_at_peak += site.bytes_at_peak;
    other.count_at_peak += site.count_at_peak;
  }
  for (const SiteCounts& other : others) {
    if (other.allocations != 0) AddSite(other, stacks, sites);
  }
  Trim(sites);
  return aggregates;
}

}  // namespace gmt::collector
