// What the places of cpp_sites share: how one allocates, and how a stack stays what is written.
//
// Each place says in a comment what its stack must be, inlined functions included; sites.py has the
// notation. Frames of these files are stated with function and line, `~` is one or more of others,
// `*` whatever stands further out, `@?` a line that is the compiler's choice, `main`
// the part of cpp_sites.cc.
#ifndef TESTS_PROGRAMS_STACK_SITES_CPP_SITES_H_
#define TESTS_PROGRAMS_STACK_SITES_CPP_SITES_H_

#include <stddef.h>

#include <string_view>

#define NOINLINE __attribute__((noinline, noclone))
#define INLINE inline __attribute__((always_inline))

namespace cpp {

// As size_of in notes.py.
constexpr size_t SizeOf(std::string_view site) {
  size_t value = 0;
  for (char letter : site) value = (value * 131 + static_cast<unsigned char>(letter)) % 65521;
  return (size_t{1} << 20) + 16 * value;
}

// Behind a call that would otherwise become a jump, which leaves no frame.
INLINE void Stay() { asm volatile("" ::: "memory"); }

// Allocates that much, which is another number for each place.
void Take(size_t size);

// The same, for what is called again and again.
void TakeOnce(size_t size, bool* taken);

void RunCalls();
void RunMoments();

}  // namespace cpp

#endif  // TESTS_PROGRAMS_STACK_SITES_CPP_SITES_H_
