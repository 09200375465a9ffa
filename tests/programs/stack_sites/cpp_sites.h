// Helpers of the sites of cpp_sites: how they allocate, and how each call keeps its frame.
//
// A comment at each site states its stack, including inlined functions; sites.py describes the
// notation. Frames of these files are stated with function and line, `~` is one or more frames of
// other files, `*` any frames further out, `@?` a line that the compiler chooses, and `main` the
// frames of cpp_sites.cc.
#ifndef TESTS_PROGRAMS_STACK_SITES_CPP_SITES_H_
#define TESTS_PROGRAMS_STACK_SITES_CPP_SITES_H_

#include <stddef.h>

#include <string_view>

#define NOINLINE __attribute__((noinline, noclone))
#define INLINE inline __attribute__((always_inline))

namespace cpp {

// Returns the size of a site, like size_of() in notes.py.
constexpr size_t SizeOf(std::string_view site) {
  size_t value = 0;
  for (char letter : site) value = (value * 131 + static_cast<unsigned char>(letter)) % 65521;
  return (size_t{1} << 20) + 16 * value;
}

// Prevents that the preceding call becomes a tail call, which leaves no frame.
INLINE void Stay() { asm volatile("" ::: "memory"); }

// Allocates `size` bytes, which is a different number for each site.
void Take(size_t size);

// The same for a function that is called repeatedly: allocates at the first call only.
void TakeOnce(size_t size, bool* taken);

void RunCalls();
void RunMoments();

}  // namespace cpp

#endif  // TESTS_PROGRAMS_STACK_SITES_CPP_SITES_H_
