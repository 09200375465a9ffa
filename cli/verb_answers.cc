#include "cli/load_trace.h"
#include "cli/verb_answers.h"

#include "absl/strings/str_cat.h"
#include "analysis/diff/diff.h"
#include "analysis/fragmentation/fragmentation.h"
#include "analysis/leaks/leaks.h"
#include "analysis/ledger/ledger.h"
#include "analysis/report.h"
#include "cli/diff_text.h"
#include "cli/frag_text.h"
#include "cli/leaks_text.h"
#include "cli/ledger_text.h"
#include "cli/oom_answer.h"
#include "cli/oom_text.h"
#include "cli/report_text.h"
#include "cli/source_line.h"
#include "cli/terminal.h"

namespace gmt::cli {
namespace {

// The default values of the verbs' --top.
constexpr size_t kReportRows = 10, kSuspects = 3, kPins = 3;

const Terminal kPlain;

absl::Status InFile(const absl::Status& status, const AnsweredFile& file) {
  return absl::Status(status.code(), absl::StrCat(file.path, ": ", status.message()));
}

absl::StatusOr<VerbAnswerText> Report(const AnsweredFile& file) {
  const auto report = analysis::MakeReport(file.examination, file.categories, {});
  if (!report.ok()) return InFile(report.status(), file);
  std::vector<std::string> lacks = WithoutBeforeAttach(file.lacks);
  lacks.insert(lacks.end(), file.unnamed.begin(), file.unnamed.end());
  return VerbAnswerText{ReportText(*report, lacks, kReportRows, FramesShown::kFolded, kPlain),
                        ReportJson(*report, file.path, lacks, report->rows.size())};
}

absl::StatusOr<VerbAnswerText> Oom(const AnsweredFile& file) {
  const analysis::OomReport report = ExplainOomOf(file.examination, file.categories);
  SourceLines sources(file.examination.trace().start_unix_ns);
  return VerbAnswerText{OomText(report, file.examination, sources, file.path, kPlain),
                        OomJson(report, file.examination, file.path)};
}

absl::StatusOr<VerbAnswerText> Leaks(const AnsweredFile& file) {
  const analysis::LeakReport report = analysis::FindLeaks(file.examination);
  SourceLines sources(file.examination.trace().start_unix_ns);
  return VerbAnswerText{LeaksText(report, {file.path, kSuspects, file.lacks}, sources, kPlain),
                        LeaksJson(report, {file.path, report.suspects.size(), file.lacks},
                                  file.examination.stacks())};
}

absl::StatusOr<VerbAnswerText> Ledger(const AnsweredFile& file) {
  const auto ledgers = analysis::MakeLedgers(file.examination, {});
  if (!ledgers.ok()) return InFile(ledgers.status(), file);
  LedgerSource source;
  source.file = file.path;
  source.lacks = file.lacks;
  source.is_imported = !file.examination.trace().imported_from.empty();
  return VerbAnswerText{LedgerText(*ledgers, source, 0, kPlain), LedgerJson(*ledgers, source)};
}

absl::StatusOr<VerbAnswerText> Frag(const AnsweredFile& file) {
  const auto found = analysis::FindFragmentation(file.examination, {});
  if (!found.ok()) return InFile(found.status(), file);
  SourceLines sources(file.examination.trace().start_unix_ns);
  return VerbAnswerText{FragText(*found, file.examination, sources, file.path, kPins, kPlain),
                        FragJson(*found, file.examination, file.path, SIZE_MAX)};
}

}  // namespace

absl::StatusOr<VerbAnswerText> AnswerOfVerb(const std::string& verb, const AnsweredFile& file) {
  if (verb == "report") return Report(file);
  if (verb == "oom") return Oom(file);
  if (verb == "leaks") return Leaks(file);
  if (verb == "ledger") return Ledger(file);
  if (verb == "frag") return Frag(file);
  return absl::InvalidArgumentError(absl::StrCat("no verb has this name: ", verb));
}

absl::StatusOr<VerbAnswerText> AnswerOfDiff(const AnsweredFile& base, const AnsweredFile& changed) {
  const auto comparison = analysis::Compare(base.examination, base.categories, changed.examination,
                                            changed.categories, {});
  if (!comparison.ok()) return comparison.status();
  DiffSource source;
  source.base_file = base.path;
  source.new_file = changed.path;
  source.base_lacks = base.lacks;
  source.new_lacks = changed.lacks;
  source.new_start_unix_ns = changed.examination.trace().start_unix_ns;
  return VerbAnswerText{DiffText(*comparison, source, 0, kPlain), DiffJson(*comparison, source)};
}

}  // namespace gmt::cli
