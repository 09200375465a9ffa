// interop/open_input.h
//
// Opens whatever a reading verb may be given - a recording, an event log, PyTorch's memory snapshot -
// by its content, so that what comes behind it need not care. Nothing from the file is ever run.
//
// Thread safety: one thread at a time for one Input.

#ifndef GMT_INTEROP_OPEN_INPUT_H_
#define GMT_INTEROP_OPEN_INPUT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "format/definitions.h"
#include "format/recording_reader.h"

namespace gmt::interop {

class Input {
 public:
  virtual ~Input() = default;

  // Reads all of it, once. A visitor may look up what it is given while it reads; symbols are
  // complete only afterwards.
  virtual absl::Status Read(format::RecordingVisitor& visitor,
                            format::Returns returns = format::Returns::kCompleted) = 0;
  virtual const format::Definitions& definitions() const = 0;
  // How much of it has been read, 0 to 1: for a visitor, while it reads. 0 where that is not known.
  virtual double share_read() const { return 0; }

  // After Read(): nothing is damaged, and the end that a finished file has is there.
  virtual bool complete() const = 0;
  // After Read(): what a user should know - damage, a cut - each a sentence with the command that
  // mends it.
  virtual std::vector<std::string> notes() const = 0;
};

// Fails with a message that names the file where it cannot be read or is of no kind that is known.
absl::StatusOr<std::unique_ptr<Input>> OpenInput(absl::string_view path);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_OPEN_INPUT_H_
