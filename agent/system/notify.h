#ifndef REDSHANK_SYSTEM_NOTIFY_H
#define REDSHANK_SYSTEM_NOTIFY_H
/* sd_notify(3): what the agent tells systemd about itself. Nothing happens without NOTIFY_SOCKET.
 */

#include <stdint.h>

void notify_ready(void);
void notify_reloading(void);
void notify_stopping(void);
/* A stop takes so much longer than TimeoutStopSec may allow. */
void notify_extend(uint64_t us);
/* How often systemd's watchdog wants to hear of us, in us; 0: not at all. */
uint64_t notify_watchdog_us(void);
void notify_watchdog(void);
void notify_status(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
