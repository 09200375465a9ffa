// Loads a recording and times SQL about it. scripts/bench --answers puts the figures into
// docs/overhead.md.
//
// Usage: query_benchmark FILE.gmt [SQL...]    only these statements, for profiling
// Prints one JSON line: for each statement the nanoseconds of its first run, for which the columns
// that it groups by are numbered, and of another one. Categories have been computed before.

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

int64_t Time(Query& query, const std::string& statement) {
  const auto begin = Clock::now();
  const auto done = query.Run(statement, {.form = Form::kCsv}, [](std::string_view) {});
  if (!done.ok()) std::fprintf(stderr, "%s\n", std::string(done.status().message()).c_str());
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
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
    times[statement]["first_ns"] = Time(**query, statement);
    times[statement]["again_ns"] = Time(**query, statement);
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
