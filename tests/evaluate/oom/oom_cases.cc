#include "tests/evaluate/oom/oom_cases.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <random>

#include "format/units.h"
#include "tests/evaluate/fragmentation/allocator_model.h"

namespace gmt::evaluate {
namespace {

using analysis::OomVerdict;

constexpr uint64_t kMain = 0, kSide = 7;

class CaseMaker {
 public:
  CaseMaker(uint64_t seed, analysis::EventScript& script) : random_(seed * 7919), script_(script) {
    constexpr std::array<uint64_t, 4> kSizes = {16, 24, 40, 80};
    device_.total_bytes = kSizes[Pick(0, 3)] * kGiB;
    device_.context_bytes = Pick(250, 600) * kMiB;
    device_.has_nvml = Pick(0, 3) != 0;
  }

  OomCase Make(OomVerdict truth) {
    case_.truth = truth;
    switch (truth) {
      case OomVerdict::kCapacity:
        Chance({&CaseMaker::Fill, &CaseMaker::FillWithSteps, &CaseMaker::FillTheDriver});
        break;
      case OomVerdict::kFragmentation:
        Chance({&CaseMaker::PinnedHoles, &CaseMaker::HolesOfAnotherStream});
        break;
      case OomVerdict::kLeak:
        Leak();
        break;
      case OomVerdict::kOutside:
        Chance({&CaseMaker::Nccl, &CaseMaker::GrowingContext});
        break;
      case OomVerdict::kSingleRequest:
        Chance({&CaseMaker::TooLarge, &CaseMaker::TooLargeForTheDriver});
        break;
      case OomVerdict::kCap:
        Limited();
        break;
      case OomVerdict::kOtherProcess:
        Chance({&CaseMaker::OthersFromTheStart, &CaseMaker::OthersLate});
        break;
      case OomVerdict::kStreamDeferred:
        AwaitingInACapture();
        break;
      case OomVerdict::kPrivatePool:
        Chance(
            {&CaseMaker::GraphPool, &CaseMaker::UnnamedPool, &CaseMaker::CacheThatNcclCannotUse});
        break;
      case OomVerdict::kNone:
        Chance({&CaseMaker::MendedRetries, &CaseMaker::NothingFails});
        break;
    }
    return case_;
  }

 private:
  uint64_t Pick(uint64_t low, uint64_t high) {
    return std::uniform_int_distribution<uint64_t>(low, high)(random_);
  }
  void Chance(const std::vector<void (CaseMaker::*)()>& ways) {
    (this->*ways[Pick(0, ways.size() - 1)])();
  }
  void Start(const std::string& kind) {
    case_.kind = kind;
    // Memory that every program uses and that is not the reason of the failure.
    if (Pick(0, 1) == 0) device_.others_bytes += Percent(1) / 4 * Pick(0, 12);
    model_ = std::make_unique<AllocatorModel>(script_, device_);
    for (uint64_t i = Pick(0, 3); i > 0; --i) {
      model_->DriverMalloc(Percent(1) / 10 * Pick(1, 8), {"ncclCommInitRank", "main"});
    }
  }
  uint64_t Percent(uint64_t percent) const { return device_.total_bytes / 100 * percent; }

  std::optional<uint64_t> Keep(uint64_t bytes, const std::string& site, uint64_t stream = kMain) {
    return model_->Malloc(bytes, stream, {site, "main"});
  }
  // Allocates blocks until the driver has about `rest` bytes free.
  void FillUpTo(uint64_t rest) {
    while (model_->driver_free() > rest + 64 * kMiB) {
      const uint64_t most = (model_->driver_free() - rest) / kMiB;
      Keep(Pick(32, std::clamp<uint64_t>(most, 32, 700)) * kMiB, "layer" + Number(9));
    }
  }
  std::string Number(uint64_t most) { return std::to_string(Pick(0, most)); }
  // Makes temporary allocations, like every program.
  void Churn(uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) {
      const auto block = Keep(Pick(1, 300) * kMiB, "temporary" + Number(4));
      if (block) model_->Free(*block);
    }
  }
  void Request(uint64_t bytes, uint64_t stream = kMain) { Keep(bytes, "request", stream); }

  // ---- Capacity ----

  void Fill() {
    device_.others_bytes = Pick(0, 2) * Percent(1);
    Start("parameters and activations");
    Churn(Pick(0, 8));
    model_->EmptyCache();
    while (Keep(Pick(20, 900) * kMiB, "layer" + Number(30))) {
    }
  }
  void FillWithSteps() {
    Start("larger activations in a late step");
    for (int i = 0; i < 6; ++i) Keep(Percent(Pick(2, 5)), "parameter" + std::to_string(i));
    const uint64_t steps = Pick(3, 40);
    for (uint64_t step = 0; step < steps; ++step) {
      script_.Mark("step", step);
      std::vector<uint64_t> activations;
      for (int i = 0; i < 5; ++i) {
        if (const auto block = Keep(Percent(Pick(3, 5)), "layer" + std::to_string(i))) {
          activations.push_back(*block);
        }
      }
      for (const uint64_t block : activations) model_->Free(block);
    }
    model_->EmptyCache();
    script_.Mark("step", steps);
    while (Keep(Percent(Pick(4, 9)), "layer" + Number(4))) {
    }
  }
  void FillTheDriver() {
    Start("cudaMalloc alone");
    while (model_->DriverMalloc(Pick(10, 800) * kMiB, {"load" + Number(5), "main"})) {
    }
    model_->Sample();
  }

  // ---- Fragmentation ----

  // Creates segments that contain a small block and are otherwise free, and fills the device.
  void Holes(uint64_t stream) {
    const uint64_t hole = Pick(150, 500) * kMiB;
    const uint64_t count = Percent(Pick(15, 35)) / hole + 2;
    std::vector<uint64_t> fillers;
    for (uint64_t i = 0; i < count; ++i) {
      const auto whole = Keep(hole, "activation", stream);
      if (!whole) break;
      model_->Free(*whole);
      // Both together fill the segment, so that the next pin does not fit into it.
      const uint64_t pin = Pick(3, 10) * (kMiB / 2);
      Keep(pin, "metric", stream);
      if (const auto rest = Keep(hole - pin, "activation", stream)) fillers.push_back(*rest);
    }
    const uint64_t request = hole + hole * Pick(2, 10) / 10;
    FillUpTo(Pick(0, request / 2));
    for (const uint64_t filler : fillers) model_->Free(filler);
    case_.cause_bytes =
        stream == kMain ? model_->TruthFor(kMain).pinned : model_->TruthFor(kMain).stream;
    Request(request);
  }
  void PinnedHoles() {
    Start("holes beside small blocks");
    Holes(kMain);
  }
  void HolesOfAnotherStream() {
    Start("holes in another stream's segments");
    Holes(kSide);
  }

  // ---- Leak ----

  void Leak() {
    Start("a tensor kept each step");
    for (int i = 0; i < 5; ++i) Keep(Percent(Pick(2, 4)), "parameter" + std::to_string(i));
    const uint64_t activation = Percent(Pick(1, 2));
    const uint64_t room = model_->driver_free() - 4 * activation;
    const uint64_t leak = room / Pick(230, 600) / 512 * 512;
    for (uint64_t step = 0; step < 2000; ++step) {
      script_.Mark("step", step);
      std::vector<uint64_t> activations;
      bool failed = false;
      for (int i = 0; i < 3 && !failed; ++i) {
        const auto block = Keep(activation, "layer" + std::to_string(i));
        failed = !block;
        if (block) activations.push_back(*block);
      }
      if (!failed) failed = !Keep(leak, "history");
      if (failed) return;
      case_.cause_bytes += leak;
      for (const uint64_t block : activations) model_->Free(block);
    }
  }

  // ---- Outside the framework, and outside the process ----

  void Nccl() {
    Start("memory of NCCL and of an extension");
    const uint64_t most = Percent(Pick(35, 60));
    uint64_t taken = 0;
    while (taken < most) {
      const uint64_t bytes = Pick(20, 400) * kMiB;
      const bool nccl = Pick(0, 1) == 0;
      if (!model_->DriverMalloc(bytes, {nccl ? "ncclCommInitRank" : "build_index", "main"})) break;
      taken += bytes;
    }
    case_.cause_bytes = taken;
    while (Keep(Pick(50, 700) * kMiB, "layer" + Number(9))) {
    }
  }
  void GrowingContext() {
    device_.has_nvml = true;
    Start("memory without a call");
    for (int i = 0; i < 5; ++i) {
      Keep(Percent(2), "parameter");
      model_->Sample();
    }
    const uint64_t grown = Percent(Pick(30, 50));
    model_->SetContext(device_.context_bytes + grown);
    model_->Sample();
    case_.cause_bytes = grown;
    while (Keep(Pick(50, 700) * kMiB, "layer" + Number(9))) {
    }
  }
  void OthersFromTheStart() {
    device_.others_bytes = Percent(Pick(40, 75));
    case_.cause_bytes = device_.others_bytes;
    Start(device_.has_nvml ? "another process, distinguished"
                           : "another process, not distinguished");
    Churn(Pick(0, 3));
    model_->EmptyCache();
    while (Keep(Pick(50, 700) * kMiB, "layer" + Number(9))) {
    }
  }
  void OthersLate() {
    Start(device_.has_nvml ? "another process, late" : "another process, late, not distinguished");
    for (int i = 0; i < 5; ++i) {
      Keep(Percent(Pick(2, 4)), "parameter");
      model_->Sample();
    }
    case_.cause_bytes = Percent(Pick(40, 65));
    model_->SetOthers(case_.cause_bytes);
    while (Keep(Pick(50, 700) * kMiB, "layer" + Number(9))) {
    }
  }

  // ---- One request, a limit ----

  void TooLarge() {
    Start("a request larger than the device");
    for (uint64_t i = Pick(0, 6); i > 0; --i) Keep(Percent(Pick(1, 10)), "layer");
    Request(Percent(Pick(102, 500)));
  }
  void TooLargeForTheDriver() {
    Start("a cudaMalloc larger than the device");
    model_->DriverMalloc(Percent(3), {"load", "main"});
    model_->DriverMalloc(Percent(Pick(102, 500)), {"request", "main"});
  }
  void Limited() {
    device_.limit_bytes = Percent(Pick(20, 70));
    case_.cap_bytes = *device_.limit_bytes;
    Start("set_per_process_memory_fraction");
    Churn(Pick(0, 4));
    while (Keep(Pick(50, 900) * kMiB, "layer" + Number(9))) {
    }
  }

  // ---- Pools and streams ----

  // The analysis knows which code of the allocator records CUDA events after the first query of
  // one.
  void ShowEvents() {
    if (const auto block = Keep(kMiB * 2, "first")) {
      model_->FreeAwaiting(*block, kSide);
      model_->FinishStreams();
    }
  }
  void AwaitingInACapture() {
    Start("freed, awaiting a stream, in a capture");
    ShowEvents();
    std::vector<uint64_t> blocks;
    const uint64_t most = Percent(Pick(20, 35));
    for (uint64_t bytes = 0; bytes < most;) {
      const uint64_t size = Pick(100, 600) * kMiB;
      const auto block = Keep(size, "gather");
      if (!block) break;
      blocks.push_back(*block);
      bytes += size;
    }
    const uint64_t request = Percent(Pick(4, 9));
    FillUpTo(Pick(0, request / 2));
    model_->BeginCapture(kMain, 3);
    for (const uint64_t block : blocks) model_->FreeAwaiting(block, kSide);
    case_.cause_bytes = model_->TruthFor(kMain).awaiting;
    Request(request);
  }
  void GraphPool() {
    Start("free in a graph's pool");
    ShowEvents();
    model_->BeginCapture(kMain, 3);
    std::vector<uint64_t> blocks;
    const uint64_t most = Percent(Pick(20, 40));
    for (uint64_t bytes = 0; bytes < most;) {
      const uint64_t size = Pick(100, 700) * kMiB;
      const auto block = Keep(size, "captured");
      if (!block) break;
      blocks.push_back(*block);
      bytes += size;
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (i % 5 != 0) model_->Free(blocks[i]);
    }
    model_->EndCapture();
    case_.cause_bytes = model_->TruthFor(kMain).private_pool;
    while (Keep(Pick(50, 700) * kMiB, "layer" + Number(9))) {
    }
  }
  void UnnamedPool() {
    Start("free in a MemPool without a name");
    std::vector<uint64_t> blocks;
    const uint64_t most = Percent(Pick(20, 40));
    for (uint64_t bytes = 0; bytes < most;) {
      const uint64_t size = Pick(100, 700) * kMiB;
      const auto block = model_->Malloc(size, kMain, {"pooled", "main"}, 9);
      if (!block) break;
      blocks.push_back(*block);
      bytes += size;
    }
    for (const uint64_t block : blocks) model_->Free(block);
    case_.cause_bytes = model_->TruthFor(kMain).private_pool;
    while (Keep(Pick(50, 700) * kMiB, "layer" + Number(9))) {
    }
  }
  void CacheThatNcclCannotUse() {
    Start("PyTorch's cache, which NCCL cannot use");
    std::vector<uint64_t> blocks;
    const uint64_t most = Percent(Pick(20, 45));
    for (uint64_t bytes = 0; bytes < most;) {
      const uint64_t size = Pick(100, 700) * kMiB;
      const auto block = Keep(size, "evaluation");
      if (!block) break;
      blocks.push_back(*block);
      bytes += size;
    }
    const uint64_t request = Percent(Pick(4, 10));
    FillUpTo(Pick(0, request / 2));
    for (const uint64_t block : blocks) model_->Free(block);
    case_.cause_bytes = model_->TruthFor(kMain).releasable;
    model_->DriverMalloc(request, {"ncclCommInitRank", "main"});
    model_->Sample();
  }

  // ---- None ----

  void MendedRetries() {
    Start("retries that helped");
    for (uint64_t i = 0; i < Pick(1, 20); ++i) {
      std::vector<uint64_t> cached;
      const uint64_t size = Percent(Pick(10, 14));
      while (model_->driver_free() > size + 4 * kMiB) {
        if (const auto block = Keep(size, "cached")) cached.push_back(*block);
      }
      for (const uint64_t block : cached) model_->Free(block);
      if (const auto block = Keep(Percent(30), "whole")) model_->Free(*block);
    }
  }
  void NothingFails() {
    Start("nothing fails");
    Churn(Pick(5, 60));
  }

  std::mt19937_64 random_;
  analysis::EventScript& script_;
  AllocatorModel::Device device_;
  std::unique_ptr<AllocatorModel> model_;
  OomCase case_;
};

}  // namespace

OomCase MakeOomCase(uint64_t seed, analysis::EventScript& script) {
  // Seeds of one parity cycle through all classes.
  const auto truth = static_cast<OomVerdict>(seed / 2 % analysis::kOomVerdicts);
  return CaseMaker(seed, script).Make(truth);
}

}  // namespace gmt::evaluate
