// symbols/debuginfod.h
//
// Debuginfod: debug files from the servers in DEBUGINFOD_URLS, through the system's own client
// library, which keeps what it fetched (~/.cache/debuginfod_client). The library is opened when it
// is asked for; the program does not need it.
//
// Nothing here is used unless the user says so: asking tells a server which files this program was
// made of.
//
// Thread safety: one thread at a time.

#ifndef GMT_SYMBOLS_DEBUGINFOD_H_
#define GMT_SYMBOLS_DEBUGINFOD_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace gmt::symbols {

class Debuginfod {
 public:
  // FAILED_PRECONDITION, with the way out, where no server is named or the client library is not on
  // this machine.
  static absl::StatusOr<std::unique_ptr<Debuginfod>> Open();
  ~Debuginfod();
  Debuginfod(const Debuginfod&) = delete;
  Debuginfod& operator=(const Debuginfod&) = delete;

  // As in DEBUGINFOD_URLS.
  const std::string& servers() const { return servers_; }

  // The path of the debug file with that build-id (raw bytes), fetched if need be; empty where no
  // server has it.
  std::string Find(const std::string& build_id);

 private:
  struct Library;
  explicit Debuginfod(std::unique_ptr<Library> library, std::string servers);
  std::unique_ptr<Library> library_;
  std::string servers_;
};

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_DEBUGINFOD_H_
