// libtorch_cpu.so of the fake PyTorch: a graph of numbered nodes, and an engine that evaluates them
// and lets their exceptions pass. The number is 24 bytes into a node, or 16 if
// FAKE_TORCH_NODES_ARE_SHORT is set.

#include <cstdlib>
#include <stdexcept>

#include "preload/torch/testing/fake_torch.h"

namespace {

using torch::autograd::Node;

std::vector<Node> nodes;
uint64_t next_address = 0x700000000000;
uint64_t next_number = 0;

at::Tensor Make(std::initializer_list<long> sizes) {
  at::Tensor tensor;
  tensor.implementation =
      at::detail::empty_cuda({sizes.begin(), sizes.size()}, c10::ScalarType::Float, {}, {})
          .implementation;
  return tensor;
}

void Free(const at::Tensor& tensor) {
  FakeFree(reinterpret_cast<uint64_t>(tensor.implementation->storage->address), 512, c10::kCuda, 0);
}

void Release(Node* node) {
  for (int i = 0; i < node->saved_count; ++i) node->saved[i].reset_data();
}

bool NodesAreShort() { return std::getenv("FAKE_TORCH_NODES_ARE_SHORT") != nullptr; }

}  // namespace

uint64_t at::sequence_number::get_and_increment() { return next_number++; }
uint64_t at::RecordFunction::currentThreadId() { return 5; }
at::RecordFunction::RecordFunction(RecordScope scope) : scope_(scope) {}
void at::RecordFunction::end() {}

void c10::TensorImpl::set_requires_grad(bool) {}
void at::TensorBase::set_data(const TensorBase& data) const {
  implementation->storage = data.implementation->storage;
}

at::TensorBase at::detail::empty_cuda(c10::ArrayRef<long> sizes, c10::ScalarType,
                                      std::optional<c10::Device>,
                                      std::optional<c10::MemoryFormat>) {
  int64_t bytes = sizeof(float);
  for (size_t i = 0; i < sizes.size; ++i) bytes *= sizes.data[i];
  FakeAllocate(next_address += 1 << 20, (bytes + 511) / 512 * 512, c10::kCuda, 0);
  void* const address = reinterpret_cast<void*>(next_address);
  TensorBase tensor;
  tensor.implementation =
      new c10::TensorImpl{.storage = new c10::StorageImpl{.address = address, .context = address}};
  return tensor;
}

torch::autograd::SavedVariable::SavedVariable(const at::Tensor& tensor, bool, bool)
    : data(tensor) {}
void torch::autograd::SavedVariable::reset_data() { data.implementation = nullptr; }
void torch::autograd::impl::set_gradient_edge(const at::Tensor&, Edge) {}
void* torch::autograd::impl::post_acc_grad_hooks(const at::Tensor&) { return nullptr; }
void torch::autograd::deleteNode(Node* node) { Release(node); }

// A leaf's gradient is the first one; later ones are added to it.
at::Tensor gradient_of_leaf;
at::Tensor& c10::TensorImpl::mutable_grad() { return gradient_of_leaf; }
torch::autograd::AccumulateGrad::AccumulateGrad(at::Tensor of) : leaf(of) {
  accumulates = this;
  sequence = ~uint64_t{0};
}
std::vector<at::Tensor> torch::autograd::AccumulateGrad::apply(
    std::vector<at::Tensor>&& gradients) {
  at::Tensor& gradient = leaf.implementation->mutable_grad();
  if (gradient.implementation == nullptr) gradient = gradients[0];
  impl::post_acc_grad_hooks(leaf);
  return {};
}

void torch::autograd::Engine::evaluate_function(std::shared_ptr<GraphTask>&, Node* node,
                                                InputBuffer&, const std::shared_ptr<ReadyQueue>&) {
  Release(node);
  if (node->accumulates != nullptr) {
    const at::Tensor gradient = Make({8, 16});
    node->accumulates->apply({gradient});
    if (gradient_of_leaf.implementation != gradient.implementation) Free(gradient);
    return;
  }
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

// A stand-in for the virtual table of a node class, of which only the name matters.
extern "C" const uint64_t fake_vtable[4] asm("_ZTVN5torch8autograd9generated12MulBackward0E");
const uint64_t fake_vtable[4] = {1, 2, 3, 4};

void FakeTrain(int steps) {
  const at::Tensor weight = Make({8, 16});
  weight.implementation->set_requires_grad(true);
  for (int step = 0; step < steps; ++step) {
    const at::Tensor batch = Make({4, 8, 4});
    at::sequence_number::get_and_increment();
    torch::autograd::AccumulateGrad leaf(weight);
    torch::autograd::SavedVariable kept_batch(batch, false, false);
    torch::autograd::SavedVariable kept_weight(weight, false, false);
    Node node;
    node.vtable = const_cast<uint64_t*>(fake_vtable + 2);
    node.saved = &kept_batch;
    node.saved_count = 1;
    node.backward_bytes = 512;
    torch::autograd::Edge edge;
    edge.function = &node;
    torch::autograd::impl::set_gradient_edge(batch, edge);
    torch::autograd::Edge last;
    last.function = &leaf;
    torch::autograd::Engine().execute({edge, last}, {}, false, false, true, {});
  }
}

void FakeSave(int nodes, int tensors, bool released) {
  static const at::Tensor released_ones[] = {Make({256}), Make({256})};
  static const at::Tensor kept_ones[] = {Make({256}), Make({256})};
  const at::Tensor* factors = released ? released_ones : kept_ones;
  for (int i = 0; i < nodes; ++i) {
    at::sequence_number::get_and_increment();
    torch::autograd::SavedVariable saved[2];
    for (int k = 0; k < tensors; ++k)
      saved[k] = torch::autograd::SavedVariable(factors[k], false, false);
    Node node;
    node.vtable = const_cast<uint64_t*>(fake_vtable + 2);
    node.saved = saved;
    node.saved_count = released ? tensors : 0;
    torch::autograd::Edge edge;
    edge.function = &node;
    torch::autograd::impl::set_gradient_edge(factors[0], edge);
    torch::autograd::deleteNode(&node);
  }
}

void FakeOptimizer() {
  c10::LogAPIUsage("python.nn_module");
  c10::LogAPIUsage("python.optimizer");
}

void FakeRange(int8_t scope) {
  at::RecordFunction range(static_cast<at::RecordScope>(scope));
  FakeAllocate(next_address += 1 << 20, 512, c10::kCuda, 0);
  range.end();
  range.end();
}
