// Measures how often `frag` is right: at random moments of generated programs on a model of
// PyTorch's allocator, compares its answer about free memory with the model's own lists.

#include <fmt/format.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "analysis/fragmentation/fragmentation.h"
#include "format/units.h"
#include "tests/evaluate/evaluation.h"
#include "tests/evaluate/fragmentation/allocator_model.h"

namespace gmt::evaluate {
namespace {

using analysis::Step;

constexpr uint64_t kStreams = 3, kGraphPool = 5;

struct Moment {
  uint64_t events = 0;  // number of the script's events before it
  uint64_t stream = 0;
  AllocatorModel::Truth truth;
};

// A program that allocates and frees at random on several streams, captures graphs, uses blocks on
// other streams and empties its cache.
class Program {
 public:
  Program(uint64_t seed, analysis::EventScript& script)
      : random_(seed), script_(script), model_(script, {}) {}

  std::vector<Moment> Run() {
    // The analysis knows which code of the allocator records CUDA events after the first query of
    // one.
    if (const auto first = model_.Malloc(kMiB, 1, {"first"})) {
      model_.FreeAwaiting(*first, 2);
      model_.FinishStreams();
    }
    const uint64_t actions = Pick(50, 600);
    for (uint64_t i = 0; i < actions; ++i) {
      Act();
      if (Pick(0, 19) == 0) Note();
    }
    Note();
    return moments_;
  }

 private:
  uint64_t Pick(uint64_t low, uint64_t high) {
    return std::uniform_int_distribution<uint64_t>(low, high)(random_);
  }
  uint64_t Size() {
    switch (Pick(0, 3)) {
      case 0:
        return Pick(1, 2000) * 512;
      case 1:
        return Pick(1, 20) * kMiB;
      default:
        return Pick(1, 600) * kMiB + Pick(0, 999) * 1000;
    }
  }

  void Note() {
    const uint64_t stream = Pick(1, kStreams);
    moments_.push_back({script_.batch().events.size(), stream, model_.TruthFor(stream)});
    // A moment lasts until the next allocation or free and includes the streams' completions until
    // then, so the next event must be an allocation.
    if (const auto address = model_.Malloc(512, stream, {"marker"})) live_.push_back(*address);
  }

  void Act() {
    const uint64_t what = Pick(0, 99);
    if (what < 55) {
      const uint64_t stream = Pick(1, kStreams);
      const auto address = model_.Malloc(Size(), stream, {"site" + std::to_string(Pick(0, 9))});
      if (address) live_.push_back(*address);
    } else if (what < 90) {
      if (const auto address = TakeLive()) model_.Free(*address);
    } else if (what < 94) {
      if (const auto address = TakeLive()) model_.FreeAwaiting(*address, kStreams + 1);
    } else if (what < 96) {
      model_.FinishStreams();
    } else if (what < 98) {
      CaptureGraph();
    } else {
      model_.EmptyCache();
    }
  }

  std::optional<uint64_t> TakeLive() {
    if (live_.empty()) return std::nullopt;
    std::swap(live_[Pick(0, live_.size() - 1)], live_.back());
    const uint64_t address = live_.back();
    live_.pop_back();
    return address;
  }

  void CaptureGraph() {
    const uint64_t stream = Pick(1, kStreams);
    model_.BeginCapture(stream, kGraphPool + graphs_++);
    std::vector<uint64_t> blocks;
    for (uint64_t i = Pick(1, 6); i > 0; --i) {
      if (const auto address = model_.Malloc(Size(), stream, {"captured"})) {
        blocks.push_back(*address);
      }
    }
    for (const uint64_t address : blocks) {
      if (Pick(0, 2) == 0) {
        live_.push_back(address);
      } else {
        model_.Free(address);
      }
    }
    model_.EndCapture();
  }

  std::mt19937_64 random_;
  analysis::EventScript& script_;
  AllocatorModel model_;
  std::vector<uint64_t> live_;
  std::vector<Moment> moments_;
  uint64_t graphs_ = 0;
};

struct Scores {
  Rate sums, releasable, pinned, stream, private_pool, awaiting, largest;
};

void Compare(const Moment& moment, const analysis::Fragmentation& found, Scores& scores) {
  const AllocatorModel::Truth& truth = moment.truth;
  scores.sums.Add(found.split.sum() == found.reserved_bytes - found.allocated_bytes &&
                  found.reserved_bytes == truth.reserved &&
                  found.allocated_bytes == truth.allocated);
  scores.releasable.Add(found.split.releasable == truth.releasable);
  scores.pinned.Add(found.split.pinned == truth.pinned);
  scores.stream.Add(found.split.stream == truth.stream);
  scores.private_pool.Add(found.split.private_pool == truth.private_pool);
  scores.awaiting.Add(found.split.awaiting_stream == truth.awaiting);
  scores.largest.Add(found.largest_free_bytes == truth.largest);
}

// Returns the step after the first `events` events of the script, using their times.
Step StepAfterEvents(const analysis::Trace& trace, uint64_t events) {
  return analysis::StepAt(trace, static_cast<int64_t>(events) * analysis::EventScript::kStep_ns);
}

}  // namespace
}  // namespace gmt::evaluate

int main(int argc, char** argv) {
  using namespace gmt::evaluate;
  Evaluation evaluation(
      {.name = "fragmentation", .title = "Fragmentation", .seeds = 200, .quick_seeds = 10}, argc,
      argv);
  Scores scores;
  uint64_t moments = 0;
  for (const uint64_t seed : evaluation.seeds()) {
    gmt::analysis::EventScript script;
    const std::vector<Moment> noted = Program(seed, script).Run();
    const gmt::analysis::Trace trace = script.Build();
    const gmt::analysis::Examination examination(trace, script.definitions());
    for (const Moment& moment : noted) {
      const uint64_t right = scores.pinned.right + scores.stream.right + scores.releasable.right +
                             scores.private_pool.right + scores.awaiting.right +
                             scores.largest.right + scores.sums.right;
      const auto found = gmt::analysis::FragmentationAfter(
          examination, 0, StepAfterEvents(trace, moment.events), {moment.stream, std::nullopt});
      Compare(moment, found, scores);
      ++moments;
      const uint64_t now = scores.pinned.right + scores.stream.right + scores.releasable.right +
                           scores.private_pool.right + scores.awaiting.right +
                           scores.largest.right + scores.sums.right;
      if (now - right != 7) {
        evaluation.Missed(
            seed,
            fmt::format(
                "at event {}: found/true releasable {}/{} pinned {}/{} stream {}/{} private "
                "{}/{} awaiting {}/{} largest {}/{}",
                moment.events, found.split.releasable, moment.truth.releasable, found.split.pinned,
                moment.truth.pinned, found.split.stream, moment.truth.stream,
                found.split.private_pool, moment.truth.private_pool, found.split.awaiting_stream,
                moment.truth.awaiting, found.largest_free_bytes, moment.truth.largest));
      }
    }
  }
  evaluation.Text(fmt::format(
      "Generated programs on a model of PyTorch's allocator: several streams, captured graphs, "
      "blocks that other streams use, emptied caches, retries. {} moments, each cause compared to "
      "the byte.",
      moments));
  evaluation.AtLeast("reserved, allocated and their difference", scores.sums, 1);
  evaluation.AtLeast("releasable bytes", scores.releasable, 0.95);
  evaluation.AtLeast("bytes beside live blocks", scores.pinned, 0.95);
  evaluation.AtLeast("bytes of other streams", scores.stream, 0.95);
  evaluation.AtLeast("bytes in private pools", scores.private_pool, 0.95);
  evaluation.AtLeast("bytes awaiting streams", scores.awaiting, 0.95);
  evaluation.AtLeast("largest piece", scores.largest, 0.95);
  return evaluation.Finish();
}
