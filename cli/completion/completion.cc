// gpumemtrace completion: prints the script that makes a shell complete gpumemtrace.

#include <fmt/format.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/command.h"
#include "cli/completion/complete.h"
#include "cli/completion/scripts.h"
#include "cli/verbs.h"
#include "collector/sessions/session_search.h"
#include "format/printable.h"

namespace gmt::cli {
namespace {

using Kind = Completion::Kind;

struct CompletionArguments {
  std::string shell;
  bool is_for_words = false;
  std::vector<std::string> words;
};

void AddSessions(Completion* completion, const std::string& begun) {
  for (const collector::SessionSummary& session : collector::FindSessions()) {
    const std::string pid = std::to_string(session.pid);
    if (session.pid == 0 || pid.rfind(begun, 0) != 0) continue;
    completion->candidates.push_back({pid, format::Printable(absl::StrJoin(session.argv, " "))});
  }
  completion->kind = Kind::kWords;
}

std::string FirstLineFor(const Completion& completion) {
  switch (completion.kind) {
    case Kind::kFiles:
      return "files";
    case Kind::kFolders:
      return "folders";
    case Kind::kRecordings:
      return "recordings";
    case Kind::kCommand:
      return absl::StrCat("command ", completion.command);
    case Kind::kWords:
    case Kind::kSessions:
      break;
  }
  return "words";
}

// Answers a script: one line that says what may follow, then one candidate per line, with its help
// behind a tab.
void PrintCandidates(const ProgramDescription& program, std::vector<std::string> words) {
  Completion completion = Complete(program, words);
  if (completion.kind == Kind::kSessions) AddSessions(&completion, words.back());
  fmt::print("{}\n", FirstLineFor(completion));
  for (const Candidate& candidate : completion.candidates)
    fmt::print("{}\t{}\n", candidate.word, candidate.help);
}

absl::StatusOr<int> PrintCompletion(const CompletionArguments& arguments, const Program& program) {
  if (arguments.is_for_words) {
    PrintCandidates(program.Describe(), arguments.words);
  } else if (arguments.shell == "bash") {
    fmt::print("{}", BashCompletion());
  } else if (arguments.shell == "zsh") {
    fmt::print("{}", ZshCompletion());
  } else if (arguments.shell == "fish") {
    fmt::print("{}", FishCompletion());
  } else if (arguments.shell.empty()) {
    return UsageError("a shell is missing: bash, zsh or fish");
  } else {
    return UsageError(absl::StrCat("there is no completion for '", arguments.shell,
                                   "', only for bash, zsh and fish"));
  }
  return kDone;
}

}  // namespace

void AddCompletion(Program& program) {
  auto arguments = std::make_shared<CompletionArguments>();
  Command command = program.AddVerb(
      "completion", "Print the script for completion in a shell",
      [arguments, &program](const Terminal&) { return PrintCompletion(*arguments, program); });
  command.Alias("completions");
  command.OptionalArgument("SHELL", &arguments->shell, "bash, zsh or fish");
  command.Suggest("SHELL", {"bash", "zsh", "fish"});
  command.Flag("--words", &arguments->is_for_words,
               "used by the scripts: print what may follow the words after --");
  command.AfterDashes(&arguments->words);
  command.Footer(
      "To have it in every new shell, add a line:\n"
      "  bash  ~/.bashrc                   source <(gpumemtrace completion bash)\n"
      "  zsh   ~/.zshrc, after compinit    source <(gpumemtrace completion zsh)\n"
      "  fish  ~/.config/fish/config.fish  gpumemtrace completion fish | source");
}

}  // namespace gmt::cli
