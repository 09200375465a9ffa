// cli/record/verify_settings.h
//
// Runs the command of a recording again with other settings of PyTorch's allocator, for
// `whatif --verify`.
//
// The command inherits the terminal, the environment and the working directory of this process; its
// standard output is printed on standard error. Thread safety: one call at a time.

#ifndef GMT_CLI_RECORD_VERIFY_SETTINGS_H_
#define GMT_CLI_RECORD_VERIFY_SETTINGS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "analysis/trace/trace.h"
#include "answers/whatif/whatif_answer.h"

namespace gmt::cli {

// `settings`: options of PYTORCH_CUDA_ALLOC_CONF, in addition to the recorded ones. Fails with
// FAILED_PRECONDITION if the command is not known or one of several ranks, and if the new run
// records no blocks of PyTorch on that GPU.
absl::StatusOr<answers::RealRun> RunWithSettings(const analysis::Trace& trace, int32_t device,
                                                 const std::string& settings);

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_VERIFY_SETTINGS_H_
