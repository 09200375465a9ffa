// session/launcher.h
//
// Determines the rank of this process within its job from the environment variables of its
// launcher: torchrun and tools that use its names, MPI, Slurm, Flux, Kubernetes.
//
// Often several launchers have set variables, and only the innermost one is right: eight workers
// that torchrun starts under one `srun` task share that task's SLURM_PROCID. The first launcher of
// the list in launcher.cc that set a rank wins, and local rank and size are taken from the same
// launcher only. A missing value is better than a rank of one launcher with the size of another.
//
// The variables are read when a recording begins, at the first GPU call of the process. By then a
// program that starts its own workers (torch.multiprocessing.spawn) has set them in its own
// environment. An attaching client reads the environment that the process was started with.
//
// Thread safety: that of getenv(), or of the given look-up function.

#ifndef GMT_SESSION_LAUNCHER_H_
#define GMT_SESSION_LAUNCHER_H_

#include <string_view>

namespace gmt::session {

// A field is "" if unknown. Numbers consist of digits. The strings are owned by the environment.
struct Launcher {
  const char* rank = "";        // among all processes of the job
  const char* local_rank = "";  // among those on this machine
  const char* world_size = "";
  const char* node_rank = "";
  const char* restart_count = "";  // number of restarts of the job
  const char* job = "";

  // Looks up a variable of an environment; returns null if it is not set.
  using LookUp = const char* (*)(void* environment, const char* name);
  static Launcher Read(LookUp look_up, void* environment);
  // Reads the environment of this process.
  static Launcher Read();
};

// Returns whether Read() looks at the environment variable.
bool IsLauncherVariable(std::string_view name);

}  // namespace gmt::session

#endif  // GMT_SESSION_LAUNCHER_H_
