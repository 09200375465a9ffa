// symbols/debuginfod.h
//
// Debuginfod: fetches debug files from the servers in DEBUGINFOD_URLS through the system's client
// library, which caches them (~/.cache/debuginfod_client). The library is loaded on demand; the
// program does not depend on it.
//
// Used only at the user's request, because a query reveals to the server which files the recorded
// program consists of.
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
  // Returns FAILED_PRECONDITION, with instructions, if no server is configured or the client
  // library is not installed.
  static absl::StatusOr<std::unique_ptr<Debuginfod>> Open();
  ~Debuginfod();
  Debuginfod(const Debuginfod&) = delete;
  Debuginfod& operator=(const Debuginfod&) = delete;

  // As in DEBUGINFOD_URLS.
  const std::string& servers() const { return servers_; }

  // Returns the path of the debug file with that build-id (raw bytes), fetching it if necessary,
  // or "" if no server has it.
  std::string Find(const std::string& build_id);

 private:
  struct Library;
  explicit Debuginfod(std::unique_ptr<Library> library, std::string servers);
  std::unique_ptr<Library> library_;
  std::string servers_;
};

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_DEBUGINFOD_H_
