// collector/metrics/metrics_text.h
//
// The text of /metrics, scraped by Prometheus for one recorded process (docs/metrics.md lists each
// metric). Device labels match NVIDIA's DCGM exporter, so that both can be joined by UUID.
//
// The number of series is bounded: 20 per process, 5 per device, 7 per heap of a device, and 8 for
// leaks if they are searched for. No label contains a stack, an address or a thread.
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

// Labels of gpumemtrace_target_info; empty ones are omitted.
struct Identity {
  std::string hostname, rank, local_rank, train_job, slurm_job_id, version;
};

enum class Dialect { kPrometheus, kOpenMetrics };

// `leaks`: the current findings. No leak metrics are written if it is null or if leaks are not
// searched for.
std::string MetricsText(const control::Status& status, const gmt::LeakAnswer* leaks,
                        const Identity& identity, Dialect dialect);

}  // namespace gmt::metrics

#endif  // GMT_COLLECTOR_METRICS_METRICS_TEXT_H_
