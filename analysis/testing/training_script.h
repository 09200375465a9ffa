// analysis/testing/training_script.h
//
// For tests and evaluators: writes a training loop as events, with the stacks that PyTorch shows.
//
//   TrainingScript script;
//   script.Block(0x1000, kMiB, script.Parameter());
//   script.Backward([&] { script.Block(0x2000, kMiB, script.InBackward("MmBackward0")); });

#ifndef GMT_ANALYSIS_TESTING_TRAINING_SCRIPT_H_
#define GMT_ANALYSIS_TESTING_TRAINING_SCRIPT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/testing/event_script.h"

namespace gmt::analysis {

class TrainingScript {
 public:
  struct Place {
    std::string function;
    std::string file = "";  // empty: a native frame
  };
  using Places = std::vector<Place>;

  static std::string Torch(const std::string& file) { return "/site-packages/torch/" + file; }

  uint32_t Stack(const Places& places) {
    std::vector<uint32_t> frames;
    Places all = places;
    if (calls_driver) all.insert(all.begin(), {"c10::cuda::CUDACachingAllocator::raw_alloc()"});
    for (const Place& place : all) {
      format::FrameInfo frame;
      frame.function = script_.builder().InternString(place.function);
      if (!place.file.empty()) {
        frame.file = script_.builder().InternString(place.file);
        frame.line = 10;
        frame.language = format::Language::kPython;
      }
      frames.push_back(script_.builder().InternFrame(frame));
    }
    return script_.builder().InternStack(frames, 0);
  }

  // ---- Stacks, innermost frame first

  uint32_t Parameter() {
    return Stack({{"at::native::_to_copy(at::Tensor const&)"},
                  {"Module._apply", Torch("nn/modules/module.py")},
                  {"main", "/src/train.py"}});
  }
  uint32_t Batch() {
    return Stack({{"torch::autograd::THPVariable_cuda(_object*, _object*, _object*)"},
                  {"main", "/src/train.py"}});
  }
  uint32_t InForward(const std::string& op = "at::native::linear(at::Tensor const&)") {
    return Stack({{op},
                  {"Net.forward", "/src/model.py"},
                  {"Module._call_impl", Torch("nn/modules/module.py")},
                  {"main", "/src/train.py"}});
  }
  uint32_t InBackward(const std::string& node) {
    return Stack({{"at::native::mm(at::Tensor const&)"},
                  {"torch::autograd::generated::" + node + "::apply(std::vector<at::Tensor>&&)"},
                  {kEngine}});
  }
  uint32_t Recomputed() {
    return Stack({{"at::native::linear(at::Tensor const&)"},
                  {"Net.forward", "/src/model.py"},
                  {"Module._call_impl", Torch("nn/modules/module.py")},
                  {"_CheckpointFrame.recompute_fn", Torch("utils/checkpoint.py")},
                  {kEngine}});
  }
  uint32_t State() { return InOptimizer("Adam._init_group", "at::native::zeros_like"); }
  uint32_t InOptimizer(const std::string& function, const std::string& op) {
    return Stack({{op},
                  {function, Torch("optim/adam.py")},
                  {"Adam.step", Torch("optim/adam.py")},
                  {"main", "/src/train.py"}});
  }

  // ---- Events

  format::Event& Block(uint64_t address, uint64_t size, uint32_t stack) {
    format::Event& event = script_.Block(address, size);
    event.stack = stack;
    return event;
  }
  void Free(uint64_t address) { script_.FreeBlock(address); }
  // with_ranges: with ranges, like a recording; otherwise without, like an imported log.
  void Backward(const std::function<void()>& inside) { InRange("backward", inside); }
  void Optimizer(const std::function<void()>& inside) {
    InRange("Optimizer.step#Adam.step", inside);
  }

  EventScript& script() { return script_; }
  bool with_ranges = true;
  bool calls_driver = false;  // stacks end in PyTorch's allocator, which calls the driver

 private:
  static constexpr const char* kEngine =
      "torch::autograd::Engine::evaluate_function(std::shared_ptr<torch::autograd::GraphTask>&)";

  void InRange(const std::string& name, const std::function<void()>& inside) {
    const uint64_t range = ++range_;
    if (with_ranges) script_.Begin(name, range);
    inside();
    if (with_ranges) script_.End(name, range);
  }

  EventScript script_;
  uint64_t range_ = 0;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TESTING_TRAINING_SCRIPT_H_
