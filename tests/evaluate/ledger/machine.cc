#include "tests/evaluate/ledger/machine.h"

#include <algorithm>
#include <optional>
#include <set>

#include "format/units.h"

namespace gmt::evaluate {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kOurs = 4242;
constexpr uint64_t kTotal = uint64_t{80} << 30;
constexpr uint64_t kSegment = 20 * kMiB;
constexpr int kSlots = 10;                 // per segment, 2 MiB each
constexpr int kEventsPerReading = 25;      // stands for the collector's interval of one second
constexpr uint64_t kMinChange = 2 * kMiB;  // smaller changes are not written

struct Library {
  const char *name, *function, *module;
};
constexpr Library kLibraries[] = {{"NCCL", "ncclCommInitRank", "/opt/libnccl.so.2"},
                                  {"cuBLAS", "cublasCreate_v2", "/opt/libcublas.so.13"},
                                  {"cuDNN", "cudnnCreate", "/opt/libcudnn.so.9"},
                                  {"other allocations", "knn_build", "/home/me/knn.so"}};

class Machine {
 public:
  explicit Machine(uint64_t seed) : random_(seed) {
    run_.source = static_cast<Source>(seed / 2 % kKinds);
    run_.script.pid = kOurs;
    if (run_.source != Source::kListWithoutUs && run_.source != Source::kTogether) {
      if (Chance(2)) now_.system = Between(100, 700) * kMiB;
    }
    now_.standing = Between(200, 600) * kMiB;
    for (uint64_t i = Between(0, 3); i > 0; --i) now_.others[100 + i] = Between(1, 4000) * kMiB;
    loses_ = Chance(3);
  }

  MachineRun Run() && {
    Note();
    if (run_.source == Source::kProcesses && Chance(3)) TakeCupti();
    for (int step = 0; step < kSteps; ++step) {
      run_.script.Mark("step", static_cast<uint64_t>(step) + 1);
      if (step == 2) run_.warm_since = Steps();
      for (int i = 0; i < kCallsPerStep; ++i) {
        if (i % kEventsPerReading == 0) Read();
        Something(step);
      }
      if (loses_ && step == kSteps / 2) Lose();
    }
    Read();
    return std::move(run_);
  }

 private:
  static constexpr int kSteps = 8, kCallsPerStep = 75;

  struct Segment {
    uint64_t address = 0;
    std::set<int> used;
  };

  uint64_t Between(uint64_t low, uint64_t high) { return low + random_() % (high - low + 1); }
  bool Chance(uint64_t of) { return random_() % of == 0; }
  uint32_t Steps() const { return static_cast<uint32_t>(run_.truths.size()) - 1; }

  // Notes the state after the allocations and frees so far.
  void Note() {
    now_.live = now_.cached = now_.holes = 0;
    for (const Segment& segment : segments_) {
      const uint64_t used = segment.used.size() * (kSegment / kSlots);
      now_.live += used;
      (used == 0 ? now_.cached : now_.holes) += kSegment - used;
    }
    run_.truths.push_back(now_);
  }
  void Renote() {  // after a change that is not an allocation or free of this process
    run_.truths.back() = now_;
  }

  void Something(int step) {
    switch (random_() % 10) {
      case 0:
        return AddSegment();
      case 1:
        return DropSegment();
      case 2:
        return LibraryCall();
      case 3:
        return LoadCode(step);
      case 4:
        return OthersChange();
      default:
        return Chance(2) ? AddBlock() : DropBlock();
    }
  }

  void AddSegment() {
    segments_.push_back({next_, {}});
    run_.script.Alloc(next_, kSegment, {"segment"});
    next_ += 2 * kSegment;
    Note();
    // A segment without a block cannot be recognised as the framework's.
    Put(segments_.back(), 0);
  }
  void Put(Segment& segment, int slot) {
    segment.used.insert(slot);
    run_.script.Block(Place(segment, slot), kSegment / kSlots, {"forward"});
    Note();
  }
  static uint64_t Place(const Segment& segment, int slot) {
    return segment.address + static_cast<uint64_t>(slot) * (kSegment / kSlots);
  }
  void AddBlock() {
    if (segments_.empty()) return AddSegment();
    Segment& segment = segments_[random_() % segments_.size()];
    const int slot = static_cast<int>(random_() % kSlots);
    if (!segment.used.contains(slot)) Put(segment, slot);
  }
  void DropBlock() {
    if (segments_.empty()) return;
    Segment& segment = segments_[random_() % segments_.size()];
    if (segment.used.empty()) return;
    const int slot = *segment.used.begin();
    segment.used.erase(slot);
    run_.script.FreeBlock(Place(segment, slot));
    Note();
  }
  void DropSegment() {
    for (size_t i = 0; i < segments_.size(); ++i) {
      if (!segments_[i].used.empty()) continue;
      run_.script.Free(segments_[i].address);
      segments_.erase(segments_.begin() + static_cast<ptrdiff_t>(i));
      return Note();
    }
  }

  void LibraryCall() {
    if (!taken_.empty() && Chance(3)) {
      const auto [address, name, bytes] = taken_.back();
      taken_.pop_back();
      run_.script.Free(address);
      now_.libraries[name] -= bytes;
      return Note();
    }
    const Library& library = kLibraries[random_() % std::size(kLibraries)];
    const uint64_t bytes = Between(1, 64) * kMiB;
    format::DefinitionsBuilder& builder = run_.script.builder();
    format::FrameInfo frame;
    frame.function = builder.InternString(library.function);
    frame.module_name = builder.InternString(library.module);
    frame.language = format::Language::kCxx;
    run_.script.Alloc(next_, bytes).stack = builder.InternStack({builder.InternFrame(frame)}, 0);
    taken_.push_back({next_, library.name, bytes});
    next_ += 2 * bytes;
    now_.libraries[library.name] += bytes;
    Note();
  }

  // With events for loaded code, loads some at any time; without them, only during warm-up, like
  // libraries at their first use.
  void LoadCode(int step) {
    const bool seen = run_.source == Source::kProcesses;
    if (!seen && step >= 2) return;
    const uint64_t bytes = Between(1, 40) * kMiB;
    now_.standing += bytes;
    if (seen) run_.script.Module("load", bytes);
    Renote();
  }
  void OthersChange() {
    if (now_.others.empty() || !Chance(6)) return;
    now_.others.begin()->second = Between(1, 4000) * kMiB;
    Renote();
  }
  void TakeCupti() {
    now_.cupti = 3 * Between(1, 4) * kMiB;
    run_.script.Source("cupti device memory",
                       std::to_string(now_.cupti) + " bytes in each context");
    Renote();
  }
  void Lose() {
    now_.lost = Between(50, 500) * kMiB;
    run_.lost_since = Steps();
    Renote();
  }

  // Adds a reading of the driver. One in eight has the state before the last call, because a real
  // reading can race with a call.
  void Read() {
    const bool is_late = run_.truths.size() > 1 && Chance(8) && run_.source != Source::kTogether;
    const Truth& seen = is_late ? run_.truths[run_.truths.size() - 2] : run_.truths.back();
    if (last_ && last_->others == seen.others &&
        Distance(last_->used(), seen.used()) <= kMinChange) {
      return;
    }
    last_ = seen;
    run_.readings.push_back(Steps());
    gmt::Sample& sample = run_.script.Sample(seen.used(), kTotal);
    sample.set_source(run_.source == Source::kTogether ? "cudaMemGetInfo" : "nvml");
    if (run_.source == Source::kTogether) return;
    if (seen.system > 0) sample.set_reserved_bytes(seen.system);
    Add(sample, run_.source == Source::kListWithoutUs ? 1 : kOurs, seen.ours());
    for (const auto& [pid, bytes] : seen.others) Add(sample, pid, bytes);
  }
  static uint64_t Distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }
  static void Add(gmt::Sample& sample, uint64_t pid, uint64_t bytes) {
    auto* process = sample.add_processes();
    process->set_pid(pid);
    process->set_bytes(bytes);
  }

  struct Taken {
    uint64_t address;
    std::string name;
    uint64_t bytes;
  };
  std::mt19937_64 random_;
  MachineRun run_;
  Truth now_;
  bool loses_ = false;
  std::vector<Segment> segments_;
  std::vector<Taken> taken_;
  std::optional<Truth> last_;
  uint64_t next_ = uint64_t{1} << 32;
};

}  // namespace

const char* NameOf(Source source) {
  switch (source) {
    case Source::kProcesses:
      return "NVML, code by CUPTI";
    case Source::kProcessesNoCode:
      return "NVML";
    case Source::kListWithoutUs:
      return "NVML without our process";
    case Source::kTogether:
      return "cudaMemGetInfo";
  }
  return "";
}

uint64_t Truth::ours() const {
  uint64_t sum = live + cached + holes + cupti + standing + lost;
  for (const auto& [name, bytes] : libraries) sum += bytes;
  return sum;
}

uint64_t Truth::used() const {
  uint64_t sum = ours() + system;
  for (const auto& [pid, bytes] : others) sum += bytes;
  return sum;
}

MachineRun RunMachine(uint64_t seed) { return Machine(seed).Run(); }

}  // namespace gmt::evaluate
