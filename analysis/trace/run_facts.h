// analysis/trace/run_facts.h
//
// Facts in a recording about the machine and the program (proto/gmt.proto, Facts).
//
// Thread safety: plain values.

#ifndef GMT_ANALYSIS_TRACE_RUN_FACTS_H_
#define GMT_ANALYSIS_TRACE_RUN_FACTS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace gmt::analysis {

struct GpuFacts {
  uint32_t index = 0;        // CUDA's index, as seen by the program
  std::string name;          // "NVIDIA H100"; empty if unknown
  uint64_t total_bytes = 0;  // 0 if unknown
};

// A setting of the program or the version of a library.
struct NamedText {
  std::string name, text;
  bool is_json = false;  // `text` is JSON

  // `text`, without the quotes of a JSON string.
  std::string_view value() const {
    const std::string_view all = text;
    const bool is_quoted = is_json && all.size() >= 2 && all.front() == '"';
    return is_quoted ? all.substr(1, all.size() - 2) : all;
  }
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_RUN_FACTS_H_
