// evaluate_leaks: measures how often `leaks` is right, on synthetic programs with known leaks.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_format.h"
#include "analysis/leaks/leak_watcher.h"
#include "analysis/leaks/leaks.h"
#include "tests/evaluate/evaluation.h"
#include "tests/evaluate/leaks/program.h"

namespace gmt::evaluate {
namespace {

using analysis::LeakReport;
using analysis::LeakSuspect;
using analysis::LeakTier;

constexpr uint32_t kWatched[] = {100, 200, 400, 800};
constexpr uint32_t kAttachAt[] = {0, 150};
constexpr uint32_t kTooFew = 60;
// A program that is attached to after 200 cycles and watched for different numbers of cycles.
constexpr uint32_t kRanBefore = 200;
constexpr uint32_t kWatchedAfterAttach[] = {25, 50, 100, 200, 400, 800};
constexpr uint32_t kInferred = 400;         // cycles of a program without marks
constexpr uint32_t kCyclesOfADay = 10'000;  // of 8.64 s

struct Scores {
  Rate found, right, first, bytes, reported_once;
  uint64_t apart = 0;
  std::vector<double> errors;  // of bytes per cycle
};

bool IsVerdict(const LeakSuspect& suspect) { return suspect.tier != LeakTier::kPossible; }

LeakReport Ask(const RecordedProgram& program, uint32_t cycles) {
  const auto& all = program.examination().cycles().cycles;
  analysis::LeakOptions options;
  options.window.to_ns = all[std::min<size_t>(cycles, all.size()) - 1].end_t_ns;
  return analysis::FindLeaks(program.examination(), options);
}

LeakReport WatchProgram(RecordedProgram& program) {
  const format::Definitions& definitions = program.script().definitions();
  analysis::LeakWatcher watcher(definitions, program.script().pid, /*attached=*/true);
  const format::EventBatch& batch = program.script().batch();
  for (const format::Event& event : batch.events) {
    event.kind == SAMPLE ? watcher.OnSample(event, batch.samples[event.detail])
                         : watcher.OnEvent(event);
  }
  analysis::StackTexts texts(definitions);
  return analysis::ConcludeLeaks(watcher.Evidence(), texts);
}

// Returns the habits that a suspect blames.
std::set<const Habit*> Accused(const RecordedProgram& program, const LeakSuspect& suspect) {
  std::set<const Habit*> habits;
  for (const analysis::LeakStack& stack : suspect.stacks)
    habits.insert(program.HabitOf(stack.stack));
  if (suspect.kind != analysis::LeakKind::kUntracked) return habits;
  for (const auto& habit : program.habits()) {
    if (habit->is_untracked) habits.insert(habit.get());
  }
  return habits;
}

class Judge {
 public:
  Judge(Evaluation& evaluation, uint64_t seed, const RecordedProgram& program, uint32_t watched,
        Scores& scores, std::map<std::string, Rate>& by_kind)
      : evaluation_(evaluation),
        seed_(seed),
        program_(program),
        watched_(watched),
        scores_(scores),
        by_kind_(by_kind) {}

  void JudgeReport(const LeakReport& report) {
    bool is_first = true;
    for (const LeakSuspect& suspect : report.suspects) {
      if (IsVerdict(suspect)) JudgeSuspect(suspect, is_first);
    }
    for (const Truth& truth : program_.TruthOf(watched_)) {
      if (!truth.counts) continue;
      const bool found = reports_.contains(truth.habit);
      scores_.found.Add(found);
      by_kind_[truth.habit->name].Add(found);
      if (!found) Miss("not found: " + truth.habit->name);
      if (found) scores_.reported_once.Add(reports_[truth.habit] == 1);
    }
  }

 private:
  void JudgeSuspect(const LeakSuspect& suspect, bool& is_first) {
    const std::set<const Habit*> accused = Accused(program_, suspect);
    const bool right =
        !accused.empty() && std::all_of(accused.begin(), accused.end(),
                                        [](const Habit* h) { return h != nullptr && h->is_leak; });
    const bool too_long = accused.size() == 1 && *accused.begin() != nullptr &&
                          (*accused.begin())->longest_life >= watched_;
    if (!right && too_long) {
      ++scores_.apart;
      return;
    }
    scores_.right.Add(right);
    if (is_first) scores_.first.Add(right);
    is_first = false;
    if (!right) {
      std::string names;
      for (const Habit* habit : accused) names += " " + (habit != nullptr ? habit->name : "?");
      return Miss("no leak:" + names + "; " + suspect.reason);
    }
    double truth = 0;
    for (const Truth& of : program_.TruthOf(watched_)) {
      if (accused.contains(of.habit)) truth += of.bytes_per_cycle;
    }
    for (const Habit* habit : accused) ++reports_[habit];
    // If a leak is reported in parts, only the first one, which is the largest, is compared.
    if (accused.size() == 1 && reports_[*accused.begin()] > 1) return;
    const double error = std::abs(suspect.bytes_per_cycle - truth) / truth;
    scores_.errors.push_back(error);
    scores_.bytes.Add(error <= 0.05);
    if (error > 0.05)
      Miss(absl::StrFormat("%s: %.0f bytes per cycle, truth %.0f", (*accused.begin())->name,
                           suspect.bytes_per_cycle, truth));
  }

  void Miss(const std::string& what) {
    evaluation_.Missed(seed_, absl::StrFormat("%d cycles: %s", watched_, what));
  }

  Evaluation& evaluation_;
  const uint64_t seed_;
  const RecordedProgram& program_;
  const uint32_t watched_;
  Scores& scores_;
  std::map<std::string, Rate>& by_kind_;
  std::map<const Habit*, int> reports_;  // suspects by habit
};

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Evaluator {
 public:
  explicit Evaluator(Evaluation& evaluation) : evaluation_(evaluation) {}

  int Run() {
    for (const uint64_t seed : evaluation_.seeds()) {
      for (const uint32_t attach_at : kAttachAt) JudgeProgram(seed, attach_at);
      JudgeAttach(seed);
      JudgeWithoutMarks(seed);
      if (seed % 16 < 2) JudgeCleanDay(seed);
    }
    Write();
    return evaluation_.Finish();
  }

 private:
  void JudgeProgram(uint64_t seed, uint32_t attach_at) {
    Plan plan;
    plan.seed = seed;
    plan.attach_at = attach_at;
    plan.long_queues = seed / 2 % 3 == 0;
    const RecordedProgram program(plan);
    for (const uint32_t watched : kWatched) {
      Judge(evaluation_, seed, program, watched, scores_[{attach_at, watched}], by_kind_[watched])
          .JudgeReport(Ask(program, watched));
    }
    const LeakReport early = Ask(program, kTooFew);
    too_early_.Add(!early.enough && early.suspects.empty());
  }

  // Judges the answers of `attach --watch`, which sees a running program event by event.
  void JudgeAttach(uint64_t seed) {
    for (const uint32_t watched : kWatchedAfterAttach) {
      Plan plan;
      plan.seed = seed;
      plan.attach_at = kRanBefore;
      plan.cycles = watched;
      plan.long_queues = seed / 2 % 3 == 0;
      RecordedProgram program(plan);
      const LeakReport report = WatchProgram(program);
      if (watched < analysis::kCyclesForLikely) {
        attached_too_early_.Add(!report.enough && report.suspects.empty());
      } else {
        Judge(evaluation_, seed, program, watched, attached_[watched], attached_by_kind_)
            .JudgeReport(report);
      }
    }
  }

  // Judges the same program without marks, so that its cycles must be inferred.
  void JudgeWithoutMarks(uint64_t seed) {
    Plan plan;
    plan.seed = seed;
    plan.cycles = kInferred;
    plan.marks = false;
    const RecordedProgram program(plan);
    const size_t found = program.examination().cycles().cycles.size();
    const bool right = found + kInferred / 50 >= kInferred && found <= kInferred;
    cycles_inferred_.Add(right);
    if (!right) {
      evaluation_.Missed(seed, absl::StrFormat("%d of %d cycles inferred", found, kInferred));
      return;
    }
    Judge(evaluation_, seed, program, kInferred, inferred_, inferred_by_kind_)
        .JudgeReport(analysis::FindLeaks(program.examination()));
  }

  void JudgeCleanDay(uint64_t seed) {
    Plan plan;
    plan.seed = seed + 1'000'000;
    plan.clean = true;
    plan.cycles = kCyclesOfADay;
    const RecordedProgram program(plan);
    ++days_;
    for (const LeakSuspect& suspect : Ask(program, kCyclesOfADay).suspects) {
      possible_in_days_ += IsVerdict(suspect) ? 0 : 1;
      if (!IsVerdict(suspect)) continue;
      ++false_in_days_;
      std::string name = "?";
      for (const Habit* habit : Accused(program, suspect)) name = habit->name;
      evaluation_.Missed(seed, "clean day: " + name + "; " + suspect.reason);
    }
  }

  void Write();

  Evaluation& evaluation_;
  std::map<std::pair<uint32_t, uint32_t>, Scores> scores_;
  std::map<uint32_t, std::map<std::string, Rate>> by_kind_;
  std::map<uint32_t, Scores> attached_;
  std::map<std::string, Rate> attached_by_kind_;
  Rate attached_too_early_;
  Rate too_early_, cycles_inferred_;
  Scores inferred_;
  std::map<std::string, Rate> inferred_by_kind_;
  uint64_t days_ = 0, false_in_days_ = 0, possible_in_days_ = 0;
};

void Evaluator::Write() {
  evaluation_.Text(
      "Programs with 26 benign habits and 0 to 3 of 16 kinds of leak, recorded from their first "
      "cycle or from cycle 150 on, each judged after 100, 200, 400 and 800 cycles. The score "
      "counts suspects of tier `leak` and `likely`, and leaks that left something in at least 5 "
      "cycles and began in the first three quarters of the watched time. Queues that are longer "
      "than the watched time cannot be distinguished from leaks; suspects that are such queues "
      "have a column of their own. A third of the programs has a queue of 150 to 1500 cycles.");
  std::vector<std::vector<std::string>> rows;
  std::map<uint32_t, Scores> by_watched;
  for (const auto& [key, scores] : scores_) {
    const auto& [attach_at, watched] = key;
    rows.push_back({absl::StrFormat("%d", attach_at), absl::StrFormat("%d", watched),
                    scores.right.text(), scores.found.text(), scores.first.text(),
                    scores.bytes.text(), absl::StrFormat("%.2f %%", 100 * MedianOf(scores.errors)),
                    scores.reported_once.text(), absl::StrFormat("%d", scores.apart)});
    Scores& sum = by_watched[watched];
    sum.right.Add(scores.right);
    sum.found.Add(scores.found);
    sum.first.Add(scores.first);
    sum.bytes.Add(scores.bytes);
    sum.errors.insert(sum.errors.end(), scores.errors.begin(), scores.errors.end());
  }
  evaluation_.Table(
      {"recorded from cycle", "watched", "precision", "recall", "first suspect right",
       "bytes/cycle within 5 %", "median error", "one suspect per leak", "queues too long"},
      rows);
  rows.clear();
  for (const auto& [name, rate] : by_kind_[400]) {
    rows.push_back({name, by_kind_[200][name].text(), rate.text(), by_kind_[800][name].text()});
  }
  evaluation_.Table({"leak", "found in 200 cycles", "in 400", "in 800"}, rows);
  rows.clear();
  for (const uint32_t watched : kWatchedAfterAttach) {
    if (watched < analysis::kCyclesForLikely) {
      rows.push_back({absl::StrFormat("%d", watched), "too early to tell", "", "", "", ""});
      continue;
    }
    const Scores& scores = attached_[watched];
    rows.push_back({absl::StrFormat("%d", watched), scores.right.text(), scores.found.text(),
                    scores.first.text(), scores.bytes.text(), absl::StrFormat("%d", scores.apart)});
  }
  evaluation_.Table({"attached at cycle 200, watched", "precision", "recall", "first suspect right",
                     "bytes/cycle within 5 %", "queues too long"},
                    rows);
  evaluation_.AtLeast("precision, attached, 400 cycles", attached_[400].right, 0.91);
  evaluation_.AtLeast("recall, attached, 400 cycles", attached_[400].found, 0.95);
  evaluation_.AtLeast("precision, attached, 200 cycles", attached_[200].right, 0.91);
  evaluation_.AtLeast("recall, attached, 200 cycles", attached_[200].found, 0.9);
  evaluation_.AtLeast("only \"too early\", attached, 25 and 50 cycles", attached_too_early_, 1);
  for (const uint32_t watched : {400u, 800u}) {
    const std::string of = absl::StrFormat(", %d cycles", watched);
    evaluation_.AtLeast("precision" + of, by_watched[watched].right, 0.95);
    evaluation_.AtLeast("recall" + of, by_watched[watched].found, 0.95);
    evaluation_.AtLeast("first suspect right" + of, by_watched[watched].first, 0.95);
    evaluation_.AtMost("median error of bytes per cycle" + of, MedianOf(by_watched[watched].errors),
                       0.05);
  }
  evaluation_.AtLeast("precision, 200 cycles", by_watched[200].right, 0.85);
  evaluation_.AtLeast("recall, 200 cycles", by_watched[200].found, 0.9);
  evaluation_.AtLeast("400 cycles inferred without marks", cycles_inferred_, 0.9);
  evaluation_.AtLeast("precision with inferred cycles", inferred_.right, 0.95);
  evaluation_.AtLeast("recall with inferred cycles", inferred_.found, 0.95);
  evaluation_.AtLeast("only \"too early\", 60 cycles", too_early_, 1);
  evaluation_.AtMost(
      absl::StrFormat("false suspects per clean day (%d days of 10,000 cycles of 8.64 s)", days_),
      days_ == 0 ? 0 : static_cast<double>(false_in_days_) / static_cast<double>(days_), 0.1);
  evaluation_.Shown("suspects of tier possible on all clean days",
                    absl::StrFormat("%d", possible_in_days_));
}

}  // namespace
}  // namespace gmt::evaluate

int main(int argc, char** argv) {
  gmt::evaluate::Evaluation evaluation(
      {.name = "leaks", .title = "Leaks", .seeds = 160, .quick_seeds = 2}, argc, argv);
  return gmt::evaluate::Evaluator(evaluation).Run();
}
