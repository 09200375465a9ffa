// Checks the bytes of a ledger's rows on synthetic machines, which know the owner of each byte.

#include <algorithm>
#include <array>

#include "analysis/ledger/ledger.h"
#include "format/units.h"
#include "tests/evaluate/evaluation.h"
#include "tests/evaluate/ledger/machine.h"

namespace gmt::evaluate {
namespace {

using analysis::Ledger;
using analysis::LedgerGroup;
using analysis::LedgerRow;

constexpr int kMoments = 12;  // random moments of each machine, in addition to those of readings

// The scores for one source of readings.
struct Tally {
  Rate events, standing, others, unexplained, used;
};

uint64_t BytesOf(const Ledger& ledger, const std::string& name) {
  uint64_t bytes = 0;
  for (const LedgerRow& row : ledger.rows) {
    if (row.name == name) bytes += row.bytes;
  }
  return bytes;
}

// Returns whether the bytes are right within 5 % or 4 MiB, the uncertainty of a reading.
bool IsNear(uint64_t bytes, uint64_t truth) {
  const uint64_t difference = bytes > truth ? bytes - truth : truth - bytes;
  return difference <= std::max(truth / 20, 4 * kMiB);
}
bool IsNear(int64_t bytes, int64_t truth, uint64_t tolerance) {
  const int64_t difference = bytes > truth ? bytes - truth : truth - bytes;
  return static_cast<uint64_t>(difference) <= tolerance;
}

bool AddsUp(const Ledger& ledger) {
  uint64_t sum = static_cast<uint64_t>(ledger.unexplained_bytes);
  for (const LedgerRow& row : ledger.rows) sum += row.bytes;
  return sum == ledger.driver_used_bytes;
}

// Returns whether the rows of the process's own calls, which must always be exact, are right.
bool EventsAreRight(const Ledger& ledger, const Truth& truth) {
  bool right = BytesOf(ledger, "live blocks") == truth.live &&
               BytesOf(ledger, "cached") == truth.cached &&
               BytesOf(ledger, "holes") == truth.holes && BytesOf(ledger, "CUPTI") == truth.cupti;
  for (const auto& [name, bytes] : truth.libraries) right &= BytesOf(ledger, name) == bytes;
  return right;
}

uint64_t OthersOf(const Truth& truth) {
  uint64_t sum = 0;
  for (const auto& [pid, bytes] : truth.others) sum += bytes;
  return sum;
}

class Judge {
 public:
  Judge(Evaluation& evaluation, std::array<Tally, kKinds>& tallies)
      : evaluation_(evaluation), tallies_(tallies) {}

  void Run(uint64_t seed) {
    MachineRun run = RunMachine(seed);
    const analysis::Trace trace = run.script.Build();
    const analysis::Examination examination(trace, run.script.definitions());
    std::mt19937_64 random(seed);
    // During warm-up, code is loaded without an event. After it, a reading is right until the next.
    for (const uint32_t step : run.readings) {
      if (step > run.warm_since) Check(seed, run, examination, step, true);
    }
    for (int i = 0; i < kMoments; ++i) {
      Check(seed, run, examination, static_cast<uint32_t>(random() % run.truths.size()), false);
    }
  }

  bool adds_up() const { return adds_up_; }

 private:
  void Check(uint64_t seed, const MachineRun& run, const analysis::Examination& examination,
             uint32_t step, bool at_reading) {
    // The latest time before the next call.
    const analysis::Trace& trace = examination.trace();
    const int64_t t_ns = step < trace.last_step() ? trace.TimeOf(step + 1) - 1 : trace.end_t_ns;
    const Ledger ledger = analysis::LedgerAt(examination, 0, {step, t_ns, "event"});
    const Truth& truth = run.truths[step];
    Tally& tally = tallies_[static_cast<size_t>(run.source)];
    adds_up_ &= AddsUp(ledger);
    Note(seed, step, "events", EventsAreRight(ledger, truth), tally.events);
    if (!at_reading) return;
    Note(seed, step, "in use", IsNear(ledger.driver_used_bytes, truth.used()), tally.used);
    const bool is_separate =
        run.source == Source::kProcesses || run.source == Source::kProcessesNoCode;
    const uint64_t others = OthersOf(truth);
    if (is_separate) {
      Note(seed, step, "contexts and modules",
           IsNear(BytesOf(ledger, "contexts and modules"), truth.standing), tally.standing);
      Note(seed, step, "others", IsNear(ledger.bytes_of(LedgerGroup::kOtherProcess), others),
           tally.others);
      Note(seed, step, "unexplained",
           IsNear(ledger.unexplained_bytes, static_cast<int64_t>(truth.lost),
                  std::max(truth.lost / 20, 24 * kMiB)),
           tally.unexplained);
      return;
    }
    // Contexts, other processes and lost memory cannot be distinguished, so their sum is compared.
    const auto rest =
        static_cast<int64_t>(ledger.bytes_of(LedgerGroup::kNotApart)) + ledger.unexplained_bytes;
    Note(seed, step, "contexts, others and unexplained",
         IsNear(rest, static_cast<int64_t>(truth.standing + others + truth.lost), 24 * kMiB),
         tally.standing);
  }

  void Note(uint64_t seed, uint32_t step, const char* what, bool is_right, Rate& rate) {
    rate.Add(is_right);
    if (!is_right) {
      evaluation_.Missed(seed, std::string(what) + " after event " + std::to_string(step));
    }
  }

  Evaluation& evaluation_;
  std::array<Tally, kKinds>& tallies_;
  bool adds_up_ = true;
};

std::string Text(const Rate& rate) { return rate.all == 0 ? "-" : rate.text(); }

int Main(int argc, char** argv) {
  Evaluation evaluation({.name = "ledger", .title = "Ledger", .seeds = 200, .quick_seeds = 8}, argc,
                        argv);
  std::array<Tally, kKinds> tallies;
  Judge judge(evaluation, tallies);
  for (const uint64_t seed : evaluation.seeds()) judge.Run(seed);

  evaluation.Text(
      "Synthetic machines in which the owner of each byte is known: a process with a caching "
      "allocator, libraries, code that is loaded on demand, CUPTI, driver memory that no event "
      "reports (in one of three), and other processes that change. Readings occur every 25 calls "
      "and are written if they add information; one in eight is of the moment before its position "
      "among the events. Rows of the process's own calls are compared exactly, at any moment; "
      "those from readings within 5 % or 4 MiB (unexplained: 24 MiB, the size of one call), at the "
      "readings after warm-up.");
  std::vector<std::vector<std::string>> rows;
  Rate events, standing, others, unexplained, used, together;
  for (int kind = 0; kind < kKinds; ++kind) {
    const Tally& tally = tallies[static_cast<size_t>(kind)];
    rows.push_back({NameOf(static_cast<Source>(kind)), Text(tally.events), Text(tally.used),
                    Text(tally.standing), Text(tally.others), Text(tally.unexplained)});
    events.Add(tally.events);
    used.Add(tally.used);
    (tally.others.all > 0 ? standing : together).Add(tally.standing);
    others.Add(tally.others);
    unexplained.Add(tally.unexplained);
  }
  evaluation.Table({"source", "own calls", "in use", "contexts and code", "others", "unexplained"},
                   rows);
  evaluation.Holds("rows and unexplained add up to the driver's figure", judge.adds_up());
  evaluation.AtLeast("rows of the process's own calls, exactly", events, 1);
  evaluation.AtLeast("in use", used, 0.95);
  evaluation.AtLeast("contexts and modules, separately", standing, 0.95);
  evaluation.AtLeast("contexts, others and unexplained, together", together, 0.95);
  evaluation.AtLeast("other processes", others, 0.95);
  evaluation.AtLeast("unexplained", unexplained, 0.95);
  return evaluation.Finish();
}

}  // namespace
}  // namespace gmt::evaluate

int main(int argc, char** argv) { return gmt::evaluate::Main(argc, argv); }
