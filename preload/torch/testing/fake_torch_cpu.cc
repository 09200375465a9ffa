// libtorch_cpu.so of the fake PyTorch: a graph whose nodes are numbered, and an engine that
// evaluates them and throws what they throw. Nodes have their number 24 bytes in, or 16 where
// FAKE_TORCH_NODES_ARE_SHORT is set.

#include <cstdlib>
#include <stdexcept>

#include "preload/torch/testing/fake_torch.h"

namespace {

using torch::autograd::Node;

std::vector<Node> nodes;
uint64_t next_address = 0x700000000000;
uint64_t next_number = 0;

bool NodesAreShort() { return std::getenv("FAKE_TORCH_NODES_ARE_SHORT") != nullptr; }

}  // namespace

uint64_t at::sequence_number::get_and_increment() { return next_number++; }
uint64_t at::RecordFunction::currentThreadId() { return 5; }
at::RecordFunction::RecordFunction(RecordScope scope) : scope_(scope) {}
void at::RecordFunction::end() {}

void torch::autograd::Engine::evaluate_function(std::shared_ptr<GraphTask>&, Node* node,
                                                InputBuffer&, const std::shared_ptr<ReadyQueue>&) {
  if (node->throws) throw std::runtime_error("of a backward pass");
  FakeAllocate(next_address += 1 << 20, node->backward_bytes, c10::kCuda, 0);
}

std::vector<at::Tensor> torch::autograd::Engine::execute(const std::vector<Edge>& roots,
                                                         const std::vector<at::Tensor>&, bool, bool,
                                                         bool, const std::vector<Edge>&) {
  auto task = std::make_shared<GraphTask>();
  InputBuffer inputs;
  for (const Edge& edge : roots) evaluate_function(task, edge.function, inputs, nullptr);
  return std::vector<at::Tensor>(roots.size());
}

void FakeForward(int64_t backward_bytes, bool throws) {
  Node node;
  const uint64_t number = at::sequence_number::get_and_increment();
  const uint64_t thread = at::RecordFunction::currentThreadId();
  if (NodesAreShort()) {
    node.head[1] = number;
    node.has_parent = thread;
    node.sequence = node.thread = 0xdead;
  } else {
    node.sequence = number;
    node.thread = thread;
  }
  node.backward_bytes = backward_bytes;
  node.throws = throws;
  nodes.push_back(node);
}

int FakeBackward() {
  std::vector<torch::autograd::Edge> roots;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) roots.push_back({&*node});
  int gradients = -1;
  try {
    gradients = static_cast<int>(
        torch::autograd::Engine().execute(roots, {}, false, false, true, {}).size());
  } catch (const std::runtime_error&) {
  }
  nodes.clear();
  return gradients;
}

void FakeRange(int8_t scope) {
  at::RecordFunction range(static_cast<at::RecordScope>(scope));
  FakeAllocate(next_address += 1 << 20, 512, c10::kCuda, 0);
  range.end();
  range.end();
}
