#include "cli/completion/complete.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace gmt::cli {
namespace {

using Kind = Completion::Kind;

bool LooksLikeOption(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

bool HasName(const OptionDescription& option, const std::string& name) {
  return std::find(option.names.begin(), option.names.end(), name) != option.names.end();
}

const OptionDescription* FindOption(const VerbDescription& verb, const std::string& name) {
  for (const OptionDescription& option : verb.options) {
    if (HasName(option, name)) return &option;
  }
  return nullptr;
}

// What the words before the cursor say about the one at the cursor.
struct Context {
  const OptionDescription* option = nullptr;  // whose value is expected
  size_t arguments = 0;                       // that have been given
  bool options_ended = false;                 // by "--"
  std::optional<size_t> command;              // the number of its first word
};

Context ReadWords(const VerbDescription& verb, const std::vector<std::string>& words) {
  Context context;
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (context.option != nullptr) {
      if (word != "=") context.option = nullptr;
    } else if (word == "--" && verb.takes_command) {
      context.command = i + 1;
      return context;
    } else if (word == "--") {
      context.options_ended = true;
    } else if (LooksLikeOption(word) && !context.options_ended) {
      const OptionDescription* option = FindOption(verb, word);
      if (option != nullptr && option->takes_value()) context.option = option;
    } else if (verb.takes_command) {
      context.command = i;
      return context;
    } else {
      ++context.arguments;
    }
  }
  return context;
}

Completion Words(const std::vector<Candidate>& all, const std::string& begun) {
  Completion completion;
  for (const Candidate& candidate : all) {
    if (absl::StartsWith(candidate.word, begun)) completion.candidates.push_back(candidate);
  }
  return completion;
}

Completion Verbs(const ProgramDescription& program, const std::string& begun) {
  std::vector<Candidate> verbs;
  for (const VerbDescription& verb : program.verbs) verbs.push_back({verb.name, verb.summary});
  return Words(verbs, begun);
}

// The options that may still be given: the long name of each, and the short one if it is asked for.
Completion Options(const std::vector<OptionDescription>& options,
                   const std::vector<std::string>& words) {
  std::vector<Candidate> names;
  for (const OptionDescription& option : options) {
    const bool is_given = std::any_of(words.begin(), words.end() - 1, [&](const auto& word) {
      return HasName(option, word.substr(0, word.find('=')));
    });
    if (is_given && !option.repeats) continue;
    for (const std::string& name : option.names) {
      if (name == option.names.back() || name == words.back()) names.push_back({name, option.help});
    }
  }
  return Words(names, words.back());
}

// `prefix` comes before the value in the same word: "--by=".
Completion Value(const ProgramDescription& program, const OptionDescription& option,
                 const std::string& prefix, const std::string& begun) {
  const std::string& value = option.value;
  std::vector<Candidate> choices;
  for (const std::string& choice : option.choices)
    choices.push_back({absl::StrCat(prefix, choice), ""});
  if (!choices.empty()) return Words(choices, absl::StrCat(prefix, begun));
  const bool is_argument = option.names.empty();
  if (value == "VERB") return Verbs(program, begun);
  if (value == "DIR") return {Kind::kFolders, {}, 0};
  if (value == "PID" || value == "SESSION") return {Kind::kSessions, {}, 0};
  if (is_argument && (absl::StartsWith(value, "FILE") || value == "BASE" || value == "NEW"))
    return {Kind::kRecordings, {}, 0};
  if (value == "FILE" || value == "OUT" || value == "PATTERN" || value == "X")
    return {Kind::kFiles, {}, 0};
  return {};
}

}  // namespace

Completion Complete(const ProgramDescription& program, const std::vector<std::string>& words) {
  if (words.empty()) return Verbs(program, "");
  const std::string& last = words.back();
  if (words.size() == 1) {
    return LooksLikeOption(last) || last == "-" ? Options(program.options, words)
                                                : Verbs(program, last);
  }
  const auto verb =
      std::find_if(program.verbs.begin(), program.verbs.end(),
                   [&](const VerbDescription& known) { return known.name == words.front(); });
  if (verb == program.verbs.end()) return {};

  const Context context = ReadWords(*verb, words);
  if (context.command.has_value()) return {Kind::kCommand, {}, *context.command};
  if (context.option != nullptr)
    return Value(program, *context.option, "", last == "=" ? "" : last);
  if (absl::StartsWith(last, "-") && !context.options_ended) {
    const size_t equals = last.find('=');
    if (equals == std::string::npos) return Options(verb->options, words);
    const OptionDescription* option = FindOption(*verb, last.substr(0, equals));
    if (option == nullptr || !option->takes_value()) return {};
    return Value(program, *option, last.substr(0, equals + 1), last.substr(equals + 1));
  }
  if (verb->takes_command) return {Kind::kCommand, {}, words.size() - 1};
  const std::vector<OptionDescription>& arguments = verb->arguments;
  if (context.arguments < arguments.size())
    return Value(program, arguments[context.arguments], "", last);
  if (!arguments.empty() && arguments.back().repeats)
    return Value(program, arguments.back(), "", last);
  return last.empty() ? Options(verb->options, words) : Completion{};
}

}  // namespace gmt::cli
