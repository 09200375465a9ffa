// session/launcher.h
//
// Who this process is among those of a job, from the variables that its launcher set: torchrun and
// what goes by its names, MPI, Slurm, Flux, Kubernetes.
//
// Several launchers often speak at once, and only the innermost one knows: eight workers that
// torchrun starts under one `srun` task share that task's SLURM_PROCID. So the first rank of the
// list below wins, and what is said about it (local rank, size) must come from whoever said that
// rank; nothing is better than the rank of one and the size of another.
//
// Read when a recording begins, which is at the process's first GPU call: a program that starts its
// workers itself (torch.multiprocessing.spawn) has set the variables by then, in its own environment. Who
// attaches reads the environment that the other process was started with.
//
// Thread safety: as getenv(), or as the look-up that is given.

#ifndef GMT_SESSION_LAUNCHER_H_
#define GMT_SESSION_LAUNCHER_H_

#include <string_view>

namespace gmt::session {

// Each is "" where nobody says. Numbers are digits; the texts live in the environment.
struct Launcher {
  const char* rank = "";        // among all processes of the job
  const char* local_rank = "";  // among those on this machine
  const char* world_size = "";
  const char* node_rank = "";
  const char* restart_count = "";  // how often the job was started again
  const char* job = "";

  // Of an environment: null where it has no such variable.
  using LookUp = const char* (*)(void* environment, const char* name);
  static Launcher Read(LookUp look_up, void* environment);
  // Of this process.
  static Launcher Read();
};

// Whether the environment variable is one of those that Read() looks at.
bool IsLauncherVariable(std::string_view name);

}  // namespace gmt::session

#endif  // GMT_SESSION_LAUNCHER_H_
