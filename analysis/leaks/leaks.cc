#include "analysis/leaks/leaks.h"

namespace gmt::analysis {

LeakReport FindLeaks(const Examination& examination, const LeakOptions&) {
  LeakReport report;
  report.cycles.count = examination.cycles().cycles.size();
  report.cycles.source = examination.cycles().source;
  return report;
}

}  // namespace gmt::analysis
