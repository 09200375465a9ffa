#include "interop/timeline/timeline.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/loop/phase_spans.h"
#include "analysis/loop/phases.h"
#include "analysis/text.h"
#include "interop/profile/layer_selection.h"
#include "interop/timeline/timeline_counters.h"

namespace gmt::interop {
namespace {

using analysis::Trace;
using Slice = Timeline::Slice;
using Instant = Timeline::Instant;
using Track = Timeline::Track;

// Adds the slices as tracks in which they nest: those that overlap without nesting, as ranges of
// NVTX may, go to further tracks of the same name and thread. The first track has the instants.
// A slice that ends before it begins, as in an event log with wrong times, becomes empty.
void AddTracks(std::vector<Track>& tracks, const std::string& name, std::optional<uint32_t> thread,
               std::vector<Slice> slices, std::vector<Instant> instants) {
  for (Slice& slice : slices) slice.end_ns = std::max(slice.end_ns, slice.begin_ns);
  std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return std::make_tuple(a.begin_ns, -a.end_ns) < std::make_tuple(b.begin_ns, -b.end_ns);
  });
  std::vector<Track> nested = {{name, thread, {}, std::move(instants)}};
  std::vector<std::vector<int64_t>> open(1);  // ends of the open slices of each track
  for (Slice& slice : slices) {
    size_t lane = 0;
    for (;; ++lane) {
      if (lane == nested.size()) {
        nested.push_back({name, thread, {}, {}});
        open.emplace_back();
      }
      while (!open[lane].empty() && open[lane].back() <= slice.begin_ns) open[lane].pop_back();
      if (open[lane].empty() || slice.end_ns <= open[lane].back()) break;
    }
    open[lane].push_back(slice.end_ns);
    nested[lane].slices.push_back(std::move(slice));
  }
  for (Track& track : nested) {
    if (!track.slices.empty() || !track.instants.empty()) tracks.push_back(std::move(track));
  }
}

void AddStepsAndPhases(std::vector<Track>& tracks, const analysis::Examination& examination) {
  const Trace& trace = examination.trace();
  const analysis::Cycles& cycles = examination.cycles();
  std::vector<Slice> steps, phases;
  for (size_t i = 0; i < cycles.cycles.size(); ++i) {
    const analysis::Cycle& cycle = cycles.cycles[i];
    steps.push_back({absl::StrCat("step ", i + 1), cycle.begin_t_ns, cycle.end_t_ns});
  }
  AddTracks(tracks, "steps", std::nullopt, std::move(steps), {});
  const analysis::PhaseSpans& spans = examination.phase_spans();
  std::vector<analysis::PhaseSpan> all = spans.spans;
  for (const auto& span : ForwardSpans(trace, examination.definitions(), cycles, spans))
    all.push_back(span);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::optional<size_t> forward;  // the latest forward pass whose backward pass is yet to come
  uint64_t flows = 0;
  for (const analysis::PhaseSpan& span : all) {
    if (span.begin >= span.end) continue;
    phases.push_back(
        {std::string(NameOf(span.phase)), trace.TimeOf(span.begin + 1), trace.TimeOf(span.end)});
    if (span.phase == analysis::Phase::kForward) forward = phases.size() - 1;
    if (span.phase != analysis::Phase::kBackward || !forward) continue;
    phases[*std::exchange(forward, std::nullopt)].flow = phases.back().flow = ++flows;
    phases.back().ends_flow = true;
  }
  AddTracks(tracks, "phases", std::nullopt, std::move(phases), {});
}

void AddThreads(std::vector<Track>& tracks, const analysis::Examination& examination) {
  const Trace& trace = examination.trace();
  struct OfThread {
    std::vector<Slice> slices;
    std::vector<Instant> instants;
  };
  std::map<uint32_t, OfThread> threads;
  for (const analysis::Range& range : trace.ranges) {
    threads[range.thread].slices.push_back({KindOfRange(range, examination.definitions()),
                                            std::max<int64_t>(range.begin_t_ns, 0),
                                            std::min(range.end_t_ns, trace.end_t_ns)});
  }
  for (const analysis::Mark& mark : trace.marks) {
    threads[mark.thread].instants.push_back(
        {mark.index ? absl::StrCat(mark.name, " ", *mark.index) : mark.name, mark.t_ns});
  }
  for (auto& [thread, events] : threads) {
    const bool is_known = thread != 0;
    AddTracks(tracks, is_known ? absl::StrCat("thread ", thread) : "ranges and marks",
              is_known ? std::optional(thread) : std::nullopt, std::move(events.slices),
              std::move(events.instants));
  }
}

void AddMoments(std::vector<Track>& tracks, const Trace& trace) {
  std::map<int32_t, std::vector<Instant>> failures;  // by device
  for (const analysis::FailedAllocation& failed : trace.failed) {
    failures[failed.device].push_back({absl::StrCat("out of memory: ", Bytes(failed.size),
                                                    " requested (", trace.heaps[failed.heap], ")"),
                                       failed.t_ns});
  }
  for (auto& [device, instants] : failures) {
    AddTracks(tracks, absl::StrCat(DeviceLabel(device), " failures"), std::nullopt, {},
              std::move(instants));
  }
  std::vector<Instant> moments;
  for (const analysis::NamedInstant& snapshot : trace.snapshots)
    moments.push_back({absl::StrCat("snapshot ", snapshot.name), snapshot.t_ns});
  for (const analysis::NamedInstant& gap : trace.gaps)
    moments.push_back({"events are missing here", gap.t_ns});
  std::stable_sort(moments.begin(), moments.end(),
                   [](const Instant& a, const Instant& b) { return a.t_ns < b.t_ns; });
  AddTracks(tracks, "snapshots and gaps", std::nullopt, {}, std::move(moments));
}

}  // namespace

Timeline MakeTimeline(const analysis::Examination& examination,
                      const analysis::Categories& categories, size_t max_points) {
  Timeline timeline;
  timeline.counters = TimelineCounters(examination.trace(), categories);
  for (Timeline::Counter& counter : timeline.counters)
    timeline.is_thinned |= ThinOut(counter.points, max_points);
  AddStepsAndPhases(timeline.tracks, examination);
  AddThreads(timeline.tracks, examination);
  AddMoments(timeline.tracks, examination.trace());
  return timeline;
}

}  // namespace gmt::interop
