// collector/sessions/libraries.h
//
// Which versions of the driver, the CUDA runtime, PyTorch and Python a process uses, found from
// outside: from the files that are mapped into it and what lies beside them. Nothing is loaded or
// run.
//
//   cuda_driver    libcuda.so.580.65.06                          its name
//   cuda_runtime   libcudart.so.12.4.127                         its name
//                  nvidia_cuda_runtime-13.0.96.dist-info         or that of the wheel it came in
//   torch          torch/version.py beside torch/lib/libtorch*   its __version__
//   python         libpython3.11.so.1.0, bin/python3.11          its headers' patchlevel.h, or name
//
// Thread safety: free functions.

#ifndef GMT_COLLECTOR_SESSIONS_LIBRARIES_H_
#define GMT_COLLECTOR_SESSIONS_LIBRARIES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "format/messages_fwd.h"

namespace gmt::collector {

// Name -> version; a name that is not there is not in use, or its version cannot be told.
using Libraries = std::map<std::string, std::string>;

// Of a live process; empty where it cannot be looked at.
Libraries FindLibraries(uint64_t pid);

// Of a process that has these files mapped, whose paths begin at `root` ("/proc/PID/root"; may be
// empty).
Libraries FindLibraries(const std::vector<std::string>& mapped_files, const std::string& root);

// The libcuda.so.1 that a live process has mapped; empty: none, or it cannot be looked at.
std::string MappedDriver(uint64_t pid);

// The files in a /proc/PID/maps, each once.
std::vector<std::string> MappedFiles(const std::string& maps);

void AddLibraries(const Libraries& libraries, gmt::Facts* facts);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSIONS_LIBRARIES_H_
