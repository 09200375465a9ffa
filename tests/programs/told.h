// What a program called, in order, told to whoever runs it: a check compares a recording with it,
// call by call.
//
//   Told told;
//   TELL(told, cudaMalloc(&pointer, 1000));  // the name of the exported function is in the text
//   told.Call("cudaFree", free(pointer));    // for functions called through a pointer
//   return told.Finish();
//
// Finish prints {"calls": [{"api": "cudaMalloc", "result": 0}, ...]} on standard output. A call
// that does not end as it should makes the program fail.
//
// Thread safety: none; programs with threads keep one for each.
#ifndef TESTS_PROGRAMS_TOLD_H_
#define TESTS_PROGRAMS_TOLD_H_

#include <cstdio>
#include <string>
#include <vector>

class Told {
 public:
  // Returns `result`, which must be 0.
  int Call(const char* api, int result) { return Expect(api, result, 0); }

  // The same for a call that is to end with `expected`.
  int Expect(const char* api, int result, int expected) {
    std::string name(api);
    calls_.push_back({name.substr(0, name.find('(')), result});
    if (result != expected) {
      std::fprintf(stderr, "%s: %d instead of %d\n", api, result, expected);
      ++failures_;
    }
    return result;
  }

  // For what is no call.
  void Check(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "does not hold: %s\n", what);
    ++failures_;
  }

  // Appends what another one was told.
  void Append(const Told& other) {
    calls_.insert(calls_.end(), other.calls_.begin(), other.calls_.end());
    failures_ += other.failures_;
  }

  // The exit code of the program.
  int Finish() const {
    std::printf("{\"calls\": [");
    const char* separator = "";
    for (const One& call : calls_) {
      std::printf("%s{\"api\": \"%s\", \"result\": %d}", separator, call.api.c_str(), call.result);
      separator = ", ";
    }
    std::printf("]}\n");
    std::fflush(stdout);
    return failures_ == 0 ? 0 : 1;
  }

 private:
  struct One {
    std::string api;
    int result;
  };
  std::vector<One> calls_;
  int failures_ = 0;
};

// The indirection lets CUDA's macros turn a name into that of the exported function first.
#define TOLD_TEXT(...) #__VA_ARGS__
#define TOLD_NAME(...) TOLD_TEXT(__VA_ARGS__)
#define TELL(told, ...) (told).Call(TOLD_NAME(__VA_ARGS__), (__VA_ARGS__))
#define TELL_FAILS(told, expected, ...) \
  (told).Expect(TOLD_NAME(__VA_ARGS__), (__VA_ARGS__), expected)

#endif  // TESTS_PROGRAMS_TOLD_H_
