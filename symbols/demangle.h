// symbols/demangle.h
//
// Readable names of symbols.
//
// Thread safety: pure functions.

#ifndef GMT_SYMBOLS_DEMANGLE_H_
#define GMT_SYMBOLS_DEMANGLE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace gmt::symbols {

// Longer mangled names are not demangled: the demangler's time and memory grow faster than its
// input, and a damaged string table can contain a "name" of megabytes.
inline constexpr size_t kMaxMangledBytes = 16 * 1024;

// Returns the C++ name of a symbol, or the symbol itself if it has none. Suffixes of compiler
// clones (".isra.0") and symbol versions ("@GLIBC_2.34") are removed.
std::string Demangle(std::string_view symbol);

// Removes the suffixes that compilers add to the names of clones of a function, in a symbol or in a
// demangled name: "f.isra.0" -> "f", "f(int) [clone .cold]" -> "f(int)".
std::string_view WithoutCloneSuffix(std::string_view function);

// Removes the return type from the demangled name of a template function:
//
//   std::tuple<long, int> at::empty<long>(int)  ->  at::empty<long>(int)
std::string_view WithoutReturnType(std::string_view function);

// Returns a name that fits a report. It is complete if it has at most `width` bytes. Otherwise it
// loses, in this order: its argument list, template arguments ("at::native::add_kernel<...>"
// becomes "at::native::add_kernel"), leading namespaces, and finally its beginning, replaced by
// "...".
//
//   void at::gpu_kernel<at::AddFunctor<float> >(at::TensorIteratorBase&, int)  ->  at::gpu_kernel
std::string ShortName(std::string_view function, size_t width);

// Returns the name without arguments and return type, regardless of its length:
//
//   at::native::linear(at::Tensor const&)  ->  at::native::linear
std::string BareName(std::string_view function);

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_DEMANGLE_H_
