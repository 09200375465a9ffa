// gpumemtrace query: answers SQL about recordings.

#include "answers/sql/query.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "answers/sql/schema.h"
#include "cli/command.h"
#include "cli/frame_options.h"
#include "cli/open_recording.h"
#include "cli/query/query_prompt.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

using answers::sql::Form;

constexpr int64_t kRowsShown = 1000;  // by default, of a table for people
constexpr int64_t kDefaultRows = INT64_MIN;

struct QueryArguments {
  std::vector<std::string> words;  // FILE... SQL
  int64_t max_rows = kDefaultRows, timeout = 60;
  bool csv = false, json = false, box = false, schema = false;
  FrameOptions frames;
};

bool IsFile(const std::string& word) {
  std::error_code none;
  return std::filesystem::exists(word, none);
}

// Takes the statement from the end of `words`, or from stdin if they are all files. Null if the
// user can type it. A word without a blank is the name of a file.
absl::StatusOr<std::optional<std::string>> TakeStatement(std::vector<std::string>& words) {
  if (words.empty()) return UsageError("FILE: expected a recording; --schema lists the tables");
  const std::string& last = words.back();
  if (!IsFile(last) && last.find_first_of(" \t\n") != std::string::npos) {
    std::string sql = std::move(words.back());
    words.pop_back();
    if (words.empty()) return UsageError("FILE: expected a recording before the statement");
    return sql;
  }
  if (isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0) return std::nullopt;
  if (isatty(STDIN_FILENO) != 0) {
    return UsageError(
        "SQL: expected a statement after the recordings, or on standard input; --schema lists the "
        "tables");
  }
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

absl::Status CheckOptions(const QueryArguments& arguments) {
  if (arguments.csv + arguments.json + arguments.box > 1)
    return UsageError("--csv, --json and --box exclude each other");
  if (arguments.timeout < 0) return UsageError("--timeout: expected seconds, 0 for no limit");
  if (arguments.max_rows < 0 && arguments.max_rows != kDefaultRows)
    return UsageError("--max-rows: expected a number of rows, 0 for all");
  return absl::OkStatus();
}

Form FormOf(const QueryArguments& arguments) {
  return arguments.csv    ? Form::kCsv
         : arguments.json ? Form::kJson
         : arguments.box  ? Form::kBox
                          : Form::kTable;
}

answers::sql::Options OptionsFor(Form form, const QueryArguments& arguments) {
  const int64_t shown = form == Form::kCsv || form == Form::kJson ? 0 : kRowsShown;
  const int64_t rows = arguments.max_rows == kDefaultRows ? shown : arguments.max_rows;
  return {.form = form, .max_rows = static_cast<uint64_t>(rows), .seconds = arguments.timeout};
}

absl::StatusOr<int> RunOnce(answers::sql::Query& query, const std::string& sql,
                            const answers::sql::Options& options) {
  const auto more = query.Run(sql, options, [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
  });
  if (!more.ok()) return more.status();
  if (*more) {
    PrintNote(fmt::format(
        "only the first {} shown; --max-rows 0 shows all",
        options.max_rows == 1 ? "row is" : fmt::format("{} rows are", options.max_rows)));
  }
  return kDone;
}

absl::StatusOr<int> Run(QueryArguments& arguments) {
  if (arguments.schema) {
    fmt::print("{}", answers::sql::Schema());
    return kDone;
  }
  if (absl::Status status = CheckOptions(arguments); !status.ok()) return status;
  const auto sql = TakeStatement(arguments.words);
  if (!sql.ok()) return sql.status();
  auto rules = arguments.frames.Rules();
  if (!rules.ok()) return rules.status();
  const auto query = answers::sql::Query::Make();
  if (!query.ok()) return query.status();
  // Before the recordings are loaded, which may take a while.
  if (*sql) {
    if (absl::Status status = (*query)->CheckStatement(**sql); !status.ok()) return status;
  }
  // What is typed at a terminal is answered there, whatever the form.
  const bool as_recorded = *sql && arguments.json;
  std::vector<std::unique_ptr<answers::Recording>> opened;
  std::set<std::string> names;
  for (const std::string& file : arguments.words) {
    if (!names.insert(file).second) return UsageError(absl::StrCat(file, " is given twice"));
    auto recording = OpenRecording(file, {.frames = *rules, .text = FormFor(as_recorded)});
    if (!recording.ok()) return recording.status();
    opened.push_back(*std::move(recording));
    (*query)->Add(*opened.back(), file);
  }
  const Form form = FormOf(arguments);
  const auto print_lacks = [&opened] {
    for (const auto& recording : opened) {
      for (const std::string& lack : recording->lacks()) PrintNote(lack);
    }
  };
  if (!*sql) {
    print_lacks();
    return RunQueryPrompt(**query, form,
                          [&](Form chosen) { return OptionsFor(chosen, arguments); });
  }
  auto code = RunOnce(**query, **sql, OptionsFor(form, arguments));
  if (code.ok()) print_lacks();
  return code;
}

}  // namespace

void AddQuery(Program& program) {
  auto arguments = std::make_shared<QueryArguments>();
  Command command = program.AddVerb("query", "Answer SQL about one or several recordings",
                                    [arguments](const Terminal&) { return Run(*arguments); });
  command.OptionalArguments("FILE... SQL", &arguments->words,
                            "recordings, and one SELECT; without one, it is read from stdin, or a "
                            "prompt opens at a terminal");
  command.Flag("--schema", &arguments->schema, "list the tables and their columns");
  command.Flag("--csv", &arguments->csv, "print CSV");
  command.Flag("--box", &arguments->box, "draw lines around the columns");
  command.Option("--max-rows", &arguments->max_rows, "N",
                 "number of rows printed; 0: all (default 1000; all with --csv and --json)");
  command.Option("--timeout", &arguments->timeout, "SECONDS", "time limit; 0: none");
  arguments->frames.AddTo(command);
  command.Flag("--json", &arguments->json, "print JSON");
}

}  // namespace gmt::cli
