#include "symbols/folding.h"

namespace gmt::symbols {
namespace {

enum class Field { kFunction, kModuleName, kFile };
enum class Match { kPrefix, kContains };

struct Rule {
  Field field;
  Match match;
  std::string_view text;
  FrameRole role;
};

// The first rule that matches decides.
constexpr Rule kRules[] = {
    {Field::kModuleName, Match::kPrefix, "libgpumemtrace.so", FrameRole::kProfiler},

    {Field::kModuleName, Match::kPrefix, "libcuda.so", FrameRole::kCuda},
    {Field::kModuleName, Match::kPrefix, "libcudart.so", FrameRole::kCuda},
    {Field::kModuleName, Match::kPrefix, "libcudart-", FrameRole::kCuda},
    {Field::kFunction, Match::kPrefix, "cudart::", FrameRole::kCuda},
    {Field::kFunction, Match::kPrefix, "__cudart", FrameRole::kCuda},
    // A program linked with the static runtime holds these itself.
    {Field::kFunction, Match::kPrefix, "cudaMalloc", FrameRole::kCuda},
    {Field::kFunction, Match::kPrefix, "cudaHostAlloc", FrameRole::kCuda},
    {Field::kFunction, Match::kPrefix, "cudaHostRegister", FrameRole::kCuda},
    {Field::kFunction, Match::kPrefix, "cudaFree", FrameRole::kCuda},

    {Field::kFunction, Match::kContains, "CUDACachingAllocator::", FrameRole::kAllocator},
    {Field::kFunction, Match::kContains, "CachingHostAllocator", FrameRole::kAllocator},
    {Field::kFunction, Match::kContains, "CUDAMallocAsyncAllocator", FrameRole::kAllocator},
    {Field::kFunction, Match::kPrefix, "c10::alloc_", FrameRole::kAllocator},
    {Field::kFunction, Match::kPrefix, "c10::StorageImpl::StorageImpl", FrameRole::kAllocator},
    {Field::kFunction, Match::kPrefix, "c10::reportMemoryUsageToProfiler", FrameRole::kAllocator},
    {Field::kFunction, Match::kPrefix, "std::", FrameRole::kAllocator},
    {Field::kFunction, Match::kPrefix, "void std::", FrameRole::kAllocator},
    {Field::kFunction, Match::kPrefix, "__gnu_cxx::", FrameRole::kAllocator},
    {Field::kFunction, Match::kPrefix, "operator new", FrameRole::kAllocator},
    {Field::kFunction, Match::kPrefix, "rmm::mr::", FrameRole::kAllocator},
    {Field::kFunction, Match::kPrefix, "thrust::", FrameRole::kAllocator},

    // How an operator of PyTorch gets the memory of its result: the operator itself stands further
    // out.
    {Field::kFunction, Match::kPrefix, "at::detail::empty", FrameRole::kAllocator},
    {Field::kFunction, Match::kPrefix, "at::native::empty", FrameRole::kAllocator},
    {Field::kFunction, Match::kPrefix, "at::empty", FrameRole::kAllocator},
    {Field::kFunction, Match::kPrefix, "at::_ops::empty", FrameRole::kAllocator},
    {Field::kFunction, Match::kContains, "::wrapper_CUDA__empty", FrameRole::kAllocator},
    {Field::kFunction, Match::kContains, "::wrapper_CUDA_memory_format_empty",
     FrameRole::kAllocator},
    {Field::kFunction, Match::kPrefix, "at::(anonymous namespace)::create_out",
     FrameRole::kAllocator},
    {Field::kFunction, Match::kContains, "::set_output_raw_strided(", FrameRole::kAllocator},
    {Field::kFunction, Match::kContains, "::set_output_strided(", FrameRole::kAllocator},

    {Field::kFunction, Match::kPrefix, "c10::impl::wrap_kernel_functor", FrameRole::kDispatcher},
    {Field::kFunction, Match::kPrefix, "c10::Dispatcher::", FrameRole::kDispatcher},
    {Field::kFunction, Match::kContains, "::redispatch(", FrameRole::kDispatcher},
    {Field::kFunction, Match::kPrefix, "at::autocast::WrapFunction_", FrameRole::kDispatcher},
    {Field::kFunction, Match::kPrefix, "torch::autograd::VariableType::", FrameRole::kDispatcher},
    {Field::kFunction, Match::kContains, "::wrapper_CUDA_", FrameRole::kDispatcher},

    {Field::kModuleName, Match::kPrefix, "libpython3", FrameRole::kInterpreter},
    {Field::kModuleName, Match::kPrefix, "_ctypes.", FrameRole::kInterpreter},
    {Field::kModuleName, Match::kPrefix, "libffi.so", FrameRole::kInterpreter},
    {Field::kFunction, Match::kPrefix, "_PyEval_", FrameRole::kInterpreter},
    {Field::kFunction, Match::kPrefix, "PyEval_", FrameRole::kInterpreter},
    {Field::kFunction, Match::kPrefix, "_PyObject_", FrameRole::kInterpreter},
    {Field::kFunction, Match::kPrefix, "PyObject_", FrameRole::kInterpreter},
    {Field::kFunction, Match::kPrefix, "_PyFunction_", FrameRole::kInterpreter},
    {Field::kFunction, Match::kPrefix, "PyVectorcall_", FrameRole::kInterpreter},
    {Field::kFunction, Match::kPrefix, "cfunction_", FrameRole::kInterpreter},
    {Field::kFunction, Match::kPrefix, "PyRun_", FrameRole::kInterpreter},
    {Field::kFunction, Match::kPrefix, "_PyRun_", FrameRole::kInterpreter},
    {Field::kFunction, Match::kPrefix, "Py_RunMain", FrameRole::kInterpreter},
    {Field::kFunction, Match::kPrefix, "Py_BytesMain", FrameRole::kInterpreter},
    {Field::kFunction, Match::kPrefix, "pybind11::cpp_function", FrameRole::kInterpreter},
    {Field::kFile, Match::kPrefix, "<frozen ", FrameRole::kInterpreter},

    {Field::kFunction, Match::kPrefix, "__libc_start_", FrameRole::kStart},
    {Field::kFunction, Match::kPrefix, "start_thread", FrameRole::kStart},
    {Field::kFunction, Match::kPrefix, "__clone", FrameRole::kStart},
};

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool Matches(const Rule& rule, std::string_view text) {
  const size_t at = text.find(rule.text);
  return rule.match == Match::kPrefix ? at == 0 : at != std::string_view::npos;
}

}  // namespace

FrameRole RoleOf(std::string_view function, std::string_view module, std::string_view file) {
  const std::string_view module_name = BaseName(module);
  for (const Rule& rule : kRules) {
    switch (rule.field) {
      case Field::kFunction:
        if (Matches(rule, function)) return rule.role;
        break;
      case Field::kModuleName:
        if (Matches(rule, module_name)) return rule.role;
        break;
      case Field::kFile:
        if (Matches(rule, file)) return rule.role;
        break;
    }
  }
  // The process entry point is exactly "_start"; a prefix would take "_start_worker" with it.
  return function == "_start" ? FrameRole::kStart : FrameRole::kOwn;
}

}  // namespace gmt::symbols
