// tests/evaluate/evaluation.h
//
// Evaluation: the common part of the programs that measure how often an answer is right: seeds,
// goals, the section of docs/accuracy.md, and the exit code.
//
//   int main(int argc, char** argv) {
//     gmt::evaluate::Evaluation evaluation(
//         {.name = "leaks", .title = "Leaks", .seeds = 200, .quick_seeds = 8}, argc, argv);
//     Rate found;
//     for (const uint64_t seed : evaluation.seeds()) {
//       const bool right = ...;
//       found.Add(right);
//       if (!right) evaluation.Missed(seed, "leak/1 is a FIFO");
//     }
//     evaluation.Text("Generated recordings of ...");
//     evaluation.AtLeast("recall, 400 cycles", found, 0.95);
//     return evaluation.Finish();
//   }
//
//   E1  Rules are developed with even seeds (--tune: 2, 4, ..., 2N) and judged with odd ones
//       (1, 3, ..., 2N-1).
//   E2  The truth comes from the generator of the recording, never from the code that is judged.
//   E3  The section is printed at the end, on stdout; misses are printed as they occur, on stderr.
//
// Not thread-safe.

#ifndef GMT_TESTS_EVALUATE_EVALUATION_H_
#define GMT_TESTS_EVALUATE_EVALUATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gmt::evaluate {

// A count of right answers among all answers.
struct Rate {
  uint64_t right = 0, all = 0;

  void Add(bool is_right) {
    right += is_right ? 1 : 0;
    ++all;
  }
  void Add(const Rate& other) {
    right += other.right;
    all += other.all;
  }
  // Returns 1 if nothing was counted: a goal without cases is met, and its count shows that there
  // were none.
  double value() const {
    return all == 0 ? 1 : static_cast<double>(right) / static_cast<double>(all);
  }
  // "0.953 (382 of 401)".
  std::string text() const;
  // The 95 % confidence interval of the rate (Wilson's score interval): "0.928-0.970".
  std::string interval() const;
  double lower() const { return bounds().first; }
  double upper() const { return bounds().second; }

 private:
  std::pair<double, double> bounds() const;
};

struct Question {
  std::string name;          // the program's name after "evaluate_"
  std::string title;         // the section's title
  uint64_t seeds = 100;      // number of seeds of each parity, for docs/accuracy.md
  uint64_t quick_seeds = 4;  // number of seeds for --quick and the regular tests
};

class Evaluation {
 public:
  // Parses the command line: [--seeds N] [--seed N]... [--tune] [--quick]. Exits with 2 if it is
  // invalid, and with 0 for --help.
  Evaluation(Question question, int argc, const char* const* argv);

  const std::vector<uint64_t>& seeds() const { return seeds_; }
  bool is_tuning() const { return tune_; }
  // Whether --seed was given: a seed is repeated to see more details.
  bool is_repeating() const { return repeat_; }

  // Reports a wrong answer on stderr, with the command that repeats it.
  void Missed(uint64_t seed, const std::string& what);

  // Append parts to the section.
  void Text(const std::string& paragraph);
  void Heading(const std::string& heading);
  void Table(const std::vector<std::string>& columns,
             const std::vector<std::vector<std::string>>& rows);

  // Add goals. The section ends with a table of them. With --quick, a rate misses its goal only if
  // its confidence interval is below the goal, because few answers cannot distinguish 0.8 from 0.9.
  void AtLeast(const std::string& what, const Rate& measured, double goal);
  void AtLeast(const std::string& what, double measured, double goal);
  void AtMost(const std::string& what, double measured, double goal);
  void Holds(const std::string& what, bool holds);  // for conditions, such as an exact sum
  // Adds a measured value without a goal to the table.
  void Shown(const std::string& what, const std::string& measured);

  // Prints the section. Returns 1 if a goal is missed, otherwise 0. With --seed, goals are not
  // judged, because a single seed is not a measurement.
  int Finish();

 private:
  struct Goal {
    std::string what, measured, goal;
    std::optional<bool> met;
  };
  void Parse(int argc, const char* const* argv);
  void MakeSeeds();

  const Question question_;
  std::vector<uint64_t> seeds_;
  std::optional<uint64_t> count_;
  bool tune_ = false, repeat_ = false, quick_ = false;
  uint64_t missed_ = 0;
  std::string section_;
  std::vector<Goal> goals_;
};

}  // namespace gmt::evaluate

#endif  // GMT_TESTS_EVALUATE_EVALUATION_H_
