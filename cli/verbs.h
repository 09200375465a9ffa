// cli/verbs.h
//
// The verbs of the program in the order of the help. To add a verb, write one file that defines
// AddNAME(), and add one line here and one in CMakeLists.txt.

#ifndef GMT_CLI_VERBS_H_
#define GMT_CLI_VERBS_H_

// clang-format off
#define GMT_VERBS(VERB) \
  VERB(Run) \
  VERB(Attach) \
  VERB(Detach) \
  VERB(List) \
  VERB(Collect) \
  VERB(Status) \
  VERB(Snapshot) \
  VERB(Mark) \
  VERB(Top) \
  VERB(Report) \
  VERB(Oom) \
  VERB(Frag) \
  VERB(Whatif) \
  VERB(Advise) \
  VERB(Estimate) \
  VERB(Ledger) \
  VERB(Diff) \
  VERB(Ranks) \
  VERB(Leaks) \
  VERB(Show) \
  VERB(Query) \
  VERB(View) \
  VERB(Export) \
  VERB(Cat) \
  VERB(Import) \
  VERB(Info) \
  VERB(Doctor) \
  VERB(Repair) \
  VERB(Symbolize) \
  VERB(PreloadPath) \
  VERB(Completion) \
  VERB(Man)
// clang-format on

namespace gmt::cli {

class Program;

#define GMT_DECLARE_VERB(Name) void Add##Name(Program& program);
GMT_VERBS(GMT_DECLARE_VERB)
#undef GMT_DECLARE_VERB

}  // namespace gmt::cli

#endif  // GMT_CLI_VERBS_H_
