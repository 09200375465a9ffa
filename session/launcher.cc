#include "session/launcher.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

namespace gmt::session {
namespace {

struct Names {
  const char* rank;
  const char* local_rank;
  const char* world_size;
};

// Innermost launcher first. If a launcher reuses names of another one, they are listed for the
// latter.
constexpr Names kLaunchers[] = {
    {"GPUMEMTRACE_RANK", "LOCAL_RANK", "WORLD_SIZE"},
    {"RANK", "LOCAL_RANK", "WORLD_SIZE"},  // torchrun, accelerate, deepspeed, Ray Train
    {"HOROVOD_RANK", "HOROVOD_LOCAL_RANK", "HOROVOD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE"},
    {"PMIX_RANK", nullptr, nullptr},
    {"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"},
    {"FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE"},
    {"PALS_RANKID", "PALS_LOCAL_RANKID", nullptr},
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"},
    {"JOB_COMPLETION_INDEX", nullptr, nullptr},  // an indexed job of Kubernetes
};
constexpr const char* kNodes[] = {"GROUP_RANK", "NODE_RANK", "PALS_NODEID", "SLURM_NODEID"};
constexpr const char* kRestarts[] = {"TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"};
constexpr const char* kJobs[] = {"SLURM_JOB_ID", "PBS_JOBID",  "LSB_JOBID",
                                 "FLUX_JOB_ID",  "RAY_JOB_ID", "TORCHELASTIC_RUN_ID"};

constexpr size_t kMaxDigits = 9;  // below 2^31

class Environment {
 public:
  Environment(Launcher::LookUp look_up, void* of) : look_up_(look_up), of_(of) {}

  const char* Number(const char* name) const {
    const char* value = Text(name);
    const size_t digits = strspn(value, "0123456789");
    return digits <= kMaxDigits && value[digits] == '\0' ? value : "";
  }
  template <size_t kCount>
  const char* FirstNumber(const char* const (&names)[kCount]) const {
    for (const char* name : names) {
      const char* value = Number(name);
      if (*value != '\0') return value;
    }
    return "";
  }
  const char* FirstJob() const {
    for (const char* name : kJobs) {
      const char* value = Text(name);
      // torchrun sets "none" for a job without a name.
      if (*value != '\0' && strcmp(value, "none") != 0) return value;
    }
    return "";
  }

 private:
  const char* Text(const char* name) const {
    const char* value = name == nullptr ? nullptr : look_up_(of_, name);
    return value == nullptr ? "" : value;
  }

  const Launcher::LookUp look_up_;
  void* const of_;
};

}  // namespace

Launcher Launcher::Read(LookUp look_up, void* environment) {
  const Environment from(look_up, environment);
  Launcher launcher;
  // torchrun's variables are valid even without a rank.
  launcher.local_rank = from.Number("LOCAL_RANK");
  launcher.world_size = from.Number("WORLD_SIZE");
  for (const Names& names : kLaunchers) {
    const char* rank = from.Number(names.rank);
    if (*rank == '\0') continue;
    launcher.rank = rank;
    launcher.local_rank = from.Number(names.local_rank);
    launcher.world_size = from.Number(names.world_size);
    break;
  }
  launcher.node_rank = from.FirstNumber(kNodes);
  launcher.restart_count = from.FirstNumber(kRestarts);
  launcher.job = from.FirstJob();
  return launcher;
}

Launcher Launcher::Read() {
  return Read([](void*, const char* name) -> const char* { return getenv(name); }, nullptr);
}

bool IsLauncherVariable(std::string_view name) {
  for (const Names& names : kLaunchers) {
    if (name == names.rank) return true;
    if (names.local_rank != nullptr && name == names.local_rank) return true;
    if (names.world_size != nullptr && name == names.world_size) return true;
  }
  for (const char* other : kNodes) {
    if (name == other) return true;
  }
  for (const char* other : kRestarts) {
    if (name == other) return true;
  }
  for (const char* other : kJobs) {
    if (name == other) return true;
  }
  return false;
}

}  // namespace gmt::session
