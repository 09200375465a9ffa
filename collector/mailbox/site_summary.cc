#include "collector/mailbox/site_summary.h"

#include <algorithm>
#include <utility>

#include "analysis/stacks/frames.h"

namespace gmt::control {
namespace {

constexpr double kNsPerSecond = 1e9;

double SortValue(TopOrder order, const Site& site) {
  switch (order) {
    case BY_GROWTH:
      return static_cast<double>(site.growth_bytes());
    case BY_RATE:
      return site.allocations_per_second();
    default:
      return static_cast<double>(site.live_bytes());
  }
}

}  // namespace

void AddFrames(const format::Definitions& names, uint32_t stack, size_t most, Site* site) {
  for (const analysis::FrameText& text : analysis::DescribeStack(names, stack)) {
    if (static_cast<size_t>(site->frames_size()) == most) return;
    control::Frame* frame = site->add_frames();
    frame->set_function(text.function.empty() ? text.Name() : text.function);
    frame->set_file(text.file);
    frame->set_line(text.line);
    frame->set_module(text.module);
    frame->set_python(text.is_python());
    frame->set_noise(text.is_noise());
  }
}

// Definitions may fail to fit together only if the collector is out of memory. Then names are
// missing, but nothing else.
void SiteSummary::AddNames(NameChunk chunk) {
  if (chunk.is_new_recording) *this = SiteSummary();
  if (chunk.definitions.has_value()) (void)names_.Add(*chunk.definitions);
  if (chunk.symbols.has_value()) (void)names_.Add(*chunk.symbols);
}

SiteSummary::Moment SiteSummary::MakeMoment(const Copy& copy) {
  Moment moment;
  moment.t_ns = copy.status.t_ns();
  for (const SiteRow& row : *copy.sites) {
    Counts& counts = moment.sites[{row.heap, row.stack, row.other}];
    counts.live_bytes += row.live_bytes;
    counts.live_count += row.live_count;
    counts.allocations += row.allocations;
    counts.allocated_bytes += row.allocated_bytes;
  }
  return moment;
}

void SiteSummary::Take(std::shared_ptr<const Copy> copy) {
  if (!copy->sites.has_value()) return;
  copy_ = std::move(copy);
  now_ = MakeMoment(*copy_);
  if (!has_base_) {
    base_ = next_base_ = now_;
    has_base_ = true;
  } else if (now_.t_ns - next_base_.t_ns >= kWindowNs) {
    base_ = std::exchange(next_base_, now_);
  }
}

Top SiteSummary::MakeTop(const Subscribe& subscription) const {
  Top top;
  if (copy_ == nullptr) return top;
  *top.mutable_status() = copy_->status;
  std::vector<std::pair<Key, Site>> sites;
  sites.reserve(now_.sites.size());
  const auto window_ns = static_cast<uint64_t>(std::max<int64_t>(now_.t_ns - base_.t_ns, 0));
  for (const auto& [key, counts] : now_.sites) {
    Site site;
    const auto before = base_.sites.find(key);
    const Counts then = before == base_.sites.end() ? Counts{} : before->second;
    site.set_live_bytes(counts.live_bytes);
    site.set_live_count(counts.live_count);
    site.set_allocations(counts.allocations);
    site.set_allocated_bytes(counts.allocated_bytes);
    site.set_growth_bytes(static_cast<int64_t>(counts.live_bytes - then.live_bytes));
    site.set_growth_ns(window_ns);
    if (window_ns > 0) {
      site.set_allocations_per_second(static_cast<double>(counts.allocations - then.allocations) *
                                      kNsPerSecond / static_cast<double>(window_ns));
    }
    sites.emplace_back(key, std::move(site));
  }
  top.set_sites_in_all(sites.size());
  const size_t rows = std::min<size_t>(subscription.rows(), sites.size());
  std::partial_sort(sites.begin(), sites.begin() + static_cast<ptrdiff_t>(rows), sites.end(),
                    [&](const auto& a, const auto& b) {
                      const double left = SortValue(subscription.order(), a.second);
                      const double right = SortValue(subscription.order(), b.second);
                      if (left != right) return left > right;
                      return std::pair(a.first.heap, a.first.stack) <
                             std::pair(b.first.heap, b.first.stack);
                    });
  for (size_t i = 0; i < rows; ++i) {
    auto& [key, site] = sites[i];
    if (key.heap < static_cast<uint32_t>(top.status().heaps_size())) {
      const HeapStatus& heap = top.status().heaps(static_cast<int>(key.heap));
      site.set_heap(heap.heap());
      if (heap.has_device()) site.set_device(heap.device());
    }
    site.set_stack(key.stack);
    site.set_other(key.other);
    AddFrames(names_, key.stack, kMaxFrames, &site);
    *top.add_sites() = std::move(site);
  }
  return top;
}

}  // namespace gmt::control
