// Sites that differ in how their function is called.
#include <stdlib.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "tests/programs/stack_sites/cpp_sites.h"

namespace cpp {

NOINLINE void Plain() {
  Take(SizeOf("cc_plain"));  // site cc_plain: cpp::Plain < cpp::RunCalls@plain < main
  Stay();
}

template <typename T>
struct Box {
  template <int n>
  NOINLINE void Grow() {
    Take(SizeOf("cc_template"));  // site cc_template: cpp::Box<double>::Grow<3>
    // < cpp::RunCalls@template < main
    Stay();
  }
};

INLINE void Innermost() {
  Take(SizeOf("cc_inline"));  // site cc_inline: cpp::Innermost < cpp::Middle@middle_inline
  // < cpp::Inlines@inlines < cpp::RunCalls@inline < main
}

INLINE void Middle() {
  Innermost();  // @middle_inline
}

NOINLINE void Inlines() {
  Middle();  // @inlines
  Stay();
}

NOINLINE void Lambdas() {
  const auto generic = [](auto) NOINLINE {
    Take(SizeOf("cc_lambda"));  // site cc_lambda:
    // cpp::Lambdas()::{lambda(auto:1)#1}::operator()<int> < cpp::Lambdas@lambda
    // < cpp::RunCalls@lambdas < main
    Stay();
  };
  generic(1);  // @lambda
  Stay();
}

NOINLINE bool Less(int a, int b) {
  static bool taken = false;
  TakeOnce(SizeOf("cc_sort"), &taken);  // site cc_sort: cpp::TakeOnce@cc_take_once
  // < cpp::Less@cc_sort < ~ < cpp::Sorts@sorts < cpp::RunCalls@sort < main
  return a < b;
}

NOINLINE void Sorts() {
  std::vector<int> numbers = {3, 1, 2};
  std::sort(numbers.begin(), numbers.end(), Less);  // @sorts
  Stay();
}

NOINLINE int Compare(const void*, const void*) {
  static bool taken = false;
  TakeOnce(SizeOf("cc_qsort"), &taken);  // site cc_qsort: cpp::TakeOnce@cc_take_once
  // < cpp::Compare@cc_qsort < ~ < cpp::SortsInC@qsort < cpp::RunCalls@sort_in_c < main
  return 0;
}

NOINLINE void SortsInC() {
  int numbers[] = {2, 1};
  qsort(numbers, 2, sizeof(int), Compare);  // @qsort
  Stay();
}

NOINLINE void Called() {
  Take(SizeOf("cc_function"));  // site cc_function: cpp::Called < ~ < cpp::Functions@function
  // < cpp::RunCalls@functions < main
  Stay();
}

NOINLINE void Functions() {
  std::function<void()> function = Called;
  asm volatile("" : "+m"(function));
  function();  // @function
  Stay();
}

struct Shape {
  virtual ~Shape() = default;
  virtual void Area() = 0;
};

struct Square : Shape {
  NOINLINE void Area() override {
    Take(SizeOf("cc_virtual"));  // site cc_virtual: cpp::Square::Area < cpp::Virtuals@virtual
    // < cpp::RunCalls@virtuals < main
    Stay();
  }
};

NOINLINE void Virtuals() {
  std::unique_ptr<Shape> shape = std::make_unique<Square>();
  asm volatile("" : "+m"(shape));
  shape->Area();  // @virtual
}

struct Visitor {
  NOINLINE void operator()(int) const {
    Take(SizeOf("cc_visit"));  // site cc_visit: cpp::Visitor::operator() < ~ < cpp::Visits@visit
    // < cpp::RunCalls@visits < main
    Stay();
  }
  NOINLINE void operator()(const std::string&) const { Stay(); }
};

NOINLINE void Visits() {
  std::variant<std::string, int> value = 7;
  asm volatile("" : "+m"(value));
  std::visit(Visitor(), value);  // @visit
  Stay();
}

NOINLINE void Recurses(int depth) {
  if (depth == 0) {
    Take(SizeOf("cc_recursion"));  // site cc_recursion: cpp::Recurses < cpp::Recurses@recurses
    // < cpp::Recurses@recurses < cpp::RunCalls@recursion < main
  } else {
    Recurses(depth - 1);  // @recurses
  }
  Stay();
}

NOINLINE void Descends(int depth) {
  if (depth == 0) {
    Take(SizeOf("cc_deep"));  // site cc_deep: cpp::Descends < cpp::Descends@descends
    // < cpp::Descends@descends < ...
  } else {
    Descends(depth - 1);  // @descends
  }
  Stay();
}

NOINLINE void Aligned() {
  alignas(64) char space[192];
  asm volatile("" : : "r"(space) : "memory");
  Take(SizeOf("cc_aligned"));  // site cc_aligned: cpp::Aligned < cpp::RunCalls@aligned < main
  Stay();
}

NOINLINE void OnStack(size_t bytes) {
  void* space = __builtin_alloca(bytes);
  asm volatile("" : : "r"(space) : "memory");
  Take(SizeOf("cc_alloca"));  // site cc_alloca: cpp::OnStack < cpp::RunCalls@alloca < main
  Stay();
}

struct AtScopeEnd {
  size_t size;
  NOINLINE ~AtScopeEnd() {
    Take(size);  // @scope_end
    // site cc_scope: cpp::AtScopeEnd::~AtScopeEnd@scope_end < cpp::Scopes@scope_ends
    // < cpp::RunCalls@scopes < main
    Stay();
  }
};

NOINLINE void Scopes() {
  AtScopeEnd guard{SizeOf("cc_scope")};
  Stay();
}  // @scope_ends

NOINLINE void Throws() {
  AtScopeEnd guard{SizeOf("cc_unwind")};
  throw std::runtime_error("thrown");
}

NOINLINE void Catches() {
  // site cc_unwind: cpp::AtScopeEnd::~AtScopeEnd@scope_end < cpp::Throws@? < cpp::Catches@try
  // < cpp::RunCalls@catches < main
  try {
    Throws();  // @try
  } catch (const std::runtime_error&) {
    Take(SizeOf("cc_catch"));  // site cc_catch: cpp::Catches < cpp::RunCalls@catches < main
  }
  Stay();
}

NOINLINE void Rethrows() {
  try {
    try {
      throw 1;
    } catch (int) {
      Take(SizeOf("cc_rethrow"));  // site cc_rethrow: cpp::Rethrows
      // < cpp::RunCalls@rethrows < main
      throw;
    }
  } catch (int) {
    Take(SizeOf("cc_again"));  // site cc_again: cpp::Rethrows < cpp::RunCalls@rethrows < main
  }
  Stay();
}

NOINLINE void RunCalls() {
  Plain();                  // @plain
  Box<double>().Grow<3>();  // @template
  Inlines();                // @inline
  Lambdas();                // @lambdas
  Sorts();                  // @sort
  SortsInC();               // @sort_in_c
  Functions();              // @functions
  Virtuals();               // @virtuals
  Visits();                 // @visits
  Recurses(2);              // @recursion
  Descends(1000);
  Aligned();       // @aligned
  OnStack(12345);  // @alloca
  Scopes();        // @scopes
  Catches();       // @catches
  Rethrows();      // @rethrows
  Stay();
}

}  // namespace cpp
