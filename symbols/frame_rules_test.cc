#include "symbols/frame_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "symbols/builtin_frame_rules.h"

namespace gmt::symbols {
namespace {

using ::testing::HasSubstr;

FrameRole RoleOf(std::string_view function, std::string_view module = "",
                 std::string_view file = "", std::string_view language = "c++") {
  return FrameRules::BuiltIn().RoleOf({function, module, file, language});
}
FrameRole Python(std::string_view function, std::string_view file) {
  return RoleOf(function, "", file, "python");
}

constexpr char kTorch[] = "/usr/lib/python3/dist-packages/torch/lib/libtorch_cuda.so";

TEST(BuiltInRules, HaveNoErrors) {
  const auto rules = FrameRules::Parse(BuiltInFrameRules(), "frame_rules.txt");
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_GT(rules->size(), 100u);
  EXPECT_EQ(FrameRules::BuiltIn().size(), rules->size());
}

TEST(BuiltInRules, CodeOfTheProgramIsOwn) {
  EXPECT_EQ(Python("Net.forward", "/home/me/model.py"), FrameRole::kOwn);
  EXPECT_EQ(Python("<module>", "train.py"), FrameRole::kOwn);
  EXPECT_EQ(Python("<module>", "<stdin>"), FrameRole::kOwn);
  EXPECT_EQ(RoleOf("", "/opt/app/bin/server"), FrameRole::kOwn);
  EXPECT_EQ(RoleOf("my::Pool::grow(unsigned long)", "/opt/app/bin/server"), FrameRole::kOwn);
  EXPECT_EQ(RoleOf(""), FrameRole::kOwn);
}

TEST(BuiltInRules, CodeOfLibrariesIsLibrary) {
  EXPECT_EQ(RoleOf("at::native::linear(at::Tensor const&)", kTorch), FrameRole::kLibrary);
  EXPECT_EQ(RoleOf("cublasCreate_v2", "/opt/lib/libcublas.so.13"), FrameRole::kLibrary);
  EXPECT_EQ(RoleOf("", "/usr/lib/x86_64-linux-gnu/libfftw3.so.3"), FrameRole::kLibrary);
  EXPECT_EQ(Python("forward", "/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py"),
            FrameRole::kLibrary);
  EXPECT_EQ(Python("loads", "/usr/lib/python3.12/json/__init__.py"), FrameRole::kLibrary);
}

TEST(BuiltInRules, ProfilerCudaAllocatorAndStartAreNoise) {
  EXPECT_EQ(RoleOf("cudaMalloc", "/opt/lib/libgpumemtrace.so"), FrameRole::kProfiler);
  EXPECT_EQ(RoleOf("", "/usr/lib/libcuda.so.1"), FrameRole::kCuda);
  EXPECT_EQ(RoleOf("cudaMalloc", "/opt/app/static"), FrameRole::kCuda);
  EXPECT_EQ(RoleOf("c10::cuda::CUDACachingAllocator::Native::malloc(...)"), FrameRole::kAllocator);
  EXPECT_EQ(RoleOf("", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"), FrameRole::kAllocator);
  EXPECT_EQ(RoleOf("__libc_start_main", "/lib/libc.so.6"), FrameRole::kStart);
  EXPECT_EQ(RoleOf("_start", "/opt/app/server"), FrameRole::kStart);
  EXPECT_EQ(Python("Thread._bootstrap_inner", "/usr/lib/python3.11/threading.py"),
            FrameRole::kStart);
}

TEST(BuiltInRules, KernelOfANotebookIsNoiseAndItsCellsAreNot) {
  EXPECT_EQ(Python("<module>", "/tmp/ipykernel_77/1234567.py"), FrameRole::kOwn);
  const std::string packages = "/venv/lib/python3.11/site-packages/";
  EXPECT_EQ(Python("InteractiveShell.run_code", packages + "IPython/core/interactiveshell.py"),
            FrameRole::kStart);
  EXPECT_EQ(Python("Kernel.shell_main", packages + "ipykernel/kernelbase.py"), FrameRole::kStart);
  EXPECT_EQ(Python("Handle._run", "/usr/lib/python3.11/asyncio/events.py"), FrameRole::kStart);
  EXPECT_EQ(RoleOf("task_step", "/usr/lib/python3.11/lib-dynload/_asyncio.cpython-311-x86.so"),
            FrameRole::kStart);
}

TEST(BuiltInRules, InterpreterIsNoiseWithAndWithoutNames) {
  EXPECT_EQ(RoleOf("_PyEval_EvalFrameDefault", "/opt/bin/anything"), FrameRole::kInterpreter);
  EXPECT_EQ(RoleOf("", "/usr/bin/python3.11"), FrameRole::kInterpreter);
  EXPECT_EQ(RoleOf("", "/opt/conda/bin/python"), FrameRole::kInterpreter);
  EXPECT_EQ(RoleOf("do_call_core", "/x/libpython3.13.so.1.0"), FrameRole::kInterpreter);
  EXPECT_EQ(Python("_call_with_frames_removed", "<frozen importlib._bootstrap>"),
            FrameRole::kInterpreter);
  EXPECT_EQ(Python("import_module", "/usr/lib/python3.11/importlib/__init__.py"),
            FrameRole::kInterpreter);
}

TEST(BuiltInRules, ReturnTypeIsIgnored) {
  EXPECT_EQ(RoleOf("std::tuple<at::Tensor, long> at::detail::_empty_generic<long>(long)"),
            FrameRole::kAllocator);
  EXPECT_EQ(RoleOf("_object* torch::autograd::TypeError_to_NotImplemented_<&f>(_object*)"),
            FrameRole::kDispatcher);
  EXPECT_EQ(RoleOf("void std::vector<int>::resize(unsigned long)"), FrameRole::kAllocator);
  EXPECT_EQ(RoleOf("void at::cuda::blas::gemm<float>(char, char)"), FrameRole::kLibrary);
}

// Native frames in snapshots have no module, and code without a symbol has the preceding symbol's
// name.
TEST(BuiltInRules, InterpreterAndCLibraryOfSnapshotsAreNoise) {
  for (const char* function : {"PyMethod_New", "run_mod", "pyrun_file", "PyNumber_Multiply",
                               "_PyType_GetTextSignatureFromInternalDoc", "slot_nb_multiply",
                               "vectorcall_maybe", "Py_RunMain"}) {
    EXPECT_EQ(RoleOf(function), FrameRole::kInterpreter) << function;
  }
  for (const char* function : {"__libc_init_first", "pthread_condattr_setpshared", "__xmknodat",
                               "execute_native_thread_routine"}) {
    EXPECT_EQ(RoleOf(function), FrameRole::kStart) << function;
  }
  EXPECT_EQ(RoleOf("builtin_exec_impl", "", "/build/python-3.10.14/Python/bltinmodule.c"),
            FrameRole::kInterpreter);
  EXPECT_EQ(RoleOf("<unwind unsupported>"), FrameRole::kProfiler);
  EXPECT_EQ(RoleOf("PyRing_Grow", "/opt/app/ring.so"), FrameRole::kOwn);
  EXPECT_EQ(RoleOf("pthread_pool_grow", "/opt/app/server"), FrameRole::kOwn);
}

TEST(BuiltInRules, GeneratedCodeIsNotThePrograms) {
  EXPECT_EQ(Python("Runner.call", "/tmp/torchinductor_me/no/cnoys4ba.py"), FrameRole::kLibrary);
  EXPECT_EQ(Python("GraphModule.forward", "<eval_with_key>.12"), FrameRole::kLibrary);
}

TEST(BuiltInRules, PythonOnWindowsIsALibraryToo) {
  EXPECT_EQ(Python("loads", "C:/Programs/Python310/lib/json/__init__.py"), FrameRole::kLibrary);
  EXPECT_EQ(Python("forward", "C:/Programs/Python310/lib/site-packages/timm/vit.py"),
            FrameRole::kLibrary);
}

TEST(FrameRulesTest, EmptyPatternMatchesUnknownFields) {
  const auto rules = FrameRules::Parse("start function=run module=\"\"\n", "mine.txt");
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_EQ(rules->RoleOf({"run", "", "", "c++"}), FrameRole::kStart);
  EXPECT_EQ(rules->RoleOf({"run", "/opt/a.out", "", "c++"}), FrameRole::kOwn);
}

TEST(BuiltInRules, OperatorIsShownAndItsDispatchIsFolded) {
  for (const char* function :
       {"at::detail::empty_cuda(c10::ArrayRef<long>, c10::TensorOptions const&)",
        "at::native::empty_strided_cuda(c10::ArrayRef<long>)",
        "at::_ops::empty_memory_format::call(c10::ArrayRef<c10::SymInt>)",
        "at::(anonymous namespace)::create_out(c10::ArrayRef<long>)",
        "at::(anonymous "
        "namespace)::structured_mm_out_cuda_functional::set_output_raw_strided(long)",
        "at::meta::structured_addmm::meta(at::Tensor const&)"}) {
    EXPECT_EQ(RoleOf(function, kTorch), FrameRole::kAllocator) << function;
  }
  for (const char* function :
       {"c10::impl::wrap_kernel_functor_unboxed_<...>::call(...)",
        "at::_ops::addmm::redispatch(c10::DispatchKeySet, at::Tensor const&)",
        "torch::autograd::VariableType::(anonymous namespace)::addmm(...)",
        "at::(anonymous namespace)::wrapper_CUDA_nll_loss_backward(...)",
        "at::native::_local_scalar_dense_cuda(at::Tensor const&)::{lambda()#1}::operator()() const",
        "at::autocast::cached_cast(c10::ScalarType, at::Tensor const&)",
        "torch::autograd::generated::AddmmBackward0_apply_functional(std::vector<at::Tensor>&&)",
        "torch::autograd::THPVariable_linear(_object*, _object*, _object*)",
        "pybind11::cpp_function::dispatcher(_object*, _object*, _object*)"}) {
    EXPECT_EQ(RoleOf(function, kTorch), FrameRole::kDispatcher) << function;
  }
  EXPECT_EQ(RoleOf("at::_ops::add_Tensor::call(at::Tensor const&)", kTorch), FrameRole::kOperator);
  EXPECT_EQ(RoleOf("torch::autograd::generated::AddmmBackward0::apply(std::vector<at::Tensor>&&)"),
            FrameRole::kLibrary);
}

TEST(BuiltInRules, CallsOfModulesInPythonAreNoise) {
  for (const char* function : {"_call_impl", "Module._wrapped_call_impl"}) {
    EXPECT_EQ(Python(function, "/x/site-packages/torch/nn/modules/module.py"),
              FrameRole::kDispatcher);
  }
  EXPECT_EQ(Python("Module.to", "/x/site-packages/torch/nn/modules/module.py"),
            FrameRole::kLibrary);
}

TEST(BuiltInRules, OnlyWholeNamesMatch) {
  EXPECT_EQ(RoleOf("_start_worker"), FrameRole::kOwn);
  EXPECT_EQ(RoleOf("f", "/opt/libcuda.so.tests/libmodel.so"), FrameRole::kOwn);
  EXPECT_EQ(RoleOf("f", "/opt/python3/bin/server"), FrameRole::kOwn);
  EXPECT_EQ(Python("run", "/home/me/threading.py"), FrameRole::kOwn);
}

FrameRules Rules(std::string_view text) { return FrameRules::Parse(text, "mine.txt").value(); }
std::string Mistake(std::string_view text) {
  return std::string(FrameRules::Parse(text, "mine.txt").status().message());
}

TEST(FrameRules, OnlyStarMatchesAnyText) {
  const FrameRules rules = Rules("cuda function=a*b.c*d");
  for (const char* fits : {"ab.cd", "a--b.c--d", "a b.cb.cd"}) {
    EXPECT_EQ(rules.RoleOf({.function = fits}), FrameRole::kCuda) << fits;
  }
  for (const char* none : {"ab.c", "xab.cd", "ab.cdx", "abxcd", "ad", ""}) {
    EXPECT_EQ(rules.RoleOf({.function = none}), FrameRole::kOwn) << none;
  }
  EXPECT_EQ(Rules("cuda function=a*a").RoleOf({.function = "a"}), FrameRole::kOwn);
}

TEST(FrameRules, BackslashAndQuotesEscape) {
  EXPECT_EQ(Rules(R"(cuda function=operator\*)").RoleOf({.function = "operator*"}),
            FrameRole::kCuda);
  EXPECT_EQ(Rules(R"(cuda function=operator\*)").RoleOf({.function = "operator+"}),
            FrameRole::kOwn);
  EXPECT_EQ(Rules(R"(cuda function="operator new*")").RoleOf({.function = "operator new(int)"}),
            FrameRole::kCuda);
}

TEST(FrameRules, AllPatternsOfARuleMustMatchAndTheFirstRuleDecides) {
  const FrameRules rules = Rules(
      "# mine\n\n"
      "own  file=*/vendored/* function=keep\n"
      "\tlibrary file=*/vendored/*  \r\n"
      "start function=*");
  EXPECT_EQ(rules.RoleOf({.function = "keep", .file = "/x/vendored/a.py"}), FrameRole::kOwn);
  EXPECT_EQ(rules.RoleOf({.function = "other", .file = "/x/vendored/a.py"}), FrameRole::kLibrary);
  EXPECT_EQ(rules.RoleOf({.function = "keep", .file = "/x/a.py"}), FrameRole::kStart);
}

TEST(FrameRules, PatternWithASlashMatchesTheWholePathOfTheModule) {
  const FrameRules rules = Rules("cuda module=/opt/*\nstart module=lib*");
  EXPECT_EQ(rules.RoleOf({.module = "/opt/a/libx.so"}), FrameRole::kCuda);
  EXPECT_EQ(rules.RoleOf({.module = "/srv/libx.so"}), FrameRole::kStart);
}

TEST(FrameRules, ErrorHasItsPlaceAndTheAllowedWords) {
  EXPECT_THAT(Mistake("own file=a\nfold file=b"),
              HasSubstr("mine.txt:2: unknown role 'fold'; known roles: own, library, operator,"));
  EXPECT_THAT(Mistake("own"), HasSubstr("mine.txt:1: which frames are 'own'?"));
  EXPECT_THAT(Mistake("own path=/x"), HasSubstr("mine.txt:1: 'path' instead of function=, file=,"));
  EXPECT_THAT(Mistake("own function"), HasSubstr("'function' instead of function="));
  EXPECT_THAT(Mistake("own file="), HasSubstr("mine.txt:1: file= has no pattern"));
  EXPECT_THAT(Mistake("own file=\"a b"), HasSubstr("no closing \" in \"a b"));
  EXPECT_THAT(Mistake("own file=\"a\"b"), HasSubstr("'b' after a closing \""));
}

TEST(FrameRules, UserRulesPrecedeTheBuiltInOnes) {
  const std::string path = testing::TempDir() + "/user_rules.txt";
  std::ofstream(path) << "own file=*/site-packages/mypackage/*\n";
  const auto rules = FrameRules::WithFile(path);
  ASSERT_TRUE(rules.ok()) << rules.status();
  const std::string_view mine = "/x/site-packages/mypackage/a.py";
  EXPECT_EQ(rules->RoleOf({.function = "f", .file = mine}), FrameRole::kOwn);
  EXPECT_EQ(rules->RoleOf({.function = "_PyEval_Vector"}), FrameRole::kInterpreter);
  EXPECT_EQ(rules->size(), FrameRules::BuiltIn().size() + 1);
}

TEST(FrameRules, UnreadableFileIsAnErrorAndAnEmptyOneIsNot) {
  EXPECT_THAT(std::string(FrameRules::WithFile("/nowhere/rules").status().message()),
              HasSubstr("/nowhere/rules: No such file"));
  EXPECT_THAT(std::string(FrameRules::WithFile("/").status().message()), HasSubstr("directory"));
  EXPECT_TRUE(FrameRules::WithFile("/dev/null").ok());
}

}  // namespace
}  // namespace gmt::symbols
