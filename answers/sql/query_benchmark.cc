// Loads a recording and times SQL about it. scripts/bench --answers puts the figures into
// docs/overhead.md.
//
// Usage: query_benchmark FILE.gmt [SQL...]    only these statements, for profiling
// Prints one JSON line: for each statement the nanoseconds of its first run, for which the columns
// that it groups by are numbered, and of another one, both also as processor time, which does not
// grow if the machine has other work. Categories have been computed before.

#include <time.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "answers/recording.h"
#include "answers/sql/query.h"

namespace gmt::answers::sql {
namespace {

using Clock = std::chrono::steady_clock;

// Scans of the largest tables, and the slowest columns to read.
std::vector<std::string> Statements() {
  return {
      "SELECT category, sum(bytes) FROM memory GROUP BY category",
      "SELECT heap, category, sum(bytes) FROM memory GROUP BY heap, category",
      "SELECT stack, sum(bytes) FROM memory WHERE free_ns IS NULL GROUP BY stack",
      "SELECT count(*), sum(bytes) FROM blocks",
      "SELECT max(free_ns - alloc_ns) FROM memory",
      "SELECT bytes, stack FROM memory ORDER BY bytes DESC LIMIT 10",
      "SELECT DISTINCT dtype, shape FROM memory",
      "SELECT kind, sum(change) FROM events GROUP BY kind",
      "SELECT count(*), max(change) FROM events WHERE t_ns > 1000000",
  };
}

int64_t ProcessorTime() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Runs the statement, and adds its times to `times` under names that begin with `run`.
void Time(Query& query, const std::string& statement, const std::string& run,
          nlohmann::ordered_json& times) {
  const auto begin = Clock::now();
  const int64_t cpu_begin = ProcessorTime();
  const auto done = query.Run(statement, {.form = Form::kCsv}, [](std::string_view) {});
  if (!done.ok()) std::fprintf(stderr, "%s\n", std::string(done.status().message()).c_str());
  times[run + "_cpu_ns"] = ProcessorTime() - cpu_begin;
  times[run + "_ns"] =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

int Run(const char* path, std::vector<std::string> statements) {
  const auto recording = LoadRecording(path, nullptr);
  if (!recording.ok()) {
    std::fprintf(stderr, "%s\n", std::string(recording.status().message()).c_str());
    return 1;
  }
  (void)(*recording)->categories();
  nlohmann::ordered_json times;
  for (const std::string& statement : statements.empty() ? Statements() : statements) {
    const auto query = Query::Make();
    if (!query.ok()) return 1;
    (*query)->Add(**recording, path);
    Time(**query, statement, "first", times[statement]);
    Time(**query, statement, "again", times[statement]);
  }
  std::printf("%s\n", times.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace gmt::answers::sql

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: query_benchmark FILE.gmt [SQL...]\n");
    return 2;
  }
  return gmt::answers::sql::Run(argv[1], {argv + 2, argv + argc});
}
