// symbols/demangle.h
//
// Names as people read them.
//
// Thread safety: pure functions.

#ifndef GMT_SYMBOLS_DEMANGLE_H_
#define GMT_SYMBOLS_DEMANGLE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace gmt::symbols {

// Longer mangled names stay mangled: the demangler's time and memory grow faster than its input,
// and a damaged string table can hold a "name" of megabytes.
inline constexpr size_t kMaxMangledBytes = 16 * 1024;

// The C++ name of a symbol; the symbol itself where it is none. A compiler's copy (".isra.0") and a
// versioned symbol ("@GLIBC_2.34") bear the name of the function.
std::string Demangle(std::string_view symbol);

// Without what compilers add to the names of their own copies of a function, in a symbol or as
// demanglers print it: "f.isra.0" -> "f", "f(int) [clone .cold]" -> "f(int)".
std::string_view WithoutCloneSuffix(std::string_view function);

// A template function's demangled name begins with its return type:
//
//   std::tuple<long, int> at::empty<long>(int)  ->  at::empty<long>(int)
std::string_view WithoutReturnType(std::string_view function);

// A name that fits a report: whole while it is at most `width` bytes, then without its argument
// list, then without template arguments ("at::native::add_kernel<...>" becomes
// "at::native::add_kernel"), then without leading namespaces, then cut with "...".
//
//   void at::gpu_kernel<at::AddFunctor<float> >(at::TensorIteratorBase&, int)  ->  at::gpu_kernel
std::string ShortName(std::string_view function, size_t width);

// The name alone, without arguments and return type, however much room there is:
//
//   at::native::linear(at::Tensor const&)  ->  at::native::linear
std::string BareName(std::string_view function);

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_DEMANGLE_H_
