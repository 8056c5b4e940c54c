#ifndef REDSHANK_STATUS_METRICS_PROCESS_H
#define REDSHANK_STATUS_METRICS_PROCESS_H
/* What this process takes of the machine. 0 where the kernel does not say. */
#include <stdint.h>

uint64_t metrics_process_cpu_us(void);
uint64_t metrics_process_resident_bytes(void);
uint64_t metrics_process_open_fds(void);
uint64_t metrics_process_max_fds(void);
/* Microseconds since the epoch, by the clocks as they are now. */
uint64_t metrics_process_started_us(void);

#endif
