// cli/completion/complete.h
//
// Complete: what may follow on a command line of gpumemtrace, for any shell. The script of a shell
// passes the words before the cursor to `gpumemtrace completion --words` and offers what that
// prints. So there is one implementation, and the scripts contain no verb and no option.

#ifndef GMT_CLI_COMPLETION_COMPLETE_H_
#define GMT_CLI_COMPLETION_COMPLETE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "cli/description.h"

namespace gmt::cli {

struct Candidate {
  std::string word, help;
};

struct Completion {
  enum class Kind {
    kWords,       // one of `candidates`, which begin with the word at the cursor
    kFiles,       // any file
    kFolders,     // a directory
    kRecordings,  // a recording, a file that is read like one, or a directory
    kSessions,    // the process ID of a session
    kCommand,     // another program's command line, which begins at word number `command`
  };
  Kind kind = Kind::kWords;
  std::vector<Candidate> candidates;
  size_t command = 0;
};

// `words` are those after the program's name, up to the one at the cursor, which may be empty.
// "--by=st" may be one word, or three, as bash divides it.
Completion Complete(const ProgramDescription& program, const std::vector<std::string>& words);

}  // namespace gmt::cli

#endif  // GMT_CLI_COMPLETION_COMPLETE_H_
