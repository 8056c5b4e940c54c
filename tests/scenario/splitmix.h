#ifndef REDSHANK_TESTS_SPLITMIX_H
#define REDSHANK_TESTS_SPLITMIX_H
/* The random numbers of all tests that have a seed: splitmix64 (Steele, Lea and Flood, "Fast
 * Splittable Pseudorandom Number Generators", 2014), by which every seed is as good as another. */
#include <stdint.h>

static inline uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

#endif
