#include "cli/completion/complete.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"

namespace gmt::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

using Kind = Completion::Kind;

OptionDescription Flag(const std::string& name) {
  OptionDescription option;
  option.names = {name};
  return option;
}

OptionDescription Option(const std::vector<std::string>& names, const std::string& value,
                         const std::vector<std::string>& choices = {}) {
  OptionDescription option;
  option.names = names;
  option.value = value;
  option.choices = choices;
  return option;
}

OptionDescription Argument(const std::string& value) { return Option({}, value); }

OptionDescription Repeated(OptionDescription option) {
  option.repeats = true;
  return option;
}

VerbDescription Verb(const std::string& name, const std::vector<OptionDescription>& arguments,
                     const std::vector<OptionDescription>& options = {}) {
  VerbDescription verb;
  verb.name = name;
  verb.arguments = arguments;
  verb.options = options;
  return verb;
}

// A program with one verb of each kind.
ProgramDescription ExampleProgram() {
  ProgramDescription program;
  program.options = {Option({"-h", "--help"}, ""), Flag("--version")};
  program.verbs = {
      Verb("report", {Argument("FILE"), Argument("FILE2")},
           {Option({"--by"}, "", {"stack", "stream", "size"}),
            Repeated(Option({"--set"}, "KEY=VALUE")), Option({"-o", "--output"}, "FILE"),
            Option({"--debug-dir"}, "DIR"), Flag("--json")}),
      Verb("ranks", {Repeated(Argument("FILE"))}),
      Verb("run", {}, {Flag("--quiet"), Option({"--heap"}, "NAME")}),
      Verb("status", {Argument("PID")}), Verb("man", {Argument("VERB")})};
  program.verbs[2].takes_command = true;
  return program;
}

// The words of `line` are separated by single spaces; the last one is at the cursor.
Completion Completed(const std::string& line) {
  return Complete(ExampleProgram(), absl::StrSplit(line, ' '));
}

std::vector<std::string> WordsOf(const std::string& line) {
  const Completion completion = Completed(line);
  EXPECT_EQ(completion.kind, Kind::kWords) << line;
  std::vector<std::string> words;
  for (const Candidate& candidate : completion.candidates) words.push_back(candidate.word);
  return words;
}

TEST(CompleteTest, FirstWordIsAVerb) {
  EXPECT_THAT(WordsOf("r"), ElementsAre("report", "ranks", "run"));
  EXPECT_THAT(WordsOf(""), Contains("man"));
  EXPECT_THAT(WordsOf("x"), IsEmpty());
}

TEST(CompleteTest, ProgramHasOptionsOfItsOwn) {
  EXPECT_THAT(WordsOf("-"), ElementsAre("--help", "--version"));
}

TEST(CompleteTest, VerbHasItsOptions) {
  EXPECT_THAT(WordsOf("report --"),
              ElementsAre("--by", "--set", "--output", "--debug-dir", "--json"));
  EXPECT_THAT(WordsOf("report a.gmt --j"), ElementsAre("--json"));
  EXPECT_THAT(WordsOf("explode --"), IsEmpty());
}

TEST(CompleteTest, ShortOptionIsCompleteItself) {
  EXPECT_THAT(WordsOf("report -o"), ElementsAre("-o"));
}

TEST(CompleteTest, OptionIsOfferedOnceUnlessItRepeats) {
  EXPECT_THAT(WordsOf("report --by size --set a=b -o x --json --"),
              ElementsAre("--set", "--debug-dir"));
  EXPECT_THAT(WordsOf("report --by=size --"), Not(Contains("--by")));
}

TEST(CompleteTest, ChoicesOfAnOption) {
  EXPECT_THAT(WordsOf("report --by st"), ElementsAre("stack", "stream"));
  EXPECT_THAT(WordsOf("report --by=st"), ElementsAre("--by=stack", "--by=stream"));
  // As bash divides it.
  EXPECT_THAT(WordsOf("report --by ="), ElementsAre("stack", "stream", "size"));
  EXPECT_THAT(WordsOf("report --by = st"), ElementsAre("stack", "stream"));
}

TEST(CompleteTest, ValueOfAnOptionIsNoArgument) {
  EXPECT_EQ(Completed("report -o x ").kind, Kind::kRecordings);
  EXPECT_EQ(Completed("report --by = size ").kind, Kind::kRecordings);
  EXPECT_THAT(WordsOf("report --set "), IsEmpty());
}

TEST(CompleteTest, KindOfAValueFollowsFromItsPlaceholder) {
  EXPECT_EQ(Completed("report -o ").kind, Kind::kFiles);
  EXPECT_EQ(Completed("report --output=").kind, Kind::kFiles);
  EXPECT_EQ(Completed("report --debug-dir ").kind, Kind::kFolders);
  EXPECT_EQ(Completed("report ").kind, Kind::kRecordings);
  EXPECT_EQ(Completed("status 1").kind, Kind::kSessions);
  EXPECT_THAT(WordsOf("man re"), ElementsAre("report"));
}

TEST(CompleteTest, AfterTheLastArgumentOnlyOptionsFollow) {
  EXPECT_EQ(Completed("report a.gmt ").kind, Kind::kRecordings);
  EXPECT_THAT(WordsOf("report a.gmt b.gmt "), Contains("--json"));
  EXPECT_THAT(WordsOf("report a.gmt b.gmt c"), IsEmpty());
  EXPECT_EQ(Completed("ranks a.gmt b.gmt c").kind, Kind::kRecordings);
}

TEST(CompleteTest, DashesEndTheOptions) {
  EXPECT_EQ(Completed("report -- -").kind, Kind::kRecordings);
}

TEST(CompleteTest, CommandLineOfAnotherProgram) {
  EXPECT_THAT(WordsOf("run --q"), ElementsAre("--quiet"));
  for (const std::string line : {"run pyt", "run -- pyt", "run --heap driver pyt",
                                 "run --quiet -- python -", "run python -"}) {
    EXPECT_EQ(Completed(line).kind, Kind::kCommand) << line;
  }
  EXPECT_EQ(Completed("run pyt").command, 1u);
  EXPECT_EQ(Completed("run -- pyt").command, 2u);
  EXPECT_EQ(Completed("run --heap driver pyt").command, 3u);
  EXPECT_EQ(Completed("run --quiet -- python -").command, 3u);
}

}  // namespace
}  // namespace gmt::cli
