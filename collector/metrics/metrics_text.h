// collector/metrics/metrics_text.h
//
// The text of /metrics: what Prometheus scrapes of one recorded process (docs/metrics.md has each
// name). Labels of devices are spelt as NVIDIA's DCGM exporter spells them, so that both can be
// joined by UUID.
//
// Bounded: 20 series that every process has, 5 for each device, 7 for each heap of a device, 8 of
// leaks where they are looked for. No label has a stack, an address or a thread.
//
// Thread safety: pure functions.

#ifndef GMT_COLLECTOR_METRICS_METRICS_TEXT_H_
#define GMT_COLLECTOR_METRICS_METRICS_TEXT_H_

#include <string>
#include <vector>

namespace gmt {
class LeakAnswer;
namespace control {
class Status;
}
}  // namespace gmt

namespace gmt::metrics {

// Who is scraped: labels of gpumemtrace_target_info; what is empty is left out.
struct Identity {
  std::string hostname, rank, local_rank, train_job, slurm_job_id, version;
};

enum class Dialect { kPrometheus, kOpenMetrics };

// `leaks`: what is known of them; nothing is told of leaks where it is null, or nobody looks for them.
std::string MetricsText(const control::Status& status, const gmt::LeakAnswer* leaks,
                        const Identity& identity, Dialect dialect);

}  // namespace gmt::metrics

#endif  // GMT_COLLECTOR_METRICS_METRICS_TEXT_H_
