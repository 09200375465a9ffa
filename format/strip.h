// format/strip.h
//
// Strip: what is taken out of a recording that is to leave the machine it was made on.
//
//   paths   every path loses the folders that say whose machine it was:
//             /usr/lib/x86_64-linux-gnu/libc.so.6                   as it is: everybody's
//             /home/ann/venv/lib/python3.11/site-packages/torch/x   site-packages/torch/x
//             /home/ann/.pyenv/lib/python3.11/threading.py          python3.11/threading.py
//             WORKING_DIRECTORY/src/model.py                        src/model.py
//             /home/ann/other/data.py                               data.py
//           in names of files and modules, in the command line, in options and settings.
//   args    of the command line, all but the program.
//
// Names of functions, marks, threads and of the host stay. What is left out is not in the file: no
// reader can bring it back. Modules are still found by their build-id.
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
  std::string working_directory;  // of the process; learnt from facts where it is empty

  bool any() const { return paths || args; }
};

std::string StripPath(std::string_view path, std::string_view working_directory);

// Each path in a text: what begins with / and stands at its beginning or behind one of blank = : , ; ' " (
std::string StripPathsIn(std::string_view text, std::string_view working_directory);

// Definitions and facts of one chunk. Whether there is anything of that kind in it.
bool StripBody(Strip* strip, gmt::Body* body);

}  // namespace gmt::format

#endif  // GMT_FORMAT_STRIP_H_
