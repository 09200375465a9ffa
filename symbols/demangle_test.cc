#include "symbols/demangle.h"

#include <gtest/gtest.h>

namespace gmt::symbols {
namespace {

constexpr char kLong[] =
    "void at::native::gpu_kernel_impl<at::native::BinaryFunctor<float, float, float, "
    "at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&, "
    "at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> "
    "> "
    "const&)";

TEST(Demangle, CxxNamesAreReadable) {
  EXPECT_EQ(Demangle("_ZN2at6native5emptyEv"), "at::native::empty()");
  EXPECT_EQ(Demangle("_ZN2at5emptyEi.constprop.0.isra.0"), "at::empty(int)");
  EXPECT_EQ(Demangle("parse.part.3"), "parse");
  EXPECT_EQ(Demangle("_Znwm@GLIBCXX_3.4"), "operator new(unsigned long)");
}

TEST(Demangle, OtherNamesAreUnchanged) {
  for (const char* name : {"cudaMalloc", "", "_", "_Z", "_ZN", "_Z\xff\xfe", "main.c"}) {
    EXPECT_EQ(Demangle(name), name);
  }
}

TEST(Demangle, HugeNameIsNotDemangled) {
  const std::string name = "_Z" + std::string(4 << 20, 'P');
  EXPECT_EQ(Demangle(name), name);
}

TEST(WithoutCloneSuffix, CompilerClonesHaveTheNameOfTheFunction) {
  EXPECT_EQ(WithoutCloneSuffix("at::sum(at::Tensor const&) [clone .constprop.0]"),
            "at::sum(at::Tensor const&)");
  EXPECT_EQ(WithoutCloneSuffix("f(int) [clone .isra.0] [clone .cold]"), "f(int)");
  EXPECT_EQ(WithoutCloneSuffix("run_mod.llvm.9196888086361497952"), "run_mod");
  EXPECT_EQ(WithoutCloneSuffix("Py_RunMain.localalias"), "Py_RunMain");
  EXPECT_EQ(WithoutCloneSuffix("f(int)"), "f(int)");
}

TEST(WithoutReturnType, IsRemovedFromTemplateFunctions) {
  EXPECT_EQ(WithoutReturnType("std::tuple<at::Tensor, long> at::empty<long>(int, long)"),
            "at::empty<long>(int, long)");
  EXPECT_EQ(WithoutReturnType("void (anonymous namespace)::f<int>(int)"),
            "(anonymous namespace)::f<int>(int)");
  for (const char* whole : {"at::f(int, long) const", "operator new(unsigned long)", "main", "",
                            "f(int)::{lambda(int)#1}::operator()(int) const"}) {
    EXPECT_EQ(WithoutReturnType(whole), whole);
  }
}

TEST(ShortName, FittingNameIsUnchanged) {
  EXPECT_EQ(ShortName("at::empty(int)", 14), "at::empty(int)");
}

TEST(ShortName, ArgumentsAreRemovedFirstThenTemplateArgumentsAndReturnType) {
  EXPECT_EQ(ShortName("at::native::empty(long, std::vector<int>)", 20), "at::native::empty");
  EXPECT_EQ(ShortName(kLong, 60), "at::native::gpu_kernel_impl");
}

TEST(ShortName, LeadingNamespacesAreRemovedNext) {
  EXPECT_EQ(ShortName(kLong, 24), "native::gpu_kernel_impl");
  EXPECT_EQ(ShortName(kLong, 20), "gpu_kernel_impl");
  EXPECT_EQ(ShortName("a::(anonymous namespace)::grow_the_pool", 20), "grow_the_pool");
  EXPECT_EQ(ShortName("one::two::Call::operator()", 17), "Call::operator()");
}

TEST(ShortName, NameThatIsStillTooLongKeepsItsEnd) {
  EXPECT_EQ(ShortName(kLong, 12), "...rnel_impl");
  EXPECT_EQ(ShortName("abcdef", 2), "ab");
  EXPECT_EQ(ShortName("abcdef", 0), "");
}

TEST(ShortName, AnonymousNamespaceIsAName) {
  EXPECT_EQ(ShortName("(anonymous namespace)::Load(int, int, int, int)", 40),
            "(anonymous namespace)::Load");
}

TEST(ShortName, OperatorsKeepTheirBrackets) {
  EXPECT_EQ(ShortName("ns::operator<<(std::ostream&, ns::Thing const&)", 30), "ns::operator<<");
  EXPECT_EQ(ShortName("ns::Call<int>::operator()(int, int, int) const", 30),
            "ns::Call<int>::operator()");
  EXPECT_EQ(ShortName("ns::Pointer<int>::operator->(int, int) const", 30),
            "ns::Pointer<int>::operator->");
}

TEST(ShortName, UnbalancedBracketsOfDamagedNamesAreHarmless) {
  for (const char* name :
       {"a<<<<<<<<<<b", "a>>>>>>>>>>>b", "((((((((((((", "operator<operator<operator"}) {
    EXPECT_LE(ShortName(name, 8).size(), 8u) << name;
  }
}

TEST(Demangle, BareNameIsTheNameAlone) {
  EXPECT_EQ(BareName("at::native::linear(at::Tensor const&)"), "at::native::linear");
  EXPECT_EQ(BareName("void f<std::pair<int, long> >(int) const"), "f<std::pair<int, long> >");
  EXPECT_EQ(BareName("(anonymous namespace)::grow(int)"), "(anonymous namespace)::grow");
  EXPECT_EQ(BareName("cudaMalloc"), "cudaMalloc");
  EXPECT_EQ(BareName("operator new(unsigned long)"), "operator new");
  EXPECT_EQ(BareName(""), "");
}

}  // namespace
}  // namespace gmt::symbols
