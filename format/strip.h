// format/strip.h
//
// Strip: removes private information from a recording that is to leave the machine it was made on.
//
//   paths   removes the directories that identify the machine or user from every path:
//             /usr/lib/x86_64-linux-gnu/libc.so.6                   unchanged: a system path
//             /home/ann/venv/lib/python3.11/site-packages/torch/x   site-packages/torch/x
//             /home/ann/.pyenv/lib/python3.11/threading.py          python3.11/threading.py
//             WORKING_DIRECTORY/src/model.py                        src/model.py
//             /home/ann/other/data.py                               data.py
//           in names of files and modules, in the command line, in options and settings.
//   args    removes all of the command line except the program.
//
// Names of functions, marks, threads and the host stay. What is removed is not in the file, so no
// reader can restore it. Modules can still be found by their build-id.
//
// Thread safety: pure functions.

#ifndef GMT_FORMAT_STRIP_H_
#define GMT_FORMAT_STRIP_H_

#include <string>
#include <string_view>

#include "format/messages_fwd.h"

namespace gmt::format {

struct Strip {
  bool paths = false, args = false;
  std::string working_directory;  // of the process; if empty, taken from the facts

  bool any() const { return paths || args; }
};

std::string StripPath(std::string_view path, std::string_view working_directory);

// Strips each path in a text. A path begins with / at the start of the text or after one of: blank
// = : , ; ' " (
std::string StripPathsIn(std::string_view text, std::string_view working_directory);

// Strips definitions and facts of one chunk. Returns whether the chunk has any.
bool StripBody(Strip* strip, gmt::Body* body);

}  // namespace gmt::format

#endif  // GMT_FORMAT_STRIP_H_
