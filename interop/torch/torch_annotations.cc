#include "interop/torch/torch_annotations.h"

#include <optional>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace gmt::interop {
namespace {

using analysis::FrameText;
using analysis::Mark;
using analysis::Range;
using analysis::SideEvent;
using analysis::Trace;

constexpr std::string_view kStep = "step";
constexpr std::string_view kRecordFunction = "record_function";

bool IsIn(const FrameText& frame, std::string_view path) {
  return absl::EndsWith(frame.file, absl::string_view(path.data(), path.size()));
}

std::string NameOf(const Mark& mark) {
  return mark.index ? absl::StrCat(mark.name, " ", *mark.index) : mark.name;
}

class Collector {
 public:
  Collector(const Trace& trace, const format::Definitions& definitions,
            const TorchSelection& selection, int32_t device)
      : trace_(trace), definitions_(definitions), selection_(selection), device_(device) {}

  std::vector<TorchAnnotation> Collect() {
    for (const SideEvent& side_event : trace_.side_events) {
      if (side_event.kind == SideEvent::kRangeBegin)
        AddRange(trace_.ranges[side_event.index], false, side_event.t_ns);
      if (side_event.kind == SideEvent::kRangeEnd)
        AddRange(trace_.ranges[side_event.index], true, side_event.t_ns);
      if (side_event.kind == SideEvent::kMark)
        AddMark(trace_.marks[side_event.index], side_event.t_ns);
    }
    return std::move(annotations_);
  }

 private:
  void AddRange(const Range& range, bool ends, int64_t t_ns) {
    const bool unnamed = !IsImportedSnapshot(trace_) && range.name == kRecordFunction;
    Add(unnamed ? NameOfOpener(range.stack) : range.name, ends, range.device.value_or(device_),
        t_ns);
  }

  const std::string& NameOfOpener(uint32_t stack) {
    std::string& name = opener_names_[stack];
    if (name.empty()) {
      name = RecordFunctionName(analysis::DescribeStack(definitions_, stack));
    }
    return name;
  }

  void AddMark(const Mark& mark, int64_t t_ns) {
    if (mark.name != kStep) {
      Add(NameOf(mark), false, device_, t_ns);
      return Add(NameOf(mark), true, device_, t_ns);
    }
    if (step_) Add(NameOf(*step_), true, device_, t_ns);
    step_ = mark;
    Add(NameOf(mark), false, device_, t_ns);
  }

  void Add(std::string name, bool ends, int32_t device, int64_t t_ns) {
    const analysis::Window& window = selection_.window;
    if (t_ns < window.from_ns || t_ns > window.to_ns) return;
    if (selection_.device && *selection_.device != device) return;
    annotations_.push_back({std::move(name), ends, device, t_ns});
  }

  const Trace& trace_;
  const format::Definitions& definitions_;
  const TorchSelection& selection_;
  const int32_t device_;
  absl::flat_hash_map<uint32_t, std::string> opener_names_;  // by stack
  std::optional<Mark> step_;
  std::vector<TorchAnnotation> annotations_;
};

}  // namespace

std::vector<TorchAnnotation> TorchAnnotations(const Trace& trace,
                                              const format::Definitions& definitions,
                                              const TorchSelection& selection, int32_t device) {
  return Collector(trace, definitions, selection, device).Collect();
}

std::string RecordFunctionName(const std::vector<FrameText>& frames) {
  for (const FrameText& frame : frames) {
    if (!frame.is_python() || IsIn(frame, "torch/autograd/profiler.py")) continue;
    if (IsIn(frame, "torch/optim/optimizer.py")) {
      return absl::EndsWith(frame.function, "zero_grad") ? "Optimizer.zero_grad" : "Optimizer.step";
    }
    if (IsIn(frame, "torch/utils/data/dataloader.py")) return "enumerate(DataLoader)";
    if (IsIn(frame, "torch/profiler/profiler.py")) return "ProfilerStep";
    if (absl::StrContains(frame.file, "/torch/") || absl::EndsWith(frame.file, "/contextlib.py")) {
      continue;
    }
    return absl::StrCat(frame.Place(), " ", frame.function);
  }
  return std::string(kRecordFunction);
}

}  // namespace gmt::interop
