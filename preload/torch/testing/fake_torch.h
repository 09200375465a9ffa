// The PyTorch functions that are hooked or called by hooks, as PyTorch's headers would declare
// them: with PyTorch's names, and therefore its mangling. They are defined in libraries divided
// like PyTorch's (fake_c10.cc, fake_c10_cuda.cc, fake_torch_cpu.cc).

#ifndef GMT_PRELOAD_TORCH_TESTING_FAKE_TORCH_H_
#define GMT_PRELOAD_TORCH_TESTING_FAKE_TORCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace at {
struct Tensor;
}

namespace c10 {

struct Device {
  int8_t type, index;
};
inline constexpr int8_t kCpu = 0, kCuda = 1;

enum class ScalarType : int8_t { Float = 6 };
enum class MemoryFormat : int8_t {};
template <typename T>
struct ArrayRef {
  const T* data;
  size_t size;
};

struct StorageImpl {
  void* vtable = nullptr;
  uint64_t counts = 1;
  void* address = nullptr;
  void* context = nullptr;  // of the allocator: the address again
  uint64_t rest[8] = {};
};
struct TensorImpl {
  void set_requires_grad(bool requires_grad);
  at::Tensor& mutable_grad();

  void* vtable = nullptr;
  uint64_t counts = 1;
  StorageImpl* storage = nullptr;
  uint64_t rest[8] = {};
};

void reportMemoryUsageToProfiler(void* ptr, int64_t size, size_t allocated, size_t reserved,
                                 Device device);
void reportOutOfMemoryToProfiler(int64_t size, size_t allocated, size_t reserved, Device device);
void LogAPIUsage(const std::string& name);

namespace cuda {
struct CUDAStream {
  Device device;
  int64_t id;
  void* stream() const;
};
CUDAStream getCurrentCUDAStream(int8_t device);
}  // namespace cuda

}  // namespace c10

namespace at {

struct TensorBase {
  ~TensorBase() {}  // makes it non-trivial, so that it is passed by reference
  void set_data(const TensorBase& data) const;

  c10::TensorImpl* implementation = nullptr;
};
struct Tensor : TensorBase {};

namespace detail {
TensorBase empty_cuda(c10::ArrayRef<long> sizes, c10::ScalarType dtype,
                      std::optional<c10::Device> device, std::optional<c10::MemoryFormat> format);
}

namespace sequence_number {
uint64_t get_and_increment();
}

enum class RecordScope : uint8_t { FUNCTION = 0, USER_SCOPE = 7 };
struct RecordFunction {
  explicit RecordFunction(RecordScope scope);
  void end();
  static uint64_t currentThreadId();
  RecordScope scope_;
};

}  // namespace at

namespace torch::autograd {

struct GraphTask {};
struct InputBuffer {};
struct ReadyQueue {};
struct Edge {
  ~Edge() {}  // makes it non-trivial, so that it is passed by reference
  struct Node* function = nullptr;
};

struct Node {
  // The size of what precedes the number differs between releases: 8 or 16 bytes.
  void* vtable = nullptr;
  uint64_t head[2] = {};
  uint64_t sequence = 0, topology = 0, has_parent = 0, thread = 0;
  uint64_t tail[4] = {};
  int64_t backward_bytes = 0;  // allocated by its backward pass
  bool throws = false;
  struct SavedVariable* saved = nullptr;  // that it releases
  int saved_count = 0;
  struct AccumulateGrad* accumulates = nullptr;  // itself, if it is one
};

struct SavedVariable {
  SavedVariable() = default;
  SavedVariable(const at::Tensor& tensor, bool is_output, bool is_inplace_on_view);
  void reset_data();

  at::Tensor data;
};

struct AccumulateGrad : Node {
  explicit AccumulateGrad(at::Tensor leaf);
  std::vector<at::Tensor> apply(std::vector<at::Tensor>&& gradients);

  at::Tensor leaf;
};

void deleteNode(Node* node);

namespace impl {
void set_gradient_edge(const at::Tensor& tensor, Edge edge);
void* post_acc_grad_hooks(const at::Tensor& leaf);
}  // namespace impl

struct Engine {
  void evaluate_function(std::shared_ptr<GraphTask>& task, Node* node, InputBuffer& inputs,
                         const std::shared_ptr<ReadyQueue>& queue);
  std::vector<at::Tensor> execute(const std::vector<Edge>& roots,
                                  const std::vector<at::Tensor>& inputs, bool keep_graph,
                                  bool create_graph, bool accumulate_grad,
                                  const std::vector<Edge>& outputs);
};

}  // namespace torch::autograd

// Called by the test programs, in place of Python.
extern "C" {
struct FakeCounts {
  int reports, lacks;  // received by PyTorch's own functions
};
FakeCounts FakeForwarded();

void FakeAllocate(uint64_t address, int64_t size, int8_t type, int8_t index);
void FakeFree(uint64_t address, int64_t size, int8_t type, int8_t index);
void FakeRunOut(int64_t size);
void FakeUseStream(int64_t id);

// Creates a node of the graph whose backward pass allocates that many bytes.
void FakeForward(int64_t backward_bytes, bool throws);
// Runs the backward passes of all nodes, last first. Returns the number of gradients; -1 if one
// threw.
int FakeBackward();
void FakeRange(int8_t scope);
// Constructs a module and an optimizer.
void FakeOptimizer();
// Trains a parameter of 512 bytes on batches of 1,024: `steps` iterations that multiply the two.
// Gradients are kept from step to step.
void FakeTrain(int steps);
// Creates nodes that each save `tensors` tensors, at most two, and are destroyed without a backward
// pass. What they saved is released with them or, as if the graph were kept, not at all.
void FakeSave(int nodes, int tensors, bool released);
}

#endif  // GMT_PRELOAD_TORCH_TESTING_FAKE_TORCH_H_
