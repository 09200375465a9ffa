// The functions of preload/torch/hook_table.inc. Each calls PyTorch's own function and records what
// was seen.

#include <stdint.h>
#include <string.h>

#include "preload/base/export.h"
#include "preload/base/scope.h"
#include "preload/process/write_guard.h"
#include "preload/record/note.h"
#include "preload/record/record_event.h"
#include "preload/record/record_stack.h"
#include "preload/torch/record_block.h"
#include "preload/torch/record_role.h"
#include "preload/torch/state/tensor_layout.h"
#include "preload/torch/torch_function.h"

namespace gmt::preload {
namespace {

// Must not be held while PyTorch's function runs.
WriteGuard IfRecordingBlocks() {
  Process* p = Process::IfRecording();
  return WriteGuard(p != nullptr && p->Records(session::Memory::kBlock) ? p : nullptr);
}

[[gnu::always_inline]] inline Process* IfRolesAreWanted(Process* p) {
  return p != nullptr && p->records_roles ? p : nullptr;
}

// Same, for what is recorded about PyTorch's tensors.
[[gnu::always_inline]] inline WriteGuard IfRecordingRoles() {
  return WriteGuard(IfRolesAreWanted(Process::IfRecording()));
}

// Returns the calling thread's state if a hook has created it, otherwise nullptr. It is not part of
// the session, and used without a WriteGuard.
TorchThread* ThreadIfRecording() {
  Process* p = Process::IfRecording();
  return p == nullptr ? nullptr : p->torch.threads.IfThere();
}

// Records that a node holds nothing any more.
void ReleaseNodeSaves(const void* node) {
  Process* recording = Process::IfRecording();
  if (recording == nullptr || recording->torch.node_saves.is_empty()) return;
  if (const WriteGuard p = IfRecordingRoles(); p != nullptr) RecordNodeReleased(p, node);
}

// std::vector<at::Tensor>, which is returned unchanged.
struct VariableList {
  void* members[3];
};

// at::Tensor is a pointer to a TensorImpl; so is at::TensorBase.
const void* TensorImplOf(const void* tensor) {
  return reinterpret_cast<const void*>(WordAt(tensor, 0));
}

// The types of the real functions, and the hooks: objects that know their caller.
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
// Reports are passed on to PyTorch's own function, if it has one.

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
  if (!p->records_roles) return;
  if (TorchThread* t = p->torch.threads.Here(); t != nullptr) BeginNode(p, t, stack);
}

uint64_t SequenceNumber::operator()() const {
  const uint64_t sequence = real()();
  const WriteGuard p = IfRecordingBlocks();
  if (p == nullptr) return sequence;
  if (p->WantsStacks()) {
    RememberForward(p, sequence, caller);
  } else if (TorchThread* t = p->torch.threads.IfThere(); t != nullptr && p->records_roles) {
    BeginNode(p, t, 0);
  }
  return sequence;
}

[[gnu::noinline, gnu::cold]] void PublishForwardStacks(Process* p) {
  const KeepErrno keep;
  const char* status = p->torch.forward.is_known()
                           ? "on"
                           : "off: the node layout of this PyTorch release is unknown";
  p->map.control().facts[session::kAutogradSource].store(p->map.texts().Intern(status),
                                                         std::memory_order_release);
}

[[gnu::noinline]] void LearnNode(const void* node) {
  const WriteGuard p = IfRecordingBlocks();
  if (p != nullptr && p->WantsStacks() && p->torch.forward.Learn(node)) PublishForwardStacks(p);
}

void EndNode(Scope* scope) {
  Process* const p = Process::IfRecording();
  if (p == nullptr) return;
  if (TorchThread* t = p->torch.threads.IfThere(); t != nullptr) {
    t->is_accumulating = false;
    t->releases.End();
  }
  if (p->torch.keeping_graphs.load(std::memory_order_relaxed) == 0) ReleaseNodeSaves(scope->node);
}

[[gnu::noinline]] void EvaluateInScope(RealEvaluateFunction real, void* engine, void* graph_task,
                                       void* node, void* inputs, const void* ready_queue) {
  GMT_CLOSES_SCOPE_WHEN_UNWOUND;
  Scope scope = {nullptr, EndNode, node, 0};
  OpenScope(&scope);
  real(engine, graph_task, node, inputs, ready_queue);
  CloseScope(&scope);
}

void EvaluateFunction::operator()(void* engine, void* graph_task, void* node, void* inputs,
                                  const void* ready_queue) const {
  Process* const p = Process::IfRecording();
  if (p == nullptr || !p->Records(session::Memory::kBlock))
    return real()(engine, graph_task, node, inputs, ready_queue);
  if (p->torch.forward.is_learning()) LearnNode(node);
  if (TorchThread* t = p->torch.threads.IfThere(); t != nullptr) t->releases.Begin();
  EvaluateInScope(real(), engine, graph_task, node, inputs, ready_queue);
}

void EndBackward(Scope* scope) {
  if (const WriteGuard p(Process::IfRecording()); p != nullptr) EndRange(p, scope->range);
}

void EndKeepingBackward(Scope* scope) {
  if (const WriteGuard p(Process::IfRecording()); p != nullptr) {
    // Not if the pass began in an earlier recording.
    if (p->torch.keeping_graphs.load(std::memory_order_relaxed) > 0)
      p->torch.keeping_graphs.fetch_sub(1, std::memory_order_relaxed);
    EndRange(p, scope->range);
  }
}

[[gnu::noinline, gnu::cold]] void PublishRoles(Process* p) {
  const char* status = p->torch.tensors.is_known()
                           ? "on"
                           : "off: the tensor layout of this PyTorch release is unknown";
  p->map.control().facts[session::kRolesSource].store(p->map.texts().Intern(status),
                                                      std::memory_order_release);
}

[[gnu::noinline]] VariableList ExecuteInScope(uint64_t range, RealExecute real, void* engine,
                                              const void* roots, const void* inputs,
                                              bool keep_graph, bool create_graph,
                                              bool accumulate_grad, const void* outputs) {
  GMT_CLOSES_SCOPE_WHEN_UNWOUND;
  Scope scope = {nullptr, keep_graph ? EndKeepingBackward : EndBackward, nullptr, range};
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
  if (const WriteGuard p = IfRecordingBlocks(); p != nullptr) {
    range = BeginRange(p, "backward");
    if (range != 0 && keep_graph) p->torch.keeping_graphs.fetch_add(1, std::memory_order_relaxed);
  }
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
  const WriteGuard p = IfRecordingBlocks();
  if (p == nullptr) return;
  const auto object = reinterpret_cast<uint64_t>(self);
  p->torch.open_ranges.Remove(object);  // an object whose end was not seen
  const uint64_t range = BeginRange(p, "record_function");
  if (!p->torch.open_ranges.Add(object, range)) EndRange(p, range);
}

[[gnu::noinline]] void EndRangeOf(uint64_t object) {
  const WriteGuard p = IfRecordingBlocks();
  const uint64_t range = p == nullptr ? 0 : p->torch.open_ranges.Remove(object);
  if (range != 0) EndRange(p, range);
}

void EndRecordFunction::operator()(void* self) const {
  // Most of these objects are PyTorch's own.
  const auto object = reinterpret_cast<uint64_t>(self);
  Process* const recording = Process::IfRecording();
  if (recording != nullptr && recording->torch.open_ranges.Holds(object)) EndRangeOf(object);
  real()(self);
}

// ---- Optimizers ---------------------------------------------------------------------------------

// The constructor of a process's first optimizer: its class and its line are in the stack. Both
// types of std::string begin with a pointer to the text, which ends with a zero.
void RecordOptimizer(const void* name) {
  const char* const text = reinterpret_cast<const char*>(WordAt(name, 0));
  if (text == nullptr || strcmp(text, "python.optimizer") != 0) return;
  if (const WriteGuard p = IfRecordingBlocks(); p != nullptr)
    EndRange(p, BeginRange(p, "Optimizer.__init__"));
}

void LogApiUsage::operator()(const void* name) const {
  RecordOptimizer(name);
  if (const auto next = real(); next != nullptr) next(name);
}

void LogApiUsage26::operator()(const void* name) const {
  RecordOptimizer(name);
  if (const auto next = real(); next != nullptr) next(name);
}

// ---- Roles of tensors ---------------------------------------------------------------------------

// Notes on the calling thread that the next block is for such a tensor.
TorchThread* NoteTensor(TorchThread* t, const KnownLayouts::Known& layout) {
  t->tensor_layout = layout.text;
  t->tensor_bytes = layout.bytes;
  t->tensor_block = 0;
  return t;
}

// Same as BeginTensor(), for a tensor unlike those that the thread has requested lately. A
// process's first GPU memory may be that of a tensor.
[[gnu::noinline]] TorchThread* BeginNewTensor(const TensorRequest& request) {
  Process* recording = Process::IfRecording();
  if (recording == nullptr) {
    session::TensorLayout layout;
    if (Process::Skips(session::kPytorchHeap) || !DescribeTensor(request, &layout)) return nullptr;
    recording = Process::StartRecording();
  }
  const WriteGuard p(IfRolesAreWanted(recording));
  TorchThread* const t = p == nullptr ? nullptr : p->torch.threads.Here();
  if (t == nullptr) return nullptr;
  if (t->layouts == nullptr) t->layouts = p->torch.layouts.Take();
  const session::TextTable texts = p->map.texts();
  const KnownLayouts::Known layout = t->layouts != nullptr
                                         ? t->layouts->Add(request, p->identity, texts)
                                         : KnownLayouts::Describe(request, texts);
  return layout.bytes == 0 ? nullptr : NoteTensor(t, layout);
}

// Returns nullptr if the tensor's memory is not to be recorded.
[[gnu::always_inline]] inline TorchThread* BeginTensor(const TensorRequest& request) {
  Process* const p = IfRolesAreWanted(Process::IfRecording());
  TorchThread* const t = p == nullptr ? nullptr : p->torch.threads.IfThere();
  if (t == nullptr || t->layouts == nullptr) return BeginNewTensor(request);
  const KnownLayouts::Known* const layout = t->layouts->Find(request, p->identity);
  return layout == nullptr ? BeginNewTensor(request) : NoteTensor(t, *layout);
}

[[gnu::noinline, gnu::cold]] void PublishRolesIfRecording() {
  const KeepErrno keep;
  if (const WriteGuard p = IfRecordingRoles(); p != nullptr) PublishRoles(p);
}

// Runs `take`, by which PyTorch allocates this tensor. After an exception the thread's note
// remains, until the next tensor replaces it.
template <typename Take>
void* TakeTensor(const TensorRequest& request, Take take) {
  TorchThread* const t = BeginTensor(request);
  void* const result = take();
  if (t == nullptr) return result;
  t->tensor_layout = 0;
  if (t->tensor_block == 0) return result;
  Process* const p = Process::IfRecording();
  if (p != nullptr && p->torch.tensors.See(TensorImplOf(result), t->tensor_block)) [[unlikely]]
    PublishRolesIfRecording();
  return result;
}

void* EmptyCuda::operator()(void* result, const int64_t* sizes, uint64_t dimensions, int8_t dtype,
                            uint64_t device, uint64_t format) const {
  return TakeTensor({dtype, sizes, nullptr, dimensions},
                    [&] { return real()(result, sizes, dimensions, dtype, device, format); });
}

void* EmptyStridedCuda::operator()(void* result, const int64_t* sizes, uint64_t dimensions,
                                   const int64_t* strides, uint64_t stride_count, int8_t dtype,
                                   uint64_t device) const {
  return TakeTensor({dtype, sizes, strides, dimensions}, [&] {
    return real()(result, sizes, dimensions, strides, stride_count, dtype, device);
  });
}

void* EmptyCuda21::operator()(void* result, const int64_t* sizes, uint64_t dimensions, int8_t dtype,
                              uint64_t device, uint64_t format) const {
  return TakeTensor({dtype, sizes, nullptr, dimensions},
                    [&] { return real()(result, sizes, dimensions, dtype, device, format); });
}

void* EmptyStridedCuda21::operator()(void* result, const int64_t* sizes, uint64_t dimensions,
                                     const int64_t* strides, uint64_t stride_count, int8_t dtype,
                                     uint64_t device) const {
  return TakeTensor({dtype, sizes, strides, dimensions}, [&] {
    return real()(result, sizes, dimensions, strides, stride_count, dtype, device);
  });
}

void SetRequiresGrad::operator()(void* tensor, bool requires_grad) const {
  real()(tensor, requires_grad);
  if (!requires_grad) return;
  if (const WriteGuard p = IfRecordingRoles(); p != nullptr) RecordParameter(p, tensor);
}

void SetData::operator()(const void* self, const void* tensor) const {
  real()(self, tensor);
  if (const WriteGuard p = IfRecordingRoles(); p != nullptr)
    RecordParameter(p, TensorImplOf(tensor));
}

void SaveVariable::operator()(void* self, const void* tensor, bool is_output,
                              bool is_inplace_on_view) const {
  const void* const saved = TensorImplOf(tensor);
  const RealSaveVariable next = real();
  next(self, tensor, is_output, is_inplace_on_view);
  const WriteGuard p = IfRecordingRoles();
  TorchThread* t = p == nullptr ? nullptr : p->torch.threads.Here();
  if (t == nullptr) return;
  p->torch.autograd.LearnFrom(reinterpret_cast<const void*>(next));
  RecordSaved(p, t, saved, self, !p->torch.autograd.Contains(caller));
}

[[gnu::noinline]] void ReleaseMemory(RealReleaseVariable real, void* saved, Process* recording,
                                     uint64_t address) {
  TorchThread* const t = recording->torch.threads.Here();
  if (t != nullptr) t->freed_block = 0;
  real(saved);
  if (t == nullptr) return;
  if (const WriteGuard p = IfRecordingRoles(); p != nullptr) RecordReleased(p, t, address);
}

void ReleaseVariable::operator()(void* self) const {
  // Most variables hold no memory of a device, or have released it before: a node releases its
  // variables after its evaluation and again when it is destroyed.
  Process* const recording = Process::IfRecording();
  const uint64_t address = recording == nullptr ? 0 : SavedMemory(*recording, self);
  if (address == 0) return real()(self);
  ReleaseMemory(real(), self, recording, address);
}

// A node is destroyed, preceded by what it saved.
template <typename End>
void EndNodeWith(End end, void* node) {
  ReleaseNodeSaves(node);
  TorchThread* const t = ThreadIfRecording();
  if (t != nullptr) t->releases.Begin();
  end(node);
  if (t != nullptr) t->releases.End();
}

void DeleteNode::operator()(void* node) const { EndNodeWith(real(), node); }

void ReleaseNode::operator()(void* node) const { EndNodeWith(real(), node); }

[[gnu::noinline]] void RecordSavesOf(TorchThread* t) {
  if (const WriteGuard p = IfRecordingRoles(); p != nullptr) RecordSaves(p, t);
}

void SetGradientEdge::operator()(const void* tensor, const void* edge) const {
  const auto* node = reinterpret_cast<const void*>(WordAt(edge, 0));
  Process* const p = IfRolesAreWanted(Process::IfRecording());
  TorchThread* const t = p == nullptr || node == nullptr ? nullptr : p->torch.threads.Here();
  if (t != nullptr) {
    t->node = node;
    if (t->save_count != 0) RecordSavesOf(t);
  }
  real()(tensor, edge);
}

void MakeAccumulateGrad::operator()(void* self, const void* tensor) const {
  const void* const leaf = TensorImplOf(tensor);  // moved from by the call
  real()(self, tensor);
  if (const WriteGuard p = IfRecordingRoles(); p != nullptr) RecordLeaf(p, leaf);
}

VariableList Accumulate::operator()(void* self, const void* gradients) const {
  Process* const p = IfRolesAreWanted(Process::IfRecording());
  if (TorchThread* t = p == nullptr ? nullptr : p->torch.threads.Here(); t != nullptr) {
    t->is_accumulating = true;
    t->gradient = nullptr;
  }
  return real()(self, gradients);
}

void* MutableGradient::operator()(void* leaf) const {
  void* const gradient = real()(leaf);
  TorchThread* const t = ThreadIfRecording();
  if (t != nullptr && t->is_accumulating) t->gradient = gradient;
  return gradient;
}

// The leaf is a parameter. For one that existed before a client attached, or whose node outlives
// its steps, this is the only indication.
void* GradientIsThere::operator()(const void* leaf) const {
  if (const WriteGuard p = IfRecordingRoles(); p != nullptr) {
    RecordLeaf(p, TensorImplOf(leaf));
    TorchThread* t = p->torch.threads.IfThere();
    if (t != nullptr && t->is_accumulating) {
      t->is_accumulating = false;
      if (t->gradient != nullptr) RecordGradient(p, TensorImplOf(t->gradient));
    }
  }
  return real()(leaf);
}

}  // namespace
}  // namespace gmt::preload

// ---- Exported functions -------------------------------------------------------------------------

namespace gmt::preload {
#define GMT_TORCH(name, mangled, Result, parameters, arguments) \
  extern "C" Result gmt_torch_##name parameters asm(mangled);   \
  GMT_EXPORT Result gmt_torch_##name parameters {               \
    return name{__builtin_return_address(0)} arguments;         \
  }
#include "preload/torch/hook_table.inc"
}  // namespace gmt::preload
