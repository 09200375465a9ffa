// preload/testing/traced_program.h
//
// TracedProgram: runs a program with the preloaded library in its own directory, and reads the
// session that it leaves. There is no collector, so a test sees only what the library itself does.

#ifndef GMT_PRELOAD_TESTING_TRACED_PROGRAM_H_
#define GMT_PRELOAD_TESTING_TRACED_PROGRAM_H_

#include <string>
#include <vector>

#include "session/record.h"
#include "session/session_file.h"

namespace gmt::preload {

struct Outcome {
  int exit_code = -1;  // -N: killed by signal N
  std::string out, err;
};

// A copy of a session as it was left.
struct LeftSession {
  std::vector<session::Record> records;
  struct Live {
    session::Space space;
    uint64_t value;
    session::LiveValue live;
  };
  std::vector<Live> live;
  // Stacks of `records`, in order; innermost frame first.
  std::vector<std::vector<uint64_t>> stacks, forward_stacks;
  std::vector<std::string> modules;
  struct Device {
    session::Record record;
    std::string name, uuid, pci_bus_id;
  };
  std::vector<Device> devices;  // the `records` that describe a device
  uint64_t counters[session::kCounterCount] = {};
  session::RingLosses losses;
  uint64_t pid = 0;
  int exit_code = -1;  // as noted by the library
};

class TracedProgram {
 public:
  TracedProgram();   // makes an empty directory
  ~TracedProgram();  // removes it

  // Stands in for the collector: a program that ends at once, which leaves the session as the
  // library wrote it.
  std::string collector = "/bin/true";

  // Runs with LD_PRELOAD and the value of GPUMEMTRACE; the working directory is `directory()`.
  Outcome Run(const std::vector<std::string>& command, const std::string& options = "");
  // Same, without the library.
  Outcome RunPlain(const std::vector<std::string>& command);

  const std::string& directory() const { return directory_; }
  // Names of the session files, and of the recordings.
  std::vector<std::string> sessions() const;
  std::vector<std::string> recordings() const;
  LeftSession ReadSession(const std::string& name) const;
  // Reads the only session there is.
  LeftSession ReadSession() const;

 private:
  Outcome RunWith(const std::vector<std::string>& command,
                  const std::vector<std::string>& environment);

  std::string directory_;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TESTING_TRACED_PROGRAM_H_
