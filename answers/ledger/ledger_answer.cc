#include "answers/ledger/ledger_answer.h"

#include <utility>

namespace gmt::answers {

absl::StatusOr<LedgerAnswer> LedgerAnswer::Make(const Recording& recording,
                                                const analysis::LedgerOptions& options,
                                                bool is_live) {
  auto ledgers = analysis::MakeLedgers(recording.examination(), options);
  if (!ledgers.ok()) return recording.InFile(ledgers.status());
  LedgerSource source;
  source.file = recording.path();
  source.lacks = recording.lacks();
  source.is_imported = !recording.trace().imported_from.empty();
  source.is_live = is_live;
  if (is_live) {
    std::erase_if(source.lacks, [](const std::string& lack) {
      return lack.find("has no end") != std::string::npos;
    });
  }
  return LedgerAnswer(*std::move(ledgers), std::move(source));
}

LedgerAnswer::LedgerAnswer(std::vector<analysis::Ledger> ledgers, LedgerSource source)
    : ledgers_(std::move(ledgers)), source_(std::move(source)) {}

std::string LedgerAnswer::Text(const Terminal& terminal, size_t top) const {
  return LedgerText(ledgers_, source_, top, terminal);
}

std::string LedgerAnswer::Json() const { return LedgerJson(ledgers_, source_); }

}  // namespace gmt::answers
