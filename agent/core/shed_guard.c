/*
 * The last guard: whatever made somebody believe that a prefix may be out, these three rules stand
 * between that belief and BIRD. It knows no time, no neighbour and no memory, so that there is
 * nothing in it that could be stale. What is withdrawn for other reasons does not wait for it: it
 * is told of that in the next turn. It only ever brings back, and brings back the last that went
 * first.
 */
#include "agent/core/shed.h"

static bool shed_guard_later(const struct shed_guard_prefix *a, const struct shed_guard_prefix *b)
{
	return !b || a->order > b->order;
}

/* The last shed, or NULL. */
static struct shed_guard_prefix *shed_guard_last(struct shed_guard_prefix *prefixes, size_t n)
{
	struct shed_guard_prefix *last = NULL;

	for (size_t i = 0; i < n; i++) {
		if (prefixes[i].out && shed_guard_later(&prefixes[i], last))
			last = &prefixes[i];
	}
	return last;
}

static bool shed_guard_takes_all(const struct shed_guard_prefix *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (prefixes[i].announced && !prefixes[i].out)
			return false;
	}
	return true;
}

static uint64_t shed_guard_moved(const struct shed_guard_prefix *prefixes, size_t n)
{
	uint64_t moved = 0;

	for (size_t i = 0; i < n; i++) {
		if (prefixes[i].out)
			moved += prefixes[i].load;
	}
	return moved;
}

size_t shed_guard(struct shed_guard_prefix *prefixes, size_t n, uint64_t load, unsigned most_bp)
{
	size_t n_undone = 0;
	struct shed_guard_prefix *last;

	for (size_t i = 0; i < n; i++) {
		if (prefixes[i].out && prefixes[i].others == 0) {
			prefixes[i].out = false;
			n_undone++;
		}
	}
	for (last = shed_guard_last(prefixes, n); last; last = shed_guard_last(prefixes, n)) {
		bool too_much = shed_guard_moved(prefixes, n) * SHED_WHOLE_BP > load * most_bp;

		if (!too_much && !shed_guard_takes_all(prefixes, n))
			break;
		last->out = false;
		n_undone++;
	}
	return n_undone;
}
