/* What happens to a site: the columns of the table, and others. */
#include <math.h>
#include <string.h>

#include "tests/sim/sim.h"

const unsigned sim_shares[SIM_SHARES][16] = {
	{103414, 78453, 45464, 38983, 50569, 44714, 84190, 40518, 48448, 55874, 143718, 50147,
		39756, 78021, 59023, 38709},
	{37371, 110588, 84147, 41048, 52365, 49590, 66003, 90227, 36318, 34768, 105609, 48671,
		83816, 34193, 49360, 75926},
	{112978, 101517, 16624, 16944, 49526, 36847, 32037, 20180, 28689, 28728, 27618, 17854,
		22795, 21912, 35760, 429991},
	{21818, 30083, 24572, 32842, 34025, 19206, 18563, 57307, 22209, 21753, 550379, 27384, 57086,
		27583, 34806, 20387},
	{39883, 36079, 46193, 37446, 35187, 46460, 160849, 92294, 83363, 39429, 54516, 41269, 37945,
		36155, 39192, 173740},
	{43954, 55692, 64371, 142317, 55439, 117993, 24337, 35349, 143736, 45967, 101330, 25757,
		35492, 28519, 39020, 40725},
};

static void degrade(struct sim_world *w, size_t server, double t, double factor)
{
	struct sim_server *s = &w->servers[server];

	s->touched = true;
	s->capacity = s->capacity0 * (t > 300 && t < 1200 ? factor : 1);
}

static void job(struct sim_world *w, size_t server, double t, double load)
{
	struct sim_server *s = &w->servers[server];

	s->touched = true;
	s->background = 5 + (t > 300 && t < 1200 ? load : 0);
}

static void one_degrades(struct sim_world *w, double t)
{
	degrade(w, 0, t, 0.65);
}

static void two_degrade(struct sim_world *w, double t)
{
	degrade(w, 0, t, 0.65);
	degrade(w, 1, t, 0.65);
}

static void three_degrade(struct sim_world *w, double t)
{
	two_degrade(w, t);
	degrade(w, 2, t, 0.65);
}

static void two_jobs(struct sim_world *w, double t)
{
	job(w, 0, t, 30);
	job(w, 1, t, 30);
}

static void diurnal(struct sim_world *w, double t)
{
	w->factor = 1 + 0.25 * sin(2 * 3.14159265 * t / 900);
	degrade(w, 0, t, 0.65);
}

static void surge(struct sim_world *w, double t)
{
	w->prefix_factor[3] = t > 600 && t < 1500 ? 2.5 : 1;
	degrade(w, 0, t, 0.65);
}

/* One prefix is attacked: ten times its load, everywhere. */
static void attack(struct sim_world *w, double t)
{
	w->prefix_factor[1] = t > 300 && t < 900 ? 10 : 1;
}

static void a_tenth_degrades(struct sim_world *w, double t)
{
	for (size_t i = 0; i < w->n; i += 10)
		degrade(w, i, t * 5, 0.65);
}

/* For ever, so that there must be an end to changes. */
static void for_ever(struct sim_world *w, double t)
{
	degrade(w, 0, t > 60 ? 600 : 0, 0.65);
	job(w, 1, t > 60 ? 600 : 0, 30);
}

static void set_steady(struct sim_params *p)
{
	p->total = 0.62;
	p->duration_s = 7200;
	p->events = for_ever;
}

static unsigned n_left(const struct sim_world *w)
{
	unsigned n = 0;

	for (size_t i = 0; i < w->n; i++)
		n += w->servers[i].left[0];
	return n;
}

static void fail_upstream(struct sim_world *w, size_t n)
{
	for (size_t i = 0; i < w->n; i++)
		w->servers[i].sick[0] = i < n;
}

/* Five that lose one upstream within a second all stay; three of five do leave; and when no report
 * arrives nobody takes the others for healthy. */
static void upstream(struct sim_world *w, double t)
{
	unsigned left = n_left(w);

	fail_upstream(w, t < 100 ? 0 : t < 200 ? 5 : t < 300 ? 0 : t < 400 ? 3 : t < 500 ? 0 : 3);
	for (size_t i = 0; i < w->n && t >= 490; i++)
		w->servers[i].cut_to_until = w->now_us + SIM_SECOND;
	w->outcome.n_broken += t < 300 && left > 0;
	w->outcome.n_broken += t > 330 && t < 400 && left != 3;
	w->outcome.n_broken += t > 410 && left > 0;
}

static void set_upstream(struct sim_params *p)
{
	p->n_servers = p->site = 5;
	p->n_prefixes = 2;
	p->total = 0.3;
	p->duration_s = 600;
	p->health = true;
	p->events = upstream;
}

static void set_one(struct sim_params *p)
{
	p->total = 0.60;
	p->events = one_degrades;
}

static void set_tight(struct sim_params *p)
{
	p->total = 0.70;
	p->events = two_jobs;
}

static void set_hot(struct sim_params *p)
{
	p->total = 1.10;
}

static void set_two(struct sim_params *p)
{
	p->total = 0.60;
	p->events = two_degrade;
}

static void set_three(struct sim_params *p)
{
	p->total = 0.58;
	p->events = three_degrade;
}

static void set_loss(struct sim_params *p)
{
	set_two(p);
	p->loss = 0.3;
	p->delay_s = 0.5;
}

static void set_chaos(struct sim_params *p)
{
	set_two(p);
	p->loss = 0.1;
	p->delay_s = 0.3;
	p->chaos_s = 120;
}

static void set_diurnal(struct sim_params *p)
{
	p->total = 0.55;
	p->events = diurnal;
}

static void set_surge(struct sim_params *p)
{
	p->total = 0.55;
	p->events = surge;
}

static void set_attack(struct sim_params *p)
{
	p->total = 0.55;
	p->events = attack;
}

static void set_tiers(struct sim_params *p)
{
	set_one(p);
	p->tiers = true;
}

static void set_thousand(struct sim_params *p)
{
	p->n_servers = 1000;
	p->site = 20;
	p->total = 0.60;
	p->duration_s = 120;
	p->step_s = 0.5;
	p->events = a_tenth_degrades;
}

/*
 * Nothing but trouble: loads that jump between hot and cool, short times, a faulty server every few
 * seconds, a network that loses and delays; 3 to 5 servers, floors 1 to 3.
 */
static void set_random(struct sim_params *p)
{
	static const struct {
		size_t servers, prefixes;
		unsigned floor;
	} sizes[] = {{3, 2, 1}, {3, 3, 2}, {4, 3, 2}, {5, 3, 3}};
	size_t size = p->seed % 4;

	p->n_servers = p->site = sizes[size].servers;
	p->n_prefixes = sizes[size].prefixes;
	p->floor = sizes[size].floor;
	p->total = 0.5;
	p->loss = p->seed / 4 % 2 ? 0.4 : 0.1;
	p->delay_s = p->seed / 8 % 2 ? 0.6 : 0.1;
	p->chaos_s = 25;
	p->duration_s = 1200;
	p->random_load = true;
	p->settings.over_ms = 1000;
	p->settings.rank_ms = 500;
	p->settings.visible_ms = 1500;
	p->settings.settle_ms = 2000;
	p->settings.under_ms = 2000;
	p->settings.release_gap_ms = 4000;
	p->settings.back_off_ms = 3000;
	p->settings.back_off_max_ms = 6000;
	p->settings.wait_min_ms = 500;
	p->settings.wait_max_ms = 3000;
	p->settings.leave_alone_ms = 3000;
	p->settings.prefix_changes = 8;
	p->settings.prefix_window_ms = 30000;
	p->settings.server_changes = 32;
	p->settings.server_window_ms = 60000;
	p->settings.site_hot_bp = 10000;
	p->settings.fresh_bp = 0;
}

/* The same with services that fail: the floor for health. */
static void set_health(struct sim_params *p)
{
	set_random(p);
	p->health = true;
}

const struct sim_scenario sim_scenarios[] = {
	{"one", "one server of eight loses 35 % of its capacity", set_one},
	{"tight", "a tight site (70 %), two servers get a job of 30 %", set_tight},
	{"hot", "the whole site at 110 %", set_hot},
	{"two", "two servers lose 35 %", set_two},
	{"three", "three servers lose 35 %", set_three},
	{"steady", "one loses 35 %, one gets a job of 30 %, for ever", set_steady},
	{"loss", "two lose 35 %; 30 % of messages lost, half a second late", set_loss},
	{"chaos", "two lose 35 %; freezes, crashes, cuts, loss", set_chaos},
	{"diurnal", "load goes up and down by 25 %, one server loses 35 %", set_diurnal},
	{"surge", "one prefix 2.5 times its load, one server loses 35 %", set_surge},
	{"attack", "one prefix ten times its load", set_attack},
	{"tiers", "a third announces at a worse weight, one server loses 35 %", set_tiers},
	{"thousand", "1,000 servers at 50 sites, a tenth loses 35 %", set_thousand},
	{"upstream", "five lose an upstream, then three, then three unheard", set_upstream},
	{"random", "loads that jump, faults without end", set_random},
	{"health", "the same, with services that fail and a floor for health", set_health},
};
const size_t sim_n_scenarios = sizeof(sim_scenarios) / sizeof(sim_scenarios[0]);

const struct sim_scenario *sim_scenario_find(const char *name)
{
	for (size_t i = 0; i < sim_n_scenarios; i++) {
		if (strcmp(sim_scenarios[i].name, name) == 0)
			return &sim_scenarios[i];
	}
	return NULL;
}
