#include "cli/manual/manual_page.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/manual/documentation.h"

namespace gmt::cli {
namespace {

// Escapes text, which may have several lines. A hyphen is written so that it can be copied into a
// shell, and a line that begins with a dot or an apostrophe is no request.
std::string Escaped(absl::string_view text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::string escaped = absl::StrReplaceAll(line, {{"\\", "\\e"}, {"-", "\\-"}});
    const bool is_request = absl::StartsWith(escaped, ".") || absl::StartsWith(escaped, "'");
    lines.push_back(absl::StrCat(is_request ? "\\&" : "", escaped));
  }
  return absl::StrJoin(lines, "\n");
}

std::string Bold(absl::string_view text) { return absl::StrCat("\\fB", Escaped(text), "\\fR"); }
std::string Italic(absl::string_view text) { return absl::StrCat("\\fI", Escaped(text), "\\fR"); }

std::string Sentence(std::string text) {
  if (!text.empty()) text[0] = absl::ascii_toupper(text[0]);
  if (!absl::EndsWith(text, ".") && !absl::EndsWith(text, "?")) text += '.';
  return text;
}

std::string Item(const std::string& label, const std::string& text) {
  return absl::StrCat(".TP\n", label, "\n", text, "\n");
}

std::string PageName(const std::string& verb) { return absl::StrCat("gpumemtrace-", verb); }

std::string Reference(const std::string& page) { return absl::StrCat(Bold(page), "(1)"); }

std::string Header(const std::string& name, const std::string& summary, const std::string& date,
                   const ProgramDescription& program) {
  return absl::StrCat(".TH ", Escaped(absl::AsciiStrToUpper(name)), " 1 ", date, " \"gpumemtrace ",
                      program.version, "\" \"gpumemtrace\"\n.SH NAME\n", Escaped(name), " \\- ",
                      Escaped(absl::StrCat(absl::AsciiStrToLower(summary.substr(0, 1)),
                                           absl::StripSuffix(summary.substr(1), "."))),
                      "\n");
}

std::string ValueOf(const OptionDescription& option) {
  if (!option.value.empty()) return Italic(option.value);
  return absl::StrJoin(option.choices, "|", [](std::string* out, const std::string& choice) {
    absl::StrAppend(out, Bold(choice));
  });
}

std::string OptionItem(const OptionDescription& option) {
  std::string label = absl::StrJoin(
      option.names, ", ",
      [](std::string* out, const std::string& name) { absl::StrAppend(out, Bold(name)); });
  if (option.takes_value())
    absl::StrAppend(&label, option.names.empty() ? "" : " ", ValueOf(option));
  return Item(label, Escaped(option.help));
}

std::string Section(const std::string& title, const std::vector<std::string>& items) {
  if (items.empty()) return "";
  // A section begins a paragraph itself.
  return absl::StrCat(".SH ", title, "\n", absl::StripPrefix(absl::StrJoin(items, ""), ".PP\n"));
}

std::string OptionSection(const std::string& title, const std::vector<OptionDescription>& options,
                          bool common) {
  std::vector<std::string> items;
  for (const OptionDescription& option : options) {
    if (option.is_common == common) items.push_back(OptionItem(option));
  }
  return Section(title, items);
}

std::string Synopsis(const VerbDescription& verb) {
  std::string synopsis =
      absl::StrCat(".SH SYNOPSIS\n", Bold(absl::StrCat("gpumemtrace ", verb.name)));
  for (const OptionDescription& option : verb.options) {
    if (option.is_required)
      absl::StrAppend(&synopsis, " ", Bold(option.names.back()), " ", ValueOf(option));
  }
  absl::StrAppend(&synopsis, " [", Italic("OPTIONS"), "]");
  for (const OptionDescription& argument : verb.arguments) {
    const std::string dots =
        argument.repeats && !absl::StrContains(argument.value, "...") ? "..." : "";
    const std::string value = absl::StrCat(Italic(argument.value), dots);
    absl::StrAppend(&synopsis, " ", argument.is_required ? value : absl::StrCat("[", value, "]"));
  }
  if (verb.takes_command)
    absl::StrAppend(&synopsis, " ", Bold("--"), " ", Italic("COMMAND"), "...");
  return absl::StrCat(synopsis, "\n");
}

std::string DescriptionSection(const VerbDescription& verb) {
  std::string text = absl::StrCat(".SH DESCRIPTION\n", Escaped(Sentence(verb.summary)), "\n");
  for (const std::string& purpose : PurposesOf(verb.name, CommandsPage()))
    absl::StrAppend(&text, ".PP\n", Escaped(Sentence(purpose)), "\n");
  return text;
}

// Text that is laid out already.
std::string Verbatim(absl::string_view text) {
  return absl::StrCat(".PP\n.nf\n", Escaped(text), "\n.fi\n");
}

std::string ExampleSection(const std::string& verb) {
  std::vector<std::string> items;
  for (const absl::string_view page : {ReadmePage(), CommandsPage()}) {
    for (const Example& example : ExamplesOf(verb, page)) {
      const std::string purpose =
          example.purpose.empty() ? ""
                                  : absl::StrCat(".PP\n", Escaped(Sentence(example.purpose)), "\n");
      items.push_back(
          absl::StrCat(purpose, ".PP\n.RS 4\n.nf\n", Escaped(example.command), "\n.fi\n.RE\n"));
    }
  }
  return Section("EXAMPLES", items);
}

std::string ExitSection(const VerbDescription* verb) {
  std::vector<std::string> items;
  if (verb != nullptr && verb->takes_command) {
    items = {Item(Bold("126"), "The command cannot be executed."),
             Item(Bold("127"), "The command was not found."),
             Item(Bold("125"), "The recording could not be started."),
             Item("otherwise",
                  "The exit status of the command, or 128 and the number of the signal "
                  "that ended it.")};
  } else {
    items = {Item(Bold("0"), "Success."),
             Item(Bold("1"), "It failed; the reason is on standard error."),
             Item(Bold("2"), "Wrong usage.")};
    if (verb == nullptr) {
      items.push_back(Item(Bold("3"), Escaped("A condition is violated that report --fail-above, "
                                              "diff --fail-above or leaks --fail states.")));
    }
  }
  for (const OptionDescription& option :
       verb == nullptr ? std::vector<OptionDescription>() : verb->options) {
    if (absl::StartsWith(option.names.back(), "--fail"))
      items.push_back(Item(Bold("3"), absl::StrCat("The condition of ", Bold(option.names.back()),
                                                   " is violated.")));
  }
  return Section("EXIT STATUS", items);
}

std::string EnvironmentSection() {
  return Section(
      "ENVIRONMENT",
      {Item(Bold("GPUMEMTRACE"),
            Escaped(
                "Options of a program that is started with LD_PRELOAD=libgpumemtrace.so, such as "
                "output=run.gmt,quiet.")),
       Item(Bold("GPUMEMTRACE_DIR"), "The directory of the sessions of running programs."),
       Item(Bold("GPUMEMTRACE_LIBRARY"), "The preloaded library, if it is not the installed one."),
       Item(Bold("GPUMEMTRACE_COLLECTOR"), "The collector, if it is not the installed one."),
       Item(Bold("NO_COLOR"), "If it is set and not empty, text has no colors.")});
}

std::string FilesSection() {
  return Section(
      "FILES",
      {Item(Italic("gpumemtrace.HOST.PID.gmt"),
            "A recording, in the working directory of its program, unless another name is given."),
       Item(Italic("$XDG_STATE_HOME/gpumemtrace"),
            "Recordings that could not be written where they were requested."),
       Item(Italic("$XDG_RUNTIME_DIR/gpumemtrace, /dev/shm"),
            "Sessions: the memory that a recorded program shares with its collector.")});
}

}  // namespace

std::string ProgramPage(const ProgramDescription& program, const std::string& date) {
  std::vector<std::string> verbs, pages;
  for (const VerbDescription& verb : program.verbs) {
    verbs.push_back(Item(Bold(verb.name), Escaped(Sentence(verb.summary))));
    pages.push_back(Reference(PageName(verb.name)));
  }
  return absl::StrCat(
      Header("gpumemtrace", program.summary, date, program), ".SH SYNOPSIS\n", Bold("gpumemtrace"),
      " ", Italic("VERB"), " [", Italic("OPTIONS"), "] [", Italic("ARGUMENTS"),
      "]\n.SH DESCRIPTION\nRecords every allocation of GPU memory that PyTorch or another CUDA "
      "program makes, with its Python and native stack. From the recording it answers what holds "
      "the memory, why it ran out, which line leaks, and what changed between two runs.\n",
      Section("VERBS", verbs), OptionSection("OPTIONS", program.options, false),
      ExitSection(nullptr), EnvironmentSection(), FilesSection(), ExampleSection("run"),
      ".SH SEE ALSO\n", absl::StrJoin(pages, ",\n"), "\n");
}

std::string VerbPage(const ProgramDescription& program, const VerbDescription& verb,
                     const std::string& date) {
  return absl::StrCat(Header(PageName(verb.name), verb.summary, date, program), Synopsis(verb),
                      DescriptionSection(verb), OptionSection("ARGUMENTS", verb.arguments, false),
                      OptionSection("OPTIONS", verb.options, false),
                      OptionSection("COMMON OPTIONS", verb.options, true),
                      verb.takes_command || verb.footer.empty()
                          ? ""
                          : Section("NOTES", {Verbatim(absl::StripAsciiWhitespace(verb.footer))}),
                      ExitSection(&verb), ExampleSection(verb.name), ".SH SEE ALSO\n",
                      Reference("gpumemtrace"), "\n");
}

}  // namespace gmt::cli
