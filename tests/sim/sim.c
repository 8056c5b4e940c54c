/*
 * The simulator's command.
 *
 *   sim list                              the scenarios
 *   sim run SCENARIO [options]            one scenario, one line for each rule and seed
 *   sim table [--seeds N] [--sheds N]     the table of docs/shedding.md
 *   sim gate [--seeds N] [--sheds N]      the same, and fails where the agent's rule is too bad
 *   sim each [--seeds N]                  the other scenarios, and fails where one is too bad
 *   sim quick [--sheds N]                 fails where something is wrong; in a second or two
 *   sim plots FOLDER [SCENARIO]           SVG of every scenario, for a person to look at
 *
 *   with REDSHANK_LONG in the environment: twice the seeds, five times the sheds, 1,000 servers
 *   --trace shows what the servers say of themselves
 *   --rule NAME (none, alone, report, rank, grant), --seed N, --seeds N, --sheds N
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "tests/sim/sim.h"

static const char *const rule_names[SIM_RULES] = {"none", "alone", "report", "rank", "grant"};
static const char *const rule_texts[SIM_RULES] = {
	"no shedding",
	"each server withdraws above a threshold",
	"act on neighbours' reports",
	"reports, and only the highest-ranked may act",
	"**reports and the receivers' grants** (the agent)",
};

/* Of the naive rules; they do harm in far fewer. */
#define NAIVE_SHEDS 1000

/* Worlds in which a run once went below the floor, in every gate: a second, shorter freeze had the
 * measure believe that a frozen agent ran. */
static const uint64_t bad_seeds[] = {777, 1093, 3369};

static struct {
	uint64_t seed, seeds, sheds;
	int rule; /* -1: all */
	bool trace;
} options = {.seeds = SIM_SHARES, .sheds = 1000, .rule = -1};

static void add(struct sim_outcome *sum, const struct sim_outcome *o)
{
	if (sum->n_broken == 0)
		memcpy(sum->broken, o->broken, sizeof(sum->broken));
	sum->n_sheds += o->n_sheds;
	sum->n_restores += o->n_restores;
	sum->n_forced += o->n_forced;
	sum->n_late_changes += o->n_late_changes;
	sum->n_messages += o->n_messages;
	sum->n_leaves += o->n_leaves;
	sum->n_broken += o->n_broken;
	sum->hot_s += o->hot_s;
	sum->pushed_s += o->pushed_s;
	sum->below_s += o->below_s;
	sum->dark_s += o->dark_s;
	if (o->worst > sum->worst)
		sum->worst = o->worst;
}

static struct sim_outcome run_one(const struct sim_scenario *scenario, enum sim_rule rule,
	uint64_t seed, struct sim_plot *plot)
{
	struct sim_params params;

	sim_params_default(&params);
	params.rule = rule;
	params.seed = seed;
	params.trace = options.trace;
	scenario->set(&params);
	return sim_run(&params, plot);
}

/* Over all seeds; sums. */
static struct sim_outcome run_seeds(const char *name, enum sim_rule rule, uint64_t seeds)
{
	const struct sim_scenario *scenario = sim_scenario_find(name);
	struct sim_outcome sum = {0};

	for (uint64_t seed = 0; seed < seeds; seed++) {
		struct sim_outcome o = run_one(scenario, rule, seed, NULL);

		add(&sum, &o);
	}
	return sum;
}

static void tell_harm(const char *name, uint64_t seed, const struct sim_outcome *o)
{
	fprintf(stderr, "%s seed %llu: %.1f s below the floor, %llu broken: %s\n", name,
		(unsigned long long)seed, o->below_s, (unsigned long long)o->n_broken, o->broken);
}

static void add_bad_seeds(struct sim_outcome *sum)
{
	const struct sim_scenario *scenario = sim_scenario_find("random");

	for (size_t i = 0; i < sizeof(bad_seeds) / sizeof(bad_seeds[0]); i++) {
		struct sim_outcome o = run_one(scenario, SIM_RULE_GRANT, bad_seeds[i], NULL);

		if (o.n_broken || o.below_s > 0)
			tell_harm("random", bad_seeds[i], &o);
		add(sum, &o);
	}
}

/* Seed after seed until there were enough sheds. */
static struct sim_outcome run_sheds(const char *name, enum sim_rule rule, uint64_t sheds)
{
	const struct sim_scenario *scenario = sim_scenario_find(name);
	struct sim_outcome sum = {0};

	for (uint64_t seed = options.seed; sum.n_sheds < sheds && seed < options.seed + 100000;
		seed++) {
		struct sim_outcome o = run_one(scenario, rule, seed, NULL);

		add(&sum, &o);
		if (o.n_broken || (rule == SIM_RULE_GRANT && o.below_s > 0))
			tell_harm(name, seed, &o);
	}
	return sum;
}

static void print_outcome(const char *name, enum sim_rule rule, const struct sim_outcome *o)
{
	printf("%-10s %-7s sheds %5llu  back %5llu  forced %5llu  late %4llu  hot %7.0f s  pushed "
	       "%6.1f "
	       "s  below %6.1f s  dark %6.1f s  worst %4.2f  left %llu  broken %llu %s\n",
		name, rule_names[rule], (unsigned long long)o->n_sheds,
		(unsigned long long)o->n_restores, (unsigned long long)o->n_forced,
		(unsigned long long)o->n_late_changes, o->hot_s, o->pushed_s, o->below_s, o->dark_s,
		o->worst, (unsigned long long)o->n_leaves, (unsigned long long)o->n_broken,
		o->broken);
}

static int no_scenario(const char *name)
{
	fprintf(stderr, "sim: no scenario %s; see sim list\n", name);
	return 2;
}

static int command_run(const char *name)
{
	const struct sim_scenario *scenario = sim_scenario_find(name);

	if (!scenario)
		return no_scenario(name);
	for (int rule = 0; rule < SIM_RULES; rule++) {
		if (options.rule >= 0 && rule != options.rule)
			continue;
		for (uint64_t seed = options.seed; seed < options.seed + options.seeds; seed++) {
			struct sim_outcome o = run_one(scenario, (enum sim_rule)rule, seed, NULL);

			print_outcome(name, (enum sim_rule)rule, &o);
		}
	}
	return 0;
}

struct row {
	struct sim_outcome one, tight, hot, random, health;
};

static void print_row(enum sim_rule rule, const struct row *row)
{
	double n = (double)options.seeds;

	printf("| %s | %.0f s hot | %.0f s hot", rule_texts[rule], row->one.hot_s / n,
		row->tight.hot_s / n);
	if (row->tight.dark_s > 0)
		printf(", %.0f prefix-seconds with no announcer", row->tight.dark_s / n);
	if (row->tight.below_s > 0)
		printf(", %.0f s below the floor", row->tight.below_s / n);
	printf(" | %llu sheds, %.0f s hot", (unsigned long long)row->hot.n_sheds,
		row->hot.hot_s / n);
	if (row->hot.dark_s > 0)
		printf(", %.0f prefix-seconds with no announcer", row->hot.dark_s / n);
	if (rule == SIM_RULE_NONE)
		printf(" | - |\n");
	else
		printf(" | %.1f s below the floor in %llu sheds |\n",
			row->random.below_s + row->health.below_s,
			(unsigned long long)(row->random.n_sheds + row->health.n_sheds));
	fflush(stdout);
}

static int judge(bool good, const char *what)
{
	printf("%s %s\n", good ? "ok  " : "FAIL", what);
	return good ? 0 : 1;
}

static int command_table(bool gate)
{
	struct row rows[SIM_RULES] = {0};
	struct row *ours = &rows[SIM_RULE_GRANT];
	struct sim_outcome steady, upstream;
	double n = (double)options.seeds;
	int failed = 0;

	printf("| rule | one server loses 35 %% | tight site (70 %%), two hot | whole site at 110 "
	       "%% | "
	       "loss, freezes, crashes, cuts |\n| --- | --- | --- | --- | --- |\n");
	for (int i = 0; i < SIM_RULES; i++) {
		enum sim_rule rule = (enum sim_rule)i;
		struct row *row = &rows[i];

		row->one = run_seeds("one", rule, options.seeds);
		row->tight = run_seeds("tight", rule, options.seeds);
		row->hot = run_seeds("hot", rule, options.seeds);
		if (rule != SIM_RULE_NONE)
			row->random = run_sheds("random", rule,
				rule == SIM_RULE_GRANT ? options.sheds * 3 / 4 : NAIVE_SHEDS);
		if (rule == SIM_RULE_GRANT)
			row->health = run_sheds("health", rule, options.sheds / 4);
		print_row(rule, row);
	}
	if (!gate)
		return 0;
	add_bad_seeds(&ours->random);
	upstream = run_seeds("upstream", SIM_RULE_GRANT, options.seeds);
	steady = run_seeds("steady", SIM_RULE_GRANT, options.seeds / 2);
	printf("%llu sheds, %llu departures with permits\n",
		(unsigned long long)(ours->random.n_sheds + ours->health.n_sheds),
		(unsigned long long)ours->health.n_leaves);
	failed += judge(ours->random.below_s + ours->health.below_s + ours->one.below_s +
					ours->tight.below_s ==
				0,
		"never below the floor");
	failed += judge(ours->random.n_sheds + ours->health.n_sheds >= options.sheds,
		"as many random sheds as were asked for");
	failed += judge(ours->health.n_leaves > 0, "some left with permits");
	failed += judge(ours->one.hot_s / n <= 15, "one server: at most 15 s hot");
	failed += judge(ours->tight.hot_s / n <= 790, "tight site: at most 790 s hot");
	failed += judge(ours->hot.n_sheds == 0, "the whole site hot: no sheds");
	failed += judge(upstream.n_leaves == 3 * options.seeds && upstream.n_broken == 0,
		"five that lose an upstream stay, three leave, unheard ones stay");
	failed += judge(steady.n_sheds > 0 && steady.n_late_changes == 0 && steady.n_broken == 0,
		"a constant load: changes, and then rest");
	failed += judge(ours->random.n_broken + ours->health.n_broken + ours->one.n_broken +
					ours->tight.n_broken ==
				0,
		"within the budget, last out first back, nothing stale, no room twice");
	failed += judge(rows[SIM_RULE_ALONE].tight.dark_s > 0 &&
				rows[SIM_RULE_REPORT].random.below_s > 0 &&
				rows[SIM_RULE_RANK].random.below_s > 0,
		"the naive rules do harm, so that the measure is worth something");
	return failed > 0;
}

/* Scenarios outside the table: how long their servers may be hot, of all together, as a mean. */
static const struct claim {
	const char *name;
	double hot_s, hot_least_s;
	bool quiet;	 /* sheds nothing */
	bool may_push;	 /* those to whom nothing was done may be hot for other reasons */
	bool long_alone; /* only with REDSHANK_LONG, and one seed */
} claims[] = {
	{.name = "two", .hot_s = 60}, {.name = "three", .hot_s = 90},
	/* of little use: 1,800 s without shedding, 30 s without loss */
	{.name = "loss", .hot_s = 1400, .hot_least_s = 200},
	{.name = "chaos", .hot_s = 500, .may_push = true}, {.name = "diurnal", .hot_s = 30},
	{.name = "surge", .hot_s = 20},
	{.name = "attack", .hot_s = 4800, .quiet = true, .may_push = true},
	/* 900 s in most without shedding. In seeds 3, 15 and 38 of 40 one prefix is over 30 % of
	   the load (`too_large`), and six small ones spend the budget within 90 s. Seed 3 waits for
	   it at 90 %; the other two stay above that when it is over: what is left is too large,
	   promised, or without room. */
	{.name = "tiers", .hot_s = 200},
	{.name = "thousand", .hot_s = 2000, .long_alone = true}, /* 5,950 s without shedding */
};

static int command_each(void)
{
	int failed = 0;

	for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
		const struct claim *claim = &claims[i];
		uint64_t seeds = claim->long_alone ? 1 : options.seeds;
		struct sim_outcome o;
		double hot_s;

		if (claim->long_alone && !getenv("REDSHANK_LONG"))
			continue;
		o = run_seeds(claim->name, SIM_RULE_GRANT, seeds);
		hot_s = o.hot_s / (double)seeds;
		print_outcome(claim->name, SIM_RULE_GRANT, &o);
		failed += judge(o.below_s == 0 && o.n_broken == 0 &&
					(claim->may_push || o.pushed_s == 0) &&
					(o.n_sheds > 0) == !claim->quiet && hot_s <= claim->hot_s &&
					hot_s >= claim->hot_least_s,
			sim_scenario_find(claim->name)->what);
	}
	return failed > 0;
}

/* Enough to find a fault by, in a second or two. */
static int command_quick(void)
{
	struct sim_outcome random = run_sheds("random", SIM_RULE_GRANT, options.sheds);
	struct sim_outcome health = run_sheds("health", SIM_RULE_GRANT, options.sheds / 4);
	struct sim_outcome tight = run_seeds("tight", SIM_RULE_GRANT, 1);
	struct sim_outcome hot = run_seeds("hot", SIM_RULE_GRANT, 1);

	return judge(random.below_s + health.below_s == 0 && random.n_sheds >= options.sheds &&
			     health.n_leaves > 0 && hot.n_sheds == 0 && tight.hot_s < 790 &&
			     tight.pushed_s == 0 && tight.n_sheds <= 24 &&
			     random.n_broken + health.n_broken + tight.n_broken == 0,
		"floor, budget, order, nobody pushed");
}

/* `only` is NULL for all. */
static int command_plots(const char *folder, const char *only)
{
	if (only && !sim_scenario_find(only))
		return no_scenario(only);
	for (size_t i = 0; i < sim_n_scenarios; i++) {
		char path[4096];
		struct sim_plot *plot;
		int r;

		if (only && strcmp(sim_scenarios[i].name, only) != 0)
			continue;
		plot = sim_plot_new(sim_scenarios[i].what);
		run_one(&sim_scenarios[i], SIM_RULE_GRANT, options.seed, plot);
		snprintf(path, sizeof(path), "%s/%s.svg", folder, sim_scenarios[i].name);
		r = sim_plot_write(plot, path);
		if (r < 0) {
			fprintf(stderr, "sim: %s: %s\n", path, strerror(-r));
			return 1;
		}
	}
	return 0;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: sim list | run SCENARIO | table | gate | each | quick | plots FOLDER "
		"[SCENARIO] [--rule NAME] [--seed N] [--seeds N] [--sheds N]\n");
	return 2;
}

static bool parse_options(int argc, char **argv)
{
	static const struct option longs[] = {
		{"rule", required_argument, NULL, 'r'},
		{"seed", required_argument, NULL, 's'},
		{"seeds", required_argument, NULL, 'n'},
		{"sheds", required_argument, NULL, 'm'},
		{"trace", no_argument, NULL, 't'},
		{NULL, 0, NULL, 0},
	};

	for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
		if (c == 'r') {
			for (int i = 0; i < SIM_RULES; i++)
				options.rule =
					strcmp(optarg, rule_names[i]) == 0 ? i : options.rule;
			if (options.rule < 0)
				return false;
		} else if (c == 's') {
			options.seed = strtoull(optarg, NULL, 0);
		} else if (c == 'n') {
			options.seeds = strtoull(optarg, NULL, 0);
		} else if (c == 'm') {
			options.sheds = strtoull(optarg, NULL, 0);
		} else if (c == 't') {
			options.trace = true;
		} else {
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	const char *command, *argument;

	if (!parse_options(argc, argv) || optind >= argc)
		return usage();
	if (getenv("REDSHANK_LONG")) {
		options.seeds *= 2;
		options.sheds *= 5;
	}
	command = argv[optind];
	argument = optind + 1 < argc ? argv[optind + 1] : NULL;
	if (strcmp(command, "list") == 0) {
		for (size_t i = 0; i < sim_n_scenarios; i++)
			printf("%-10s %s\n", sim_scenarios[i].name, sim_scenarios[i].what);
		return 0;
	}
	if (strcmp(command, "run") == 0 && argument)
		return command_run(argument);
	if (strcmp(command, "table") == 0)
		return command_table(false);
	if (strcmp(command, "gate") == 0)
		return command_table(true);
	if (strcmp(command, "each") == 0)
		return command_each();
	if (strcmp(command, "quick") == 0)
		return command_quick();
	if (strcmp(command, "plots") == 0 && argument)
		return command_plots(argument, optind + 2 < argc ? argv[optind + 2] : NULL);
	return usage();
}
