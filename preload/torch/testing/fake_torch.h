// PyTorch's functions that are hooked and those that hooks ask, as its own headers would declare
// them: the names, and so the manglings, are PyTorch's. Defined in libraries that are cut like its
// own (fake_c10.cc, fake_c10_cuda.cc, fake_torch_cpu.cc).

#ifndef GMT_PRELOAD_TORCH_TESTING_FAKE_TORCH_H_
#define GMT_PRELOAD_TORCH_TESTING_FAKE_TORCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace c10 {

struct Device {
  int8_t type, index;
};
inline constexpr int8_t kCpu = 0, kCuda = 1;

void reportMemoryUsageToProfiler(void* ptr, int64_t size, size_t allocated, size_t reserved,
                                 Device device);
void reportOutOfMemoryToProfiler(int64_t size, size_t allocated, size_t reserved, Device device);

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

struct Tensor {
  void* implementation = nullptr;
};

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
  struct Node* function = nullptr;
};

struct Node {
  // What stands before the number differs between releases: 8 or 16 bytes.
  void* vtable = nullptr;
  uint64_t head[2] = {};
  uint64_t sequence = 0, topology = 0, has_parent = 0, thread = 0;
  uint64_t tail[4] = {};
  int64_t backward_bytes = 0;  // that its backward pass allocates
  bool throws = false;
};

struct Engine {
  void evaluate_function(std::shared_ptr<GraphTask>& task, Node* node, InputBuffer& inputs,
                         const std::shared_ptr<ReadyQueue>& queue);
  std::vector<at::Tensor> execute(const std::vector<Edge>& roots,
                                  const std::vector<at::Tensor>& inputs, bool keep_graph,
                                  bool create_graph, bool accumulate_grad,
                                  const std::vector<Edge>& outputs);
};

}  // namespace torch::autograd

// What the test programs call, as Python would.
extern "C" {
struct FakeCounts {
  int reports, lacks;  // that PyTorch's own functions were told
};
FakeCounts FakeForwarded();

void FakeAllocate(uint64_t address, int64_t size, int8_t type, int8_t index);
void FakeFree(uint64_t address, int64_t size, int8_t type, int8_t index);
void FakeRunOut(int64_t size);
void FakeUseStream(int64_t id);

// Makes a node of the graph whose backward pass allocates that many bytes.
void FakeForward(int64_t backward_bytes, bool throws);
// The backward passes of all nodes, last first. The number of gradients; -1 where one threw.
int FakeBackward();
void FakeRange(int8_t scope);
}

#endif  // GMT_PRELOAD_TORCH_TESTING_FAKE_TORCH_H_
