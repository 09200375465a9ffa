#include "analysis/loop/phases.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "analysis/loop/cycle_anchor.h"
#include "analysis/loop/phase_spans.h"
#include "analysis/median.h"
#include "analysis/stacks/frames.h"
#include "analysis/trace/recorded_time.h"

namespace gmt::analysis {
namespace {

constexpr char kStep[] = "Optimizer.step", kZeroGrad[] = "Optimizer.zero_grad",
               kBackward[] = "backward", kLoaderNext[] = "DataLoader.next",
               kRecordFunction[] = "record_function";

bool EndsWith(std::string_view text, std::string_view end) { return text.ends_with(end); }

// Frames of record_function itself and between it and the operator that it calls.
bool IsRecordFunction(const FrameText& frame) {
  return !frame.is_python() || EndsWith(frame.file, "torch/autograd/profiler.py") ||
         EndsWith(frame.file, "torch/_ops.py") || EndsWith(frame.file, "/contextlib.py");
}

std::string CallerOfRecordFunction(const format::Definitions& definitions, uint32_t stack) {
  for (const FrameText& frame : DescribeStack(definitions, stack)) {
    if (IsRecordFunction(frame)) continue;
    if (EndsWith(frame.file, "torch/optim/optimizer.py")) {
      return EndsWith(frame.function, "zero_grad") ? kZeroGrad : kStep;
    }
    if (EndsWith(frame.file, "torch/utils/data/dataloader.py")) return kLoaderNext;
    if (EndsWith(frame.file, "torch/profiler/profiler.py")) return "ProfilerStep";
    return absl::StrCat(frame.Name(), " (", frame.Place(), ")");
  }
  return kRecordFunction;
}

bool StartsWith(std::string_view text, std::string_view start) { return text.starts_with(start); }

// Returns the kinds of all ranges; each stack is examined once.
std::vector<std::string> KindsOf(const Trace& trace, const format::Definitions& definitions) {
  absl::flat_hash_map<uint32_t, std::string> by_stack;
  std::vector<std::string> kinds;
  kinds.reserve(trace.ranges.size());
  for (const Range& range : trace.ranges) {
    if (range.name != kRecordFunction) {
      kinds.push_back(KindOfRange(range, definitions));
      continue;
    }
    const auto [known, is_new] = by_stack.try_emplace(range.stack);
    if (is_new) known->second = CallerOfRecordFunction(definitions, range.stack);
    kinds.push_back(known->second);
  }
  return kinds;
}

class CycleFinder {
 public:
  CycleFinder(const Trace& trace, const RowKinds& kinds, const format::Definitions& definitions,
              const PhaseSpans& spans)
      : trace_(trace),
        kinds_(kinds),
        definitions_(definitions),
        spans_(spans),
        range_kinds_(KindsOf(trace, definitions)) {}

  Cycles Find() && {
    if (!ByMarks() && !ByNamedSteps() && !ByRanges(kStep) && !ByRanges(kZeroGrad) &&
        !ByRanges(kBackward) && !Infer(CyclesOfOptimizers(trace_, kinds_, definitions_)) &&
        !Infer(CyclesOfAnchors(trace_, kinds_, definitions_)))
      return {};
    PaintPhases();
    Walk();
    return std::move(found_);
  }

 private:
  struct Boundary {
    Step step = 0;
    int64_t t_ns = 0;
  };

  // The beginning of what is recorded, which may be hours after the program's start if older events
  // were dropped.
  Boundary Begin() const { return {0, trace_.first_t_ns.value_or(0)}; }

  bool ByMarks() {
    std::vector<Boundary> begins;
    for (const Mark& mark : trace_.marks) {
      if (mark.name == "step") begins.push_back({mark.step, mark.t_ns});
    }
    if (begins.size() < 2) return false;
    return Adopt("mark step", begins);
  }

  // Uses the beginnings of ranges named after steps, and the end of the last. Ranges nested in
  // others of the same name do not count.
  bool ByNamedSteps() {
    struct Steps {
      std::vector<Boundary> begins;
      Boundary end;
      uint64_t time_ns = 0;
    };
    std::map<std::tuple<std::string, uint32_t, uint32_t>, Steps> by_name;
    for (const Range& range : trace_.ranges) {
      std::string name = NameOfStep(range.name);
      if (name.empty() || range.end == kNever || range.begin_t_ns == INT64_MIN) continue;
      Steps& steps = by_name[{std::move(name), range.domain, range.thread}];
      if (!steps.begins.empty() && range.begin_t_ns < steps.end.t_ns) continue;
      steps.begins.push_back({range.begin, range.begin_t_ns});
      steps.end = {range.end, range.end_t_ns};
      steps.time_ns += Between(range.begin_t_ns, range.end_t_ns);
    }
    const auto most = std::max_element(by_name.begin(), by_name.end(), [](auto& a, auto& b) {
      const auto key = [](const Steps& s) { return std::pair(s.begins.size() > 1, s.time_ns); };
      return key(a.second) < key(b.second);
    });
    if (most == by_name.end() || most->second.begins.size() < 2) return false;
    const auto& [name, domain, thread] = most->first;
    most->second.begins.push_back(most->second.end);
    return Adopt(domain == 0 ? absl::StrCat("range ", name)
                             : absl::StrCat("range ", name, " (",
                                            std::string(definitions_.string(domain)), ")"),
                 most->second.begins);
  }

  // Uses the ends of ranges of a kind, from a single call site.
  bool ByRanges(std::string_view kind) {
    std::map<uint32_t, std::vector<Boundary>> by_site;
    for (size_t i = 0; i < trace_.ranges.size(); ++i) {
      const Range& range = trace_.ranges[i];
      if (range_kinds_[i] == kind && range.end != kNever) {
        by_site[range.stack].push_back({range.end, range.end_t_ns});
      }
    }
    std::vector<Boundary>* ends = nullptr;
    for (auto& [stack, boundaries] : by_site) {
      if (ends == nullptr || boundaries.size() > ends->size() ||
          (boundaries.size() == ends->size() && boundaries.back().t_ns > ends->back().t_ns)) {
        ends = &boundaries;
      }
    }
    if (ends == nullptr || ends->size() < 2) return false;
    ends->insert(ends->begin(), Begin());
    return Adopt(std::string(kind), *ends);
  }

  bool Infer(const InferredCycles& inferred) {
    if (inferred.ends.size() < 2) return false;
    std::vector<Boundary> ends = {Begin()};
    for (const Step end : inferred.ends) ends.push_back({end, trace_.TimeOf(end)});
    found_.inferred = true;
    return Adopt(inferred.source, ends);
  }

  bool Adopt(std::string source, std::vector<Boundary>& bounds) {
    std::sort(bounds.begin(), bounds.end(),
              [](const Boundary& a, const Boundary& b) { return a.step < b.step; });
    found_.source = std::move(source);
    for (size_t i = 1; i < bounds.size(); ++i) {
      found_.cycles.push_back(
          {bounds[i - 1].step, bounds[i].step, bounds[i - 1].t_ns, bounds[i].t_ns});
    }
    return true;
  }

  // ---- Phases

  void Paint(Step begin, Step end, Phase phase) {
    end = std::min(end, trace_.last_step());
    for (Step step = begin; step < end; ++step) phase_[step] = phase;
  }
  void PaintRanges(std::string_view kind, Phase phase) {
    for (size_t i = 0; i < trace_.ranges.size(); ++i) {
      if (range_kinds_[i] == kind) Paint(trace_.ranges[i].begin, trace_.ranges[i].end, phase);
    }
  }

  // Later phases overwrite earlier ones.
  void PaintPhases() {
    phase_.assign(trace_.last_step(), Phase::kOther);
    const std::vector<PhaseSpan> forwards = ForwardSpans(trace_, definitions_, found_, spans_);
    for (const PhaseSpan& span : forwards) Paint(span.begin, span.end, span.phase);
    forwards_ = PassesByCycle(forwards, Phase::kForward);
    backwards_ = PassesByCycle(spans_.spans, Phase::kBackward);
    PaintRanges(kLoaderNext, Phase::kOther);
    PaintRanges(kZeroGrad, Phase::kOther);
    for (const PhaseSpan& span : spans_.spans) Paint(span.begin, span.end, span.phase);
  }

  std::vector<uint64_t> PassesByCycle(const std::vector<PhaseSpan>& spans, Phase phase) const {
    std::vector<uint64_t> passes(found_.cycles.size());
    size_t cycle = 0;
    uint32_t last_pass = UINT32_MAX;
    for (const PhaseSpan& span : spans) {
      if (span.phase != phase || span.pass == last_pass) continue;
      last_pass = span.pass;
      while (cycle < passes.size() && found_.cycles[cycle].end <= span.begin) ++cycle;
      if (cycle < passes.size() && span.begin >= found_.cycles[cycle].begin) ++passes[cycle];
    }
    return passes;
  }

  // ---- Bytes

  struct DeviceState {
    DeviceCycles out;
    uint64_t live = 0;
    CycleUse* now = nullptr;
  };

  // Counts blocks of a framework if the device has any, otherwise everything except host memory.
  void FindDevices() {
    std::set<int32_t> with_blocks;
    for (const RowKind& kind : kinds_.all()) {
      if (kind.is_block()) with_blocks.insert(kind.device);
    }
    for (const RowKind& kind : kinds_.all()) {
      const bool counts = !kind.is_region() && kind.heap != kHostHeap &&
                          kind.is_block() == with_blocks.contains(kind.device);
      device_of_kind_.push_back(counts ? &devices_[kind.device] : nullptr);
    }
  }
  // Returns null if the row does not count.
  DeviceState* DeviceOf(RowId row) const { return device_of_kind_[kinds_.NumberOf(row)]; }

  void Walk() {
    FindDevices();
    const Rows& rows = trace_.rows;
    for (const RowId row : kinds_.from_before()) {
      if (DeviceState* device = DeviceOf(row)) device->live += rows.size[row];
    }
    size_t cycle = 0;
    for (Step step = 1; step <= trace_.last_step(); ++step) {
      while (cycle < found_.cycles.size() && step > found_.cycles[cycle].begin) BeginCycle(cycle++);
      const StepRecord record = trace_.steps[step - 1];
      if (record.row != kNoRow) Apply(record, step);
      if (cycle > 0 && step == found_.cycles[cycle - 1].end) End();
    }
    while (cycle < found_.cycles.size()) BeginCycle(cycle++);
    End();
    for (auto& [device, state] : devices_) {
      state.out.device = device;
      found_.devices.push_back(std::move(state.out));
    }
  }

  void BeginCycle(size_t cycle) {
    End();
    for (auto& [device, state] : devices_) {
      CycleUse use;
      use.live_begin = use.live_end = use.peak = state.live;
      use.peak_step = found_.cycles[cycle].begin;
      if (use.peak_step < phase_.size()) use.peak_phase = phase_[use.peak_step];
      state.now = &state.out.cycles.emplace_back(use);
    }
  }
  void End() {
    for (auto& [device, state] : devices_) {
      if (state.now == nullptr) continue;
      const size_t cycle = state.out.cycles.size() - 1;
      state.now->live_end = state.live;
      ForEachTime(state.now->phases[static_cast<size_t>(Phase::kForward)], forwards_[cycle]);
      ForEachTime(state.now->phases[static_cast<size_t>(Phase::kBackward)], backwards_[cycle]);
      state.now = nullptr;
    }
  }
  static void ForEachTime(PhaseUse& use, uint64_t times) {
    use.times = std::max<uint64_t>(times, 1);
    use.change /= static_cast<int64_t>(use.times);
  }

  void Apply(const StepRecord record, Step step) {
    DeviceState* const device = DeviceOf(record.row);
    if (device == nullptr) return;
    DeviceState& state = *device;
    const uint64_t bytes = trace_.rows.size[record.row];
    const uint64_t before = state.live;
    state.live += record.is_death ? -bytes : bytes;
    if (state.now == nullptr) return;
    const Phase phase = phase_[step - 1];
    PhaseUse& use = state.now->phases[static_cast<size_t>(phase)];
    if (!use.present) use = {true, before, 0, 1};
    use.peak = std::max(use.peak, state.live);
    // Sizes in a damaged or hostile recording can have any value, so sums of bytes may wrap.
    const auto change = static_cast<uint64_t>(use.change);
    use.change = static_cast<int64_t>(record.is_death ? change - bytes : change + bytes);
    if (state.live <= state.now->peak) return;
    state.now->peak = state.live;
    state.now->peak_step = step;
    state.now->peak_phase = phase;
  }

  const Trace& trace_;
  const RowKinds& kinds_;
  const format::Definitions& definitions_;
  const PhaseSpans& spans_;
  const std::vector<std::string> range_kinds_;
  Cycles found_;
  std::vector<Phase> phase_;                    // of step i+1
  std::vector<uint64_t> forwards_, backwards_;  // number of passes, by cycle
  std::map<int32_t, DeviceState> devices_;
  std::vector<DeviceState*> device_of_kind_;  // null for kinds that do not count
};

}  // namespace

std::string_view NameOf(Phase phase) {
  static constexpr std::array<std::string_view, kPhases> kNames = {
      "forward", "backward", "optimizer", "other", "evaluation", "init"};
  return kNames[static_cast<size_t>(phase)];
}

std::string InPhase(Phase phase) {
  return phase == Phase::kOther ? "outside of the phases" : "in " + std::string(NameOf(phase));
}

std::string KindOfRange(const Range& range, const format::Definitions& definitions) {
  if (range.name == kRecordFunction) return CallerOfRecordFunction(definitions, range.stack);
  // PyTorch's own names: "Optimizer.step#Adam.step", "ProfilerStep#3",
  // "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__".
  if (StartsWith(range.name, "Optimizer.step#")) return kStep;
  if (StartsWith(range.name, "Optimizer.zero_grad#")) return kZeroGrad;
  if (StartsWith(range.name, "ProfilerStep#")) return "ProfilerStep";
  if (StartsWith(range.name, "enumerate(DataLoader)#")) return kLoaderNext;
  return range.name;
}

std::string NameOfStep(std::string_view name) {
  constexpr std::string_view kNames[] = {"step",          "iteration",          "iter",
                                         "train_step",    "train_iteration",    "train_iter",
                                         "training_step", "training_iteration", "global_step"};
  name = name.substr(0, name.find_last_not_of("0123456789)]") + 1);
  name = name.substr(0, name.find_last_not_of(" _-#:=/.([") + 1);
  std::string plain(name);
  absl::AsciiStrToLower(&plain);
  std::replace(plain.begin(), plain.end(), ' ', '_');
  const bool is_known = std::find(std::begin(kNames), std::end(kNames), plain) != std::end(kNames);
  return is_known ? plain : "";
}

Cycles FindCycles(const Trace& trace, const RowKinds& kinds, const format::Definitions& definitions,
                  const PhaseSpans& spans) {
  return CycleFinder(trace, kinds, definitions, spans).Find();
}

TypicalCycle TypicalOf(const DeviceCycles& device) {
  const size_t first = device.cycles.size() > 2 ? 1 : 0;
  std::vector<uint64_t> peaks;
  std::vector<int64_t> growths;
  std::array<std::vector<uint64_t>, kPhases> phase_peaks;
  std::array<std::vector<int64_t>, kPhases> changes;
  std::array<std::vector<uint64_t>, kPhases> times;
  std::array<uint64_t, kPhases> peaks_in{};
  for (size_t i = first; i < device.cycles.size(); ++i) {
    const CycleUse& cycle = device.cycles[i];
    peaks.push_back(cycle.peak);
    growths.push_back(static_cast<int64_t>(cycle.live_end - cycle.live_begin));
    ++peaks_in[static_cast<size_t>(cycle.peak_phase)];
    for (size_t phase = 0; phase < kPhases; ++phase) {
      if (!cycle.phases[phase].present) continue;
      phase_peaks[phase].push_back(cycle.phases[phase].peak);
      changes[phase].push_back(cycle.phases[phase].change);
      times[phase].push_back(cycle.phases[phase].times);
    }
  }
  TypicalCycle typical;
  typical.steps = peaks.size();
  typical.peak = UpperMedian(peaks);
  typical.growth = UpperMedian(growths);
  const auto most = std::max_element(peaks_in.begin(), peaks_in.end());
  typical.peak_phase = static_cast<Phase>(most - peaks_in.begin());
  typical.steps_with_peak_phase = *most;
  for (size_t phase = 0; phase < kPhases; ++phase) {
    typical.phases[phase] = {!phase_peaks[phase].empty(), UpperMedian(phase_peaks[phase]),
                             UpperMedian(changes[phase]), UpperMedian(times[phase])};
  }
  return typical;
}

}  // namespace gmt::analysis
