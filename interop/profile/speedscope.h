// interop/profile/speedscope.h
//
// A file for www.speedscope.app, in its own JSON format (file-format-schema.json of the npm package
// `speedscope`). For each heap of each device it has two profiles in bytes: what is held at the
// moment, and what has been allocated until then. The first one shown is that with most bytes. A
// frame is a function, with all of its lines, because the viewer's table has a row for each frame.
//
// Thread safety: pure function.

#ifndef GMT_INTEROP_PROFILE_SPEEDSCOPE_H_
#define GMT_INTEROP_PROFILE_SPEEDSCOPE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "analysis/examination/examination.h"
#include "interop/profile/stack_profile.h"

namespace gmt::interop {

// `name`: title of the file. `profile` is one of the recording that `examination` examines.
std::string SpeedscopeJson(const analysis::Examination& examination, const StackProfile& profile,
                           absl::string_view name);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_PROFILE_SPEEDSCOPE_H_
