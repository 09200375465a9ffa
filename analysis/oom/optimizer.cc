#include "analysis/oom/optimizer.h"

#include <algorithm>
#include <string_view>

#include "analysis/stacks/frames.h"

namespace gmt::analysis {
namespace {

constexpr std::string_view kConstructor = "__init__";

// PyTorch's own classes by their file in torch/optim/: Python before 3.11 has no names of classes.
struct Known {
  std::string_view file, name;
  uint64_t least_state, most_state;
  bool makes_state_at_once = false;
  bool has_foreach_temporaries = false;
};
constexpr Known kKnown[] = {{"sgd.py", "SGD", 0, 1},
                            {"adam.py", "Adam", 2, 2, false, true},
                            {"adamw.py", "AdamW", 2, 2, false, true},
                            {"adamax.py", "Adamax", 2, 2},
                            {"nadam.py", "NAdam", 2, 2},
                            {"radam.py", "RAdam", 2, 2},
                            {"rmsprop.py", "RMSprop", 1, 2},
                            {"adagrad.py", "Adagrad", 1, 1, true},
                            {"adadelta.py", "Adadelta", 2, 2},
                            {"rprop.py", "Rprop", 2, 2},
                            {"asgd.py", "ASGD", 1, 1},
                            {"_muon.py", "Muon", 1, 1},
                            {"sparse_adam.py", "SparseAdam", 2, 2}};

bool IsConstructor(const FrameText& frame) {
  return frame.is_python() && frame.function.ends_with(kConstructor);
}
bool IsOfTorch(const FrameText& frame) {
  return frame.file.find("torch/optim/") != std::string::npos;
}

// "train.<locals>.Lion.__init__" -> "Lion"; "" if the name has no class.
std::string ClassOf(const FrameText& constructor) {
  std::string_view name = constructor.function;
  if (name.size() <= kConstructor.size()) return "";
  name.remove_suffix(kConstructor.size() + 1);
  return std::string(name.substr(name.rfind('.') + 1));
}

}  // namespace

Optimizer OptimizerOf(const std::vector<FrameText>& constructor) {
  std::vector<const FrameText*> classes;  // from Optimizer outwards
  for (const FrameText& frame : constructor) {
    if (!frame.is_python()) continue;
    if (!IsConstructor(frame)) break;
    classes.push_back(&frame);
  }
  Optimizer optimizer;
  if (classes.size() < 2 || !IsOfTorch(*classes[0])) return optimizer;
  // The constructor of the program's own class is followed by what may be that of a trainer.
  const FrameText* of_class = classes[1];
  for (size_t i = 2; i < classes.size() && IsOfTorch(*classes[i]); ++i) of_class = classes[i];
  optimizer.name = ClassOf(*of_class);
  if (IsOfTorch(*of_class)) {
    const auto* known = std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& one) {
      return one.file == of_class->FileName();
    });
    if (known != std::end(kKnown)) {
      optimizer.name = known->name;
      optimizer.is_known = true;
      optimizer.least_state = known->least_state;
      optimizer.most_state = known->most_state;
      optimizer.makes_state_at_once = known->makes_state_at_once;
      optimizer.has_foreach_temporaries = known->has_foreach_temporaries;
    }
  }
  if (optimizer.name.empty()) optimizer.name = of_class->FileName();
  // The line that created it: outside of its class, which may be the program's own.
  const auto outside = constructor.begin() + (of_class - constructor.data() + 1);
  const auto own = std::find_if(outside, constructor.end(), [](const FrameText& frame) {
    return frame.is_python() && frame.role == symbols::FrameRole::kOwn;
  });
  if (own != constructor.end()) optimizer.place = own->Place();
  return optimizer;
}

Optimizer FindOptimizer(const Examination& examination, int64_t t_ns) {
  for (const Range& range : examination.trace().ranges) {
    if (range.name == "Optimizer.__init__" && range.begin_t_ns <= t_ns)
      return OptimizerOf(examination.stacks().Frames(range.stack));
  }
  return {};
}

}  // namespace gmt::analysis
