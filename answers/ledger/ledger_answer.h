// answers/ledger/ledger_answer.h
//
// LedgerAnswer: what the driver reports as in use, and by what (analysis/ledger/ledger.h).
//
// Ownership: the recording must outlive it. Thread safety: one thread at a time.

#ifndef GMT_ANSWERS_LEDGER_LEDGER_ANSWER_H_
#define GMT_ANSWERS_LEDGER_LEDGER_ANSWER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/ledger/ledger.h"
#include "answers/ledger/ledger_text.h"
#include "answers/recording.h"
#include "answers/terminal.h"

namespace gmt::answers {

class LedgerAnswer {
 public:
  // `is_live`: the recording's process is still running, so that a missing end is no defect.
  static absl::StatusOr<LedgerAnswer> Make(const Recording& recording,
                                           const analysis::LedgerOptions& options = {},
                                           bool is_live = false);

  // `top`: rows of the table outside of the framework's; 0: as many as fit a screen.
  std::string Text(const Terminal& terminal, size_t top = 0) const;
  std::string Json() const;

 private:
  LedgerAnswer(std::vector<analysis::Ledger> ledgers, LedgerSource source);

  std::vector<analysis::Ledger> ledgers_;
  LedgerSource source_;
};

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_LEDGER_LEDGER_ANSWER_H_
