// tests/evaluate/evaluation.h
//
// Evaluation: what every program that measures how often an answer is right has in common: its seeds,
// its goals, its section of docs/accuracy.md, its exit code.
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
//   E1  Rules are made with even seeds (--tune: 2, 4, ..., 2N) and judged by odd ones (1, 3, ..., 2N-1).
//   E2  What is right comes from who made the recording, never from the code that is judged.
//   E3  The section is printed whole at the end, on stdout; what was missed as it comes, on stderr.
//
// Thread safety: one thread.

#ifndef GMT_TESTS_EVALUATE_EVALUATION_H_
#define GMT_TESTS_EVALUATE_EVALUATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gmt::evaluate {

// How many of how many.
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
  // 1 of nothing: a goal for what never came is met, and its count shows that it never came.
  double value() const {
    return all == 0 ? 1 : static_cast<double>(right) / static_cast<double>(all);
  }
  // "0.953 (382 of 401)".
  std::string text() const;
  // Where the true rate lies with 95 % confidence (Wilson's score interval): "0.928-0.970".
  std::string interval() const;
  double lower() const { return bounds().first; }
  double upper() const { return bounds().second; }

 private:
  std::pair<double, double> bounds() const;
};

struct Question {
  std::string name;          // of the program behind "evaluate_"
  std::string title;         // of the section
  uint64_t seeds = 100;      // of each parity, for docs/accuracy.md
  uint64_t quick_seeds = 4;  // for --quick and the tests of every day
};

class Evaluation {
 public:
  // Reads the command line: [--seeds N] [--seed N]... [--tune] [--quick]. Ends the program with 2 where
  // it is wrong, with 0 for --help.
  Evaluation(Question question, int argc, const char* const* argv);

  const std::vector<uint64_t>& seeds() const { return seeds_; }
  bool is_tuning() const { return tune_; }
  // --seed was given: somebody repeats one, and wants to see more of it.
  bool is_repeating() const { return repeat_; }

  // An answer that was not right: printed on stderr with the command that repeats it.
  void Missed(uint64_t seed, const std::string& what);

  // Parts of the section, in order.
  void Text(const std::string& paragraph);
  void Heading(const std::string& heading);
  void Table(const std::vector<std::string>& columns,
             const std::vector<std::vector<std::string>>& rows);

  // Goals: a table of them ends the section. Of the few seeds of --quick, a rate misses its goal where
  // its interval lies below: five answers do not tell 0.8 from 0.9.
  void AtLeast(const std::string& what, const Rate& measured, double goal);
  void AtLeast(const std::string& what, double measured, double goal);
  void AtMost(const std::string& what, double measured, double goal);
  void Holds(const std::string& what, bool holds);  // of what has no number: a sum that is exact
  // Measured and shown among them, without a goal.
  void Shown(const std::string& what, const std::string& measured);

  // Prints the section. 1 where a goal is missed, else 0. With --seed there are no goals: one seed is
  // no measurement.
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
