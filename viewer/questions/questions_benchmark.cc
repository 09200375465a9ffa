// Measures queries other than those of timelines on a long recording of EVENTS events (environment
// variable; default 10 million). `First` is Prepare(), which the first query waits for; the others
// run after it.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <string_view>

#include "analysis/testing/long_recording.h"
#include "viewer/index/view_index.h"
#include "viewer/questions/questions.h"

namespace gmt::viewer {
namespace {

struct BenchmarkData {
  BenchmarkData() : made(Events(), 1), examination(made.trace(), made.definitions()) {
    uint32_t heap = 0;
    for (uint32_t i = 0; i < made.trace().heaps.size(); ++i) {
      if (made.trace().heaps[i] == "pytorch") heap = i;
    }
    lanes = {{0, heap}};
    questions = std::make_unique<Questions>(examination, lanes);
  }
  static int64_t Events() {
    const char* events = std::getenv("EVENTS");
    return events == nullptr ? 10'000'000 : std::atoll(events);
  }
  static BenchmarkData& Get() {
    static auto* const data = new BenchmarkData;
    return *data;
  }
  const ViewIndex& index() {
    if (index_ == nullptr) {
      index_ = std::make_unique<ViewIndex>();
      std::mutex mutex;
      index_->Build(examination, mutex, [](std::string_view, double) {});
    }
    return *index_;
  }
  uint32_t AnyEvent() {
    return static_cast<uint32_t>(random() % (uint64_t{made.trace().last_step()} + 1));
  }

  analysis::LongRecording made;
  analysis::Examination examination;
  std::vector<Questions::Lane> lanes;
  std::unique_ptr<Questions> questions;
  std::mt19937 random{7};

 private:
  std::unique_ptr<ViewIndex> index_;
};

void First(benchmark::State& state) {
  BenchmarkData& data = BenchmarkData::Get();
  for (auto _ : state) {
    data.questions = std::make_unique<Questions>(data.examination, data.lanes);
    data.questions->Prepare();
  }
}

void SegmentsAtAnyEvent(benchmark::State& state) {
  BenchmarkData& data = BenchmarkData::Get();
  for (auto _ : state) {
    benchmark::DoNotOptimize(data.questions->AnswerSegments(0, data.AnyEvent()).ok());
  }
}

void BlockDetailsOfAnyBlock(benchmark::State& state) {
  BenchmarkData& data = BenchmarkData::Get();
  for (auto _ : state) {
    const auto row = static_cast<uint32_t>(data.random() % data.made.trace().rows.count());
    benchmark::DoNotOptimize(data.questions->AnswerBlock(row).ok());
  }
}

void FlameOfALiveSet(benchmark::State& state) {
  BenchmarkData& data = BenchmarkData::Get();
  for (auto _ : state) {
    FlameQuery query;
    query.scope.to = data.AnyEvent();
    benchmark::DoNotOptimize(data.questions->AnswerFlame(query).ok());
  }
}

// By stack, function, ...; with or without a search text.
void TableOfALiveSet(benchmark::State& state) {
  BenchmarkData& data = BenchmarkData::Get();
  TableQuery query;
  query.by = static_cast<TableQuery::By>(state.range(0));
  query.limit = 50;
  query.sparkline = 40;
  if (state.range(1) != 0) query.scope.filter.text = "f1";
  query.scope.to = data.AnyEvent();
  benchmark::DoNotOptimize(data.questions->AnswerTable(query).ok());  // computes the peaks once
  for (auto _ : state) {
    query.scope.to = data.AnyEvent();
    benchmark::DoNotOptimize(data.questions->AnswerTable(query).ok());
  }
}

void PeaksForANewFilter(benchmark::State& state) {
  BenchmarkData& data = BenchmarkData::Get();
  uint32_t any = 0;
  for (auto _ : state) {
    TableQuery query;
    query.limit = 50;
    query.scope.filter.min_size = ++any;
    query.scope.to = data.AnyEvent();
    benchmark::DoNotOptimize(data.questions->AnswerTable(query).ok());
  }
}

void TableOfAllBorn(benchmark::State& state) {
  BenchmarkData& data = BenchmarkData::Get();
  for (auto _ : state) {
    TableQuery query;
    query.by = static_cast<TableQuery::By>(state.range(0));
    query.limit = 50;
    query.offset = 100;
    query.scope.of = Scope::kBorn;
    query.scope.to = data.made.trace().last_step();
    benchmark::DoNotOptimize(data.questions->AnswerTable(query).ok());
  }
}

void RangesOnce(benchmark::State& state) {
  BenchmarkData& data = BenchmarkData::Get();
  for (auto _ : state) {
    data.questions->SetCategories(nullptr);  // forgets them
    data.questions->PrepareRanges();
  }
}

// By category, function, ...; without a filter, with a search text, or with a size.
void TableOfAnyRange(benchmark::State& state) {
  BenchmarkData& data = BenchmarkData::Get();
  RangeQuery query;
  query.by = static_cast<RangeQuery::By>(state.range(0));
  query.limit = 200;
  if (state.range(1) == 1) query.filter.text = "f1";
  if (state.range(1) == 2) query.filter.min_size = 1 << 20;
  benchmark::DoNotOptimize(data.questions->AnswerRange(query).ok());
  for (auto _ : state) {
    query.from = data.AnyEvent();
    query.to = std::max(query.from, data.AnyEvent());
    benchmark::DoNotOptimize(data.questions->AnswerRange(query).ok());
  }
}

// By layout; of the whole recording or of any part of it; a twentieth of the bytes or addresses, or
// all of them.
void TableOfABox(benchmark::State& state) {
  BenchmarkData& data = BenchmarkData::Get();
  const ViewIndex& index = data.index();
  const auto layout = static_cast<Layout>(state.range(0));
  const double top = layout == Layout::kStacked
                         ? static_cast<double>(index.lanes()[0].peak_bytes)
                         : static_cast<double>(uint64_t{1} << 36);
  RangeQuery query;
  query.limit = 200;
  query.to = data.made.trace().last_step();
  benchmark::DoNotOptimize(
      data.questions->AnswerRange(query).ok());  // prepares the kinds of blocks
  for (auto _ : state) {
    query.box = Box{Axis::kTime, layout, 0.5 * top, 0.55 * top};
    if (state.range(2) == 1) query.box->low = 0, query.box->high = 1e18;
    if (state.range(1) == 1) {
      query.from = data.AnyEvent();
      query.to = std::max(query.from, data.AnyEvent());
    }
    benchmark::DoNotOptimize(data.questions->AnswerRange(query, &index).ok());
  }
}

// Modules of a category, and lines of a function.
void TableWithinRows(benchmark::State& state) {
  BenchmarkData& data = BenchmarkData::Get();
  RangeQuery query;
  query.limit = 1;
  query.by = RangeQuery::kFunction;
  query.to = data.made.trace().last_step();
  const auto functions = data.questions->AnswerRange(query);
  query.limit = 200;
  query.within = {"category/0"};
  query.by = RangeQuery::kModule;
  if (state.range(0) == 1 && functions.ok() && !functions->rows.empty()) {
    query.within.push_back(functions->rows[0].id);
    query.by = RangeQuery::kLine;
  }
  for (auto _ : state) {
    query.from = data.AnyEvent();
    query.to = std::max(query.from, data.AnyEvent());
    benchmark::DoNotOptimize(data.questions->AnswerRange(query).ok());
  }
}

// For the whole recording and for windows of it; filters by text or by size.
void PassingCurveOfAWindow(benchmark::State& state) {
  BenchmarkData& data = BenchmarkData::Get();
  const uint64_t last = data.made.trace().last_step();
  const uint64_t length = last / static_cast<uint64_t>(state.range(0));
  Filter filter;
  if (state.range(1) != 0) {
    filter.text = "f1";
  } else {
    filter.min_size = 1 << 20;
  }
  for (auto _ : state) {
    constexpr uint32_t kColumns = 3000;
    const uint64_t from = data.random() % (last - length + 1);
    ColumnPeaks columns;
    for (uint64_t c = 0; c < kColumns; ++c) {
      columns.event.push_back(static_cast<uint32_t>(from + length * c / kColumns));
      columns.is_known.push_back(true);
    }
    benchmark::DoNotOptimize(data.questions->AnswerPassing(0, filter, columns).ok());
  }
}

void FindNextPage(benchmark::State& state) {
  BenchmarkData& data = BenchmarkData::Get();
  Scope scope;
  scope.of = Scope::kBorn;
  scope.to = data.made.trace().last_step();
  scope.filter.text = "f17";
  uint32_t after = kNoRow;
  benchmark::DoNotOptimize(data.questions->AnswerFind(scope, after, 1).ok());
  for (auto _ : state) {
    const auto found = data.questions->AnswerFind(scope, after, 100);
    after = found.ok() && !found->row.empty() ? found->row.back() : kNoRow;
  }
}

BENCHMARK(First)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(SegmentsAtAnyEvent)->Unit(benchmark::kMillisecond)->Iterations(20);
BENCHMARK(BlockDetailsOfAnyBlock)->Unit(benchmark::kMillisecond)->Iterations(20);
BENCHMARK(FlameOfALiveSet)->Unit(benchmark::kMillisecond)->Iterations(20);
BENCHMARK(TableOfALiveSet)
    ->ArgsProduct({{TableQuery::kStack, TableQuery::kFunction, TableQuery::kSize,
                    TableQuery::kBlock},
                   {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(10);
BENCHMARK(PeaksForANewFilter)->Unit(benchmark::kMillisecond)->Iterations(3);
BENCHMARK(TableOfAllBorn)
    ->Arg(TableQuery::kStack)
    ->Arg(TableQuery::kBlock)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(2);
BENCHMARK(RangesOnce)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(TableOfAnyRange)
    ->ArgsProduct({{RangeQuery::kCategory, RangeQuery::kFunction, RangeQuery::kStack}, {0, 1, 2}})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(10);
BENCHMARK(TableOfABox)
    ->ArgsProduct({{0, 1}, {0, 1}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(5);
BENCHMARK(TableWithinRows)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->Iterations(10);
BENCHMARK(PassingCurveOfAWindow)
    ->ArgsProduct({{1, 10, 1000}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(5);
BENCHMARK(FindNextPage)->Unit(benchmark::kMillisecond)->Iterations(20);

}  // namespace
}  // namespace gmt::viewer
