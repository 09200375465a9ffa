// A log of the CUDA calls that a program made, in order. A check compares a recording with it, call
// by call.
//
//   TruthLog truth;
//   LOG_CALL(truth, cudaMalloc(&pointer, 1000));  // logs the name of the exported function
//   truth.Call("cudaFree", free(pointer));        // for functions called through a pointer
//   return truth.Finish();
//
// Finish() prints {"calls": [{"api": "cudaMalloc", "result": 0}, ...]} on standard output. A call
// with an unexpected result makes the program fail.
//
// Not thread-safe: programs with several threads use one log per thread.
#ifndef TESTS_PROGRAMS_TRUTH_LOG_H_
#define TESTS_PROGRAMS_TRUTH_LOG_H_

#include <cstdio>
#include <string>
#include <vector>

class TruthLog {
 public:
  // Logs a call whose result must be 0. Returns `result`.
  int Call(const char* api, int result) { return Expect(api, result, 0); }

  // Logs a call whose result must be `expected`. Returns `result`.
  int Expect(const char* api, int result, int expected) {
    std::string name(api);
    calls_.push_back({name.substr(0, name.find('(')), result});
    if (result != expected) {
      std::fprintf(stderr, "%s: %d instead of %d\n", api, result, expected);
      ++failures_;
    }
    return result;
  }

  // Checks a condition without logging a call.
  void Check(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "does not hold: %s\n", what);
    ++failures_;
  }

  // Appends the calls and failures of another log.
  void Append(const TruthLog& other) {
    calls_.insert(calls_.end(), other.calls_.begin(), other.calls_.end());
    failures_ += other.failures_;
  }

  // Prints the calls. Returns the exit code of the program.
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

// The indirection first expands CUDA's macros, which replace a name by that of the exported
// function.
#define TRUTH_TEXT(...) #__VA_ARGS__
#define TRUTH_NAME(...) TRUTH_TEXT(__VA_ARGS__)
#define LOG_CALL(truth, ...) (truth).Call(TRUTH_NAME(__VA_ARGS__), (__VA_ARGS__))
#define LOG_FAILING_CALL(truth, expected, ...) \
  (truth).Expect(TRUTH_NAME(__VA_ARGS__), (__VA_ARGS__), expected)

#endif  // TESTS_PROGRAMS_TRUTH_LOG_H_
