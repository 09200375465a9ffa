// The functions of preload/torch/hook_table.inc. Each does what PyTorch's own does, by calling it;
// what was seen is recorded on the way.

#include <stdint.h>

#include "preload/export.h"
#include "preload/note.h"
#include "preload/record_event.h"
#include "preload/record_stack.h"
#include "preload/scope.h"
#include "preload/torch/record_block.h"
#include "preload/torch/torch_function.h"
#include "preload/writing.h"

namespace gmt::preload {
namespace {

// Not to be held while PyTorch's function runs.
Writing IfRecordingBlocks() {
  Process* p = Process::IfRecording();
  return Writing(p != nullptr && p->Records(session::Memory::kBlock) ? p : nullptr);
}

// std::vector<at::Tensor>, which is given back as it was made.
struct VariableList {
  void* members[3];
};

// The real functions' types, and the hooks: objects that know their caller.
#define GMT_TORCH(name, mangled, Result, parameters, arguments)             \
  using Real##name = Result(*) parameters;                                  \
  struct name {                                                             \
    const void* const caller;                                               \
    Real##name real() const {                                               \
      return RealTorchFunction<Real##name>(TorchFunction::k##name, caller); \
    }                                                                       \
    Result operator() parameters const;                                     \
  };
#include "preload/torch/hook_table.inc"

// ---- Blocks -------------------------------------------------------------------------------------
// A report without PyTorch's own function behind it is for nobody else.

TorchTotals Totals(int64_t allocated, int64_t reserved) {
  return {static_cast<uint64_t>(allocated), static_cast<uint64_t>(reserved)};
}

void ReportBlock19::operator()(void* ptr, int64_t size, TorchDevice device) const {
  RecordBlock(reinterpret_cast<uint64_t>(ptr), size, {}, device, caller);
  if (const auto next = real(); next != nullptr) next(ptr, size, device);
}

void ReportBlock110::operator()(void* ptr, int64_t size, int64_t allocated, int64_t reserved,
                                TorchDevice device) const {
  RecordBlock(reinterpret_cast<uint64_t>(ptr), size, Totals(allocated, reserved), device, caller);
  if (const auto next = real(); next != nullptr) next(ptr, size, allocated, reserved, device);
}

void ReportBlock::operator()(void* ptr, int64_t size, uint64_t allocated, uint64_t reserved,
                             TorchDevice device) const {
  RecordBlock(reinterpret_cast<uint64_t>(ptr), size, {allocated, reserved}, device, caller);
  if (const auto next = real(); next != nullptr) next(ptr, size, allocated, reserved, device);
}

void ReportOutOfMemory113::operator()(int64_t size, int64_t allocated, int64_t reserved,
                                      TorchDevice device) const {
  RecordOutOfMemory(size, Totals(allocated, reserved), device, caller);
  if (const auto next = real(); next != nullptr) next(size, allocated, reserved, device);
}

void ReportOutOfMemory::operator()(int64_t size, uint64_t allocated, uint64_t reserved,
                                   TorchDevice device) const {
  RecordOutOfMemory(size, {allocated, reserved}, device, caller);
  if (const auto next = real(); next != nullptr) next(size, allocated, reserved, device);
}

// ---- Autograd -----------------------------------------------------------------------------------

void RememberForward(Process* p, uint64_t sequence, const void* caller) {
  const KeepErrno keep;
  const auto thread = RealTorchFunction<uint64_t (*)()>(TorchFunction::kCurrentThreadId, caller);
  const uint32_t stack = thread == nullptr ? 0 : RecordForwardStack(p);
  if (stack != 0) p->torch.forward.Remember(thread(), sequence, stack);
}

uint64_t SequenceNumber::operator()() const {
  const uint64_t sequence = real()();
  const Writing p = IfRecordingBlocks();
  if (p != nullptr && p->WantsStacks()) RememberForward(p, sequence, caller);
  return sequence;
}

[[gnu::noinline, gnu::cold]] void TellWhatWasLearnt(Process* p) {
  const KeepErrno keep;
  const char* status = p->torch.forward.is_known()
                           ? "on"
                           : "off: how this release of PyTorch lays out its nodes is not known";
  p->map.control().facts[session::kAutogradSource].store(p->map.texts().Intern(status),
                                                         std::memory_order_release);
}

[[gnu::noinline]] void EvaluateInScope(RealEvaluateFunction real, void* engine, void* graph_task,
                                       void* node, void* inputs, const void* ready_queue) {
  GMT_CLOSES_SCOPE_WHEN_UNWOUND;
  Scope scope = {nullptr, nullptr, node, 0};
  OpenScope(&scope);
  real(engine, graph_task, node, inputs, ready_queue);
  CloseScope(&scope);
}

void EvaluateFunction::operator()(void* engine, void* graph_task, void* node, void* inputs,
                                  const void* ready_queue) const {
  {
    const Writing p = IfRecordingBlocks();
    if (p == nullptr) return real()(engine, graph_task, node, inputs, ready_queue);
    if (p->WantsStacks() && p->torch.forward.Learn(node)) TellWhatWasLearnt(p);
  }
  EvaluateInScope(real(), engine, graph_task, node, inputs, ready_queue);
}

void EndBackward(Scope* scope) {
  if (const Writing p(Process::IfRecording()); p != nullptr) EndRange(p, scope->range);
}

[[gnu::noinline]] VariableList ExecuteInScope(uint64_t range, RealExecute real, void* engine,
                                              const void* roots, const void* inputs,
                                              bool keep_graph, bool create_graph,
                                              bool accumulate_grad, const void* outputs) {
  GMT_CLOSES_SCOPE_WHEN_UNWOUND;
  Scope scope = {nullptr, EndBackward, nullptr, range};
  OpenScope(&scope);
  const VariableList gradients =
      real(engine, roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  CloseScope(&scope);
  return gradients;
}

VariableList Execute::operator()(void* engine, const void* roots, const void* inputs,
                                 bool keep_graph, bool create_graph, bool accumulate_grad,
                                 const void* outputs) const {
  uint64_t range = 0;
  if (const Writing p = IfRecordingBlocks(); p != nullptr) range = BeginRange(p, "backward");
  if (range == 0)
    return real()(engine, roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  return ExecuteInScope(range, real(), engine, roots, inputs, keep_graph, create_graph,
                        accumulate_grad, outputs);
}

// ---- record_function ----------------------------------------------------------------------------

// at::RecordScope::USER_SCOPE (ATen/record_function.h, PyTorch 2.11; since 1.8).
constexpr uint8_t kUserScope = 7;

void BeginRecordFunction::operator()(void* self, uint8_t scope) const {
  real()(self, scope);
  if (scope != kUserScope) return;
  const Writing p = IfRecordingBlocks();
  if (p == nullptr) return;
  const auto object = reinterpret_cast<uint64_t>(self);
  p->torch.open_ranges.Remove(object);  // one whose end was not seen
  const uint64_t range = BeginRange(p, "record_function");
  if (!p->torch.open_ranges.Add(object, range)) EndRange(p, range);
}

void EndRecordFunction::operator()(void* self) const {
  if (const Writing p = IfRecordingBlocks(); p != nullptr) {
    const uint64_t range = p->torch.open_ranges.Remove(reinterpret_cast<uint64_t>(self));
    if (range != 0) EndRange(p, range);
  }
  real()(self);
}

}  // namespace
}  // namespace gmt::preload

// ---- What the library exports -------------------------------------------------------------------

namespace gmt::preload {
#define GMT_TORCH(name, mangled, Result, parameters, arguments) \
  extern "C" Result gmt_torch_##name parameters asm(mangled);   \
  GMT_EXPORT Result gmt_torch_##name parameters {               \
    return name{__builtin_return_address(0)} arguments;         \
  }
#include "preload/torch/hook_table.inc"
}  // namespace gmt::preload
