#include "cli/query/query_prompt.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "answers/sql/schema.h"
#include "cli/command.h"
#include "cli/query/line_editor.h"
#include "cli/query/sql_completion.h"
#include "format/printable.h"

namespace gmt::cli {
namespace {

using answers::sql::Form;

constexpr char kPromptHelp[] =
    "A statement ends with a semicolon and may have several lines. Ctrl-C ends a running "
    "statement\n"
    "or discards what is typed. Tab completes a word, the up arrow and Ctrl-R find earlier "
    "statements.\n\n"
    ".tables                     the tables\n"
    ".schema [TABLE]             the columns of a table, or of all\n"
    ".mode table|box|csv|json    how results are printed\n"
    ".help                       this list\n"
    ".quit                       end; so does Ctrl-D\n";

// Ctrl-C sets it while a statement runs.
volatile std::sig_atomic_t interrupted = 0;

class InterruptHandler {
 public:
  InterruptHandler() {
    struct sigaction action = {};
    action.sa_handler = [](int) { interrupted = 1; };
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, &before_);
  }
  ~InterruptHandler() { sigaction(SIGINT, &before_, nullptr); }
  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;

 private:
  struct sigaction before_ = {};
};

// Empty if there is no home.
std::string HistoryFile() {
  constexpr char kName[] = "/gpumemtrace/query_history";
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && state[0] == '/') return absl::StrCat(state, kName);
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : absl::StrCat(home, "/.local/state", kName);
}

// Results may contain control characters that the statement itself has made, char(27). Line breaks
// are those of the form.
void PrintResult(std::string_view text) {
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    std::fputs(absl::StrCat(format::Printable(text.substr(0, end)), "\n").c_str(), stdout);
    text.remove_prefix(end + 1);
  }
  std::fputs(format::Printable(text).c_str(), stdout);
}

class QueryPrompt {
 public:
  QueryPrompt(answers::sql::Query& query, Form form,
              const std::function<answers::sql::Options(Form)>& options_for)
      : query_(query), form_(form), options_for_(options_for), functions_(query.Functions()) {}

  absl::Status Run() {
    auto editor = LineEditor::Open(HistoryFile(), [this](std::string_view line) {
      const SqlCompletion completion =
          CompleteSql(absl::StrCat(typed_, std::string(line)), functions_);
      return LineEditor::Completion{completion.typed, completion.words};
    });
    if (!editor.ok()) return editor.status();
    const InterruptHandler handler;
    fmt::print("A statement ends with a semicolon; .help lists commands.\n");
    while (!is_over_) {
      std::fflush(stdout);
      interrupted = 0;
      const LineEditor::Line line = (*editor)->Read(typed_.empty() ? "sql> " : "...> ");
      if (line.end == LineEditor::Line::kEndOfInput) break;
      if (line.end == LineEditor::Line::kCancelled) typed_.clear();
      if (line.end == LineEditor::Line::kEntered) Take(line.text, **editor);
    }
    if (!is_over_) fmt::print("\n");  // after Ctrl-D
    return absl::OkStatus();
  }

 private:
  void Take(const std::string& line, LineEditor& editor) {
    if (typed_.empty() && absl::StripAsciiWhitespace(line).empty()) return;
    if (typed_.empty() && line.starts_with('.')) {
      Remember(line, editor);
      return Obey(absl::StrSplit(line, ' ', absl::SkipEmpty()));
    }
    absl::StrAppend(&typed_, line, "\n");
    const auto statements = answers::sql::CompleteStatements(typed_);
    if (!statements) return;
    Remember(std::string(absl::StripAsciiWhitespace(typed_)), editor);
    typed_.clear();
    for (const std::string& statement : *statements) {
      if (!Answer(statement)) break;
    }
  }

  bool Answer(const std::string& statement) {
    answers::sql::Options options = options_for_(form_);
    options.interrupted = &interrupted;
    const auto more = query_.Run(statement, options, PrintResult);
    std::fflush(stdout);
    if (!more.ok()) {
      PrintNote(std::string(more.status().message()));
    } else if (*more) {
      PrintNote(absl::StrCat("more rows than ", options.max_rows,
                             " are not shown; .mode csv and .mode json show all"));
    }
    return more.ok();
  }

  void Obey(const std::vector<std::string>& words) {
    const std::string& command = words.front();
    const std::string argument = words.size() > 1 ? words[1] : "";
    const bool takes_argument = command == ".mode" || command == ".schema";
    if (words.size() > (takes_argument ? 2 : 1)) {
      PrintNote(absl::StrCat(command, takes_argument ? " takes one word" : " takes nothing",
                             "; see .help"));
    } else if (command == ".quit") {
      is_over_ = true;
    } else if (command == ".help") {
      fmt::print("{}", kPromptHelp);
    } else if (command == ".tables") {
      fmt::print("{}", answers::sql::TableList());
    } else if (command == ".schema") {
      const std::string schema =
          argument.empty() ? answers::sql::Schema() : answers::sql::SchemaOf(argument);
      if (schema.empty())
        return PrintNote(absl::StrCat("there is no table ", argument, "; .tables lists them"));
      fmt::print("{}", schema);
    } else if (command == ".mode") {
      SetMode(argument);
    } else {
      PrintNote(absl::StrCat(command, " is not a command; .help lists them"));
    }
  }

  void SetMode(const std::string& name) {
    constexpr Form kForms[] = {Form::kTable, Form::kBox, Form::kCsv, Form::kJson};
    const auto* mode = std::find(std::begin(kPromptModes), std::end(kPromptModes), name);
    if (mode == std::end(kPromptModes)) return PrintNote(".mode: expected table, box, csv or json");
    form_ = kForms[mode - std::begin(kPromptModes)];
  }

  // Reports once if the history cannot be written.
  void Remember(const std::string& entry, LineEditor& editor) {
    const absl::Status status = editor.Remember(entry);
    if (!status.ok() && !has_reported_history_) PrintNote(std::string(status.message()));
    has_reported_history_ |= !status.ok();
  }

  answers::sql::Query& query_;
  Form form_;
  const std::function<answers::sql::Options(Form)>& options_for_;
  const std::vector<std::string> functions_;
  std::string typed_;  // the lines of a statement that has not ended
  bool is_over_ = false, has_reported_history_ = false;
};

}  // namespace

absl::StatusOr<int> RunQueryPrompt(answers::sql::Query& query, Form form,
                                   const std::function<answers::sql::Options(Form)>& options_for) {
  if (absl::Status status = QueryPrompt(query, form, options_for).Run(); !status.ok())
    return status;
  return kDone;
}

}  // namespace gmt::cli
