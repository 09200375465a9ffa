// Loads a recording, builds its index, and queries windows from the whole recording to a millionth
// of it, as a page does while a user zooms. docs/viewer.md has figures.
//
// Usage: view_index_benchmark [--cached] FILE.gmt
// Windows have 1,600 columns and 900 rows. --cached: queries only, on the cache that a previous run
// left beside the file. Prints one JSON line: blocks, nanoseconds to load and to each stage of the
// index (wall time, because blocks are sorted on all processors), bytes of the index per block,
// nanoseconds to save and to load its cache, and for each zoom the CPU nanoseconds of curve and
// blocks (median, maximum) and the maximum number of shapes.

#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/examination/examination.h"
#include "analysis/trace/trace_builder.h"
#include "format/recording_reader.h"
#include "viewer/index/index_archive.h"
#include "viewer/index/index_cache.h"
#include "viewer/index/view_index.h"

namespace gmt::viewer {
namespace {

constexpr int kWindows = 20;  // at each zoom
constexpr uint32_t kColumns = 1600, kRows = 900;

int64_t CpuNs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

int64_t WallNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

template <int64_t (*kNow)()>
class Watch {
 public:
  int64_t ns() const { return kNow() - start_; }

 private:
  const int64_t start_ = kNow();
};
using Stopwatch = Watch<CpuNs>;   // time of the current thread
using WallWatch = Watch<WallNs>;  // for work of several threads

uint64_t PeakMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM")) return std::strtoull(line.c_str() + 6, nullptr, 10) << 10;
  }
  return 0;
}

struct Zoom {
  Axis axis;
  Layout layout;
  double x, y;  // how many times the window fits into the whole
};

struct Cost {
  std::vector<int64_t> curve_ns, blocks_ns;
  size_t most_shapes = 0, most_blocks = 0;
};

int64_t Percentile(std::vector<int64_t> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

class Windows {
 public:
  explicit Windows(const ViewIndex& index) : index_(index) {}

  Cost Measure(const Zoom& zoom) {
    Cost cost;
    for (int i = 0; i < kWindows; ++i) {
      const BlockQuery query = RandomQuery(zoom);
      const Stopwatch curve_watch;
      const auto curve = index_.SelectCurve(query.window);
      cost.curve_ns.push_back(curve_watch.ns());
      const Stopwatch blocks_watch;
      const auto blocks = index_.SelectBlocks(query);
      cost.blocks_ns.push_back(blocks_watch.ns());
      if (!curve.ok() || !blocks.ok()) std::abort();
      const auto items = static_cast<size_t>(std::count_if(
          blocks->row.begin(), blocks->row.end(), [](uint32_t row) { return row != kNoRow; }));
      cost.most_blocks = std::max(cost.most_blocks, items);
      cost.most_shapes = std::max(cost.most_shapes, items + blocks->run_column.size());
    }
    return cost;
  }

 private:
  double Fraction() { return std::uniform_real_distribution<double>()(random_); }
  BlockQuery RandomQuery(const Zoom& zoom) {
    const Lane& lane = index_.lanes().front();
    BlockQuery query;
    query.layout = zoom.layout;
    const double end = index_.PositionOf(zoom.axis, index_.events());
    const double width = end / zoom.x;
    const double from = Fraction() * (end - width);
    query.window = {0, zoom.axis, from, from + width, kColumns};
    const double top = zoom.layout == Layout::kStacked ? static_cast<double>(lane.peak_bytes)
                                                       : AddressesOf(index_);
    query.low = Fraction() * (top - top / zoom.y);
    query.high = query.low + top / zoom.y;
    query.rows = kRows;
    return query;
  }
  static double AddressesOf(const ViewIndex& index) {
    const std::vector<Space>& spaces = index.parts().spaces.front().spaces;
    return spaces.empty() ? 1 : static_cast<double>(spaces.back().place + spaces.back().size);
  }

  const ViewIndex& index_;
  std::mt19937 random_{1};
};

void PrintZooms(const ViewIndex& index) {
  constexpr const char* kAxisNames[] = {"time", "event", "step"};
  Windows windows(index);
  const char* separator = "";
  std::vector<int64_t> all;
  std::printf(", \"zooms\": [");
  for (const Layout layout : {Layout::kStacked, Layout::kAddress}) {
    for (const Axis axis : {Axis::kTime, Axis::kEvent, Axis::kStep}) {
      if (axis == Axis::kStep && !index.has_steps()) continue;
      for (const double y : {1.0, 10.0, 1000.0}) {
        for (double x = 1; x <= 1e6; x *= 10) {
          const Cost cost = windows.Measure({axis, layout, x, y});
          for (int i = 0; i < kWindows; ++i) {
            all.push_back(cost.curve_ns[static_cast<size_t>(i)] +
                          cost.blocks_ns[static_cast<size_t>(i)]);
          }
          std::printf(
              "%s{\"layout\": \"%s\", \"axis\": \"%s\", \"x\": %.0f, \"y\": %.0f, "
              "\"curve_ns\": [%" PRId64 ", %" PRId64 "], \"blocks_ns\": [%" PRId64 ", %" PRId64
              "], \"blocks\": %zu, \"shapes\": %zu}",
              std::exchange(separator, ", "), layout == Layout::kStacked ? "stacked" : "address",
              kAxisNames[static_cast<size_t>(axis)], x, y, Percentile(cost.curve_ns, 0.5),
              Percentile(cost.curve_ns, 1), Percentile(cost.blocks_ns, 0.5),
              Percentile(cost.blocks_ns, 1), cost.most_blocks, cost.most_shapes);
        }
      }
    }
  }
  std::printf("], \"all_ns\": [%" PRId64 ", %" PRId64 "]", Percentile(all, 0.5),
              Percentile(all, 1));
}

uint64_t BytesOfIndex(const ViewIndex& index) {
  IndexWriter writer;
  writer.Item(const_cast<IndexParts&>(index.parts()));
  return writer.data_bytes() + writer.outline().size();
}

int RunCached(const char* path) {
  const Stopwatch watch;
  const CachedIndex cached = LoadIndex(path);
  if (cached.index == nullptr) {
    std::fprintf(stderr, "%s has no cache\n", path);
    return 1;
  }
  std::printf("{\"load_cache_ns\": %" PRId64, watch.ns());
  PrintZooms(*cached.index);
  std::printf("}\n");
  return 0;
}

int Run(const char* path) {
  const Stopwatch load_watch;
  auto reader = format::RecordingReader::Open(path);
  if (!reader.ok()) {
    std::fprintf(stderr, "%s\n", std::string(reader.status().message()).c_str());
    return 1;
  }
  analysis::TraceBuilder builder((*reader)->definitions());
  if (const absl::Status status = (*reader)->Read(builder); !status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return 1;
  }
  ViewIndex index;
  uint64_t blocks = 0;
  {
    const analysis::Trace trace = std::move(builder).Build();
    blocks = trace.rows.count();
    std::printf("{\"blocks\": %" PRIu64 ", \"events\": %zu, \"load_ns\": %" PRId64
                ", \"stages_ns\": [",
                blocks, trace.steps.size(), load_watch.ns());
    const analysis::Examination examination(trace, (*reader)->definitions());
    std::mutex examining;
    const WallWatch index_watch;
    const char* separator = "";
    index.Build(examination, examining, [&](std::string_view what, double) {
      std::printf("%s[\"%.*s\", %" PRId64 "]", std::exchange(separator, ", "),
                  static_cast<int>(what.size()), what.data(), index_watch.ns());
    });
    const Stopwatch categorize_watch;
    const analysis::Categories categories = Categorize(examination);
    const int64_t categorize_ns = categorize_watch.ns();
    const Stopwatch categories_watch;
    index.AddCategories(trace, categories, analysis::AliveTexts(examination, categories));
    std::printf("], \"categorize_ns\": %" PRId64 ", \"categories_ns\": %" PRId64, categorize_ns,
                categories_watch.ns());
  }
  malloc_trim(0);
  std::printf(", \"bytes_a_block\": %.2f",
              static_cast<double>(BytesOfIndex(index)) / static_cast<double>(blocks));
  const Stopwatch save_watch;
  const absl::Status saved = SaveIndex(path, index, "");
  const int64_t save_ns = save_watch.ns();
  const Stopwatch cache_watch;
  const CachedIndex cached = LoadIndex(path);
  if (!saved.ok() || cached.index == nullptr) {
    std::fprintf(stderr, "no cache: %s\n", std::string(saved.message()).c_str());
    return 1;
  }
  std::printf(", \"save_ns\": %" PRId64 ", \"load_cache_ns\": %" PRId64, save_ns, cache_watch.ns());
  PrintZooms(*cached.index);
  std::printf(", \"bytes_at_most\": %" PRIu64 "}\n", PeakMemory());
  return 0;
}

}  // namespace
}  // namespace gmt::viewer

int main(int argc, char** argv) {
  if (argc == 2) return gmt::viewer::Run(argv[1]);
  if (argc == 3 && std::strcmp(argv[1], "--cached") == 0) return gmt::viewer::RunCached(argv[2]);
  std::fprintf(stderr, "usage: view_index_benchmark [--cached] FILE.gmt\n");
  return 2;
}
