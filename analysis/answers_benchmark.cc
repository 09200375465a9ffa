// Loads a recording, computes every answer, and reports the time and memory of each. scripts/bench
// --answers puts the figures into docs/overhead.md.
//
// Usage: answers_benchmark FILE.gmt [ANSWER...]    only these answers, for profiling
// Prints one JSON line: events, nanoseconds to load, bytes of the loaded trace, peak bytes while
// loading, nanoseconds of each answer.

#include <malloc.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/diff/diff.h"
#include "analysis/examination/examination.h"
#include "analysis/fragmentation/fragmentation.h"
#include "analysis/leaks/leaks.h"
#include "analysis/ledger/ledger.h"
#include "analysis/oom/oom.h"
#include "analysis/report/report.h"
#include "analysis/trace/trace_builder.h"
#include "format/recording_reader.h"

namespace gmt::analysis {
namespace {

using Clock = std::chrono::steady_clock;

int64_t NsSince(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

// Returns a field of /proc/self/status ("VmRSS", "VmHWM") in bytes.
uint64_t Memory(const std::string& what) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(what))
      return std::strtoull(line.c_str() + what.size() + 1, nullptr, 10) << 10;
  }
  return 0;
}

struct Answer {
  const char* name;
  std::function<void()> ask;
};

// Each answer uses its own examination, like a verb of the program.
std::vector<Answer> Answers(const Trace& trace, const format::Definitions& definitions) {
  const auto examine = [&] { return Examination(trace, definitions); };
  return {
      {"report",
       [=] {
         const Examination examination = examine();
         (void)MakeReport(examination, {});
       }},
      {"categories",
       [=] {
         const Examination examination = examine();
         const Categories categories = Categorize(examination);
         const Step peak = InstantOn(examination, At{}, examination.MainDevice())->step;
         (void)CategoriesAt(examination, categories, examination.MainDevice(), peak);
       }},
      {"leaks", [=] { (void)FindLeaks(examine()); }},
      {"frag", [=] { (void)FindFragmentation(examine(), {}); }},
      {"ledger", [=] { (void)MakeLedgers(examine(), {}); }},
      {"oom",
       [=] {
         const Examination examination = examine();
         (void)ExplainOom(examination, Categorize(examination), FindLeaks(examination));
       }},
      {"diff",
       [=] {
         const Examination examination = examine();
         const Categories categories = Categorize(examination);
         (void)Compare(examination, categories, examination, categories, {});
       }},
  };
}

int Run(const char* path, const std::set<std::string>& only) {
  const uint64_t before = Memory("VmRSS:");
  const auto start = Clock::now();
  auto reader = format::RecordingReader::Open(path);
  if (!reader.ok()) {
    std::fprintf(stderr, "%s\n", std::string(reader.status().message()).c_str());
    return 1;
  }
  TraceBuilder builder((*reader)->definitions());
  if (const absl::Status status = (*reader)->Read(builder); !status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return 1;
  }
  const Trace trace = std::move(builder).Build();
  const int64_t load_ns = NsSince(start);
  const uint64_t most = Memory("VmHWM:") - before;
  malloc_trim(0);
  const uint64_t kept = Memory("VmRSS:") - before;
  std::printf("{\"events\": %zu, \"load_ns\": %" PRId64 ", \"bytes\": %" PRIu64
              ", \"bytes_while_loading\": %" PRIu64 ", \"answers_ns\": {",
              trace.steps.size(), load_ns, kept, most);
  const char* separator = "";
  for (const Answer& answer : Answers(trace, (*reader)->definitions())) {
    if (!only.empty() && !only.contains(answer.name)) continue;
    const auto asked = Clock::now();
    answer.ask();
    std::printf("%s\"%s\": %" PRId64, std::exchange(separator, ", "), answer.name, NsSince(asked));
  }
  std::printf("}, \"bytes_at_most\": %" PRIu64 "}\n", Memory("VmHWM:"));
  return 0;
}

}  // namespace
}  // namespace gmt::analysis

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: answers_benchmark FILE.gmt [ANSWER...]\n");
    return 2;
  }
  return gmt::analysis::Run(argv[1], {argv + 2, argv + argc});
}
