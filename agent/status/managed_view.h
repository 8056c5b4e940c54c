#ifndef REDSHANK_STATUS_MANAGED_VIEW_H
#define REDSHANK_STATUS_MANAGED_VIEW_H
/* What is shown of managed addresses: for the documents and the metrics. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/managed.h"

struct managed_view {
	const char *interface; /* borrowed */
	enum managed_state state;
	bool ours;	   /* an agent has added it */
	uint64_t restored; /* how often it was gone by another's hand and added again */
	int error;	   /* negative errno of the last attempt; 0: it worked */
};

struct managed_counts {
	uint64_t n_managed; /* addresses that are configured to be */
	uint64_t n_missing; /* of them, those to be added */
	uint64_t added, removed, restored, failed;
};

#endif
