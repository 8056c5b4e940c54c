/*
 * The plan against a model of BIRD and of everybody else who works on it: whatever was done to it,
 * it comes to do what is wanted within a bounded number of rounds, and it never does the opposite.
 * Numbers P1, P2, ... are those of docs/invariants.md; the model's behaviour is what was measured
 * on BIRD 2.0.12. See property.h for the arguments.
 *
 * The driver plays bird/apply: it makes the fragment true, asks the plan for one step of each
 * protocol a round, carries it out, and knows only what it observed. Strangers configure, disable,
 * enable, restart, break bird.conf and edit fragments; the driver is told, or not.
 */
#include <string.h>

#include "agent/core/plan.h"
#include "tests/scenario/property.h"

#define PROTOCOLS 4
#define BACK_OFF_ROUNDS 3
/* observe, read, configure (refused once, waited for), observe again, none; and one to spare */
#define ROUNDS_TO_CONVERGE (6 + BACK_OFF_ROUNDS)

/* A protocol as the text of a fragment says it, and as BIRD has loaded it. */
struct text {
	bool present;
	bool disabled;
	uint64_t body;
};

struct protocol {
	enum plan_want want;
	uint64_t body;
	struct text file;
	/* the model BIRD's truth */
	struct text loaded;
	bool up;
	/* what the driver knows */
	enum plan_seen seen;
	uint64_t known;
};

struct world {
	uint64_t random;
	struct protocol protocols[PROTOCOLS];
	unsigned n;
	bool broken;		       /* somebody's bird.conf does not parse */
	bool running;		       /* BIRD is there */
	unsigned back_off;	       /* rounds until the driver may configure again */
	struct text queued[PROTOCOLS]; /* parsed earlier, applied when BIRD gets to it */
	unsigned queued_for;	       /* rounds until then; 0: none is queued */
	unsigned n_commands;	       /* that change something */
	uint64_t n_asked;
};

static unsigned pick(struct world *w, unsigned n)
{
	return random_below(&w->random, n);
}

static bool chance(struct world *w, unsigned percent)
{
	return random_chance(&w->random, percent);
}

static const char *want_name(enum plan_want want)
{
	static const char *const names[] = {"gone", "down", "up"};

	return names[want];
}

/* ---- the model BIRD ---- */

/* conf/conf.c and nest/proto.c of BIRD: what the text says, a `disable` by hand is forgotten. */
static void bird_load(struct protocol *p, const struct text *text)
{
	p->loaded = *text;
	p->up = text->present && !text->disabled;
}

static void bird_start(struct world *w)
{
	w->running = !w->broken;
	w->queued_for = 0;
	for (unsigned i = 0; i < w->n; i++) {
		struct protocol *p = &w->protocols[i];
		struct text nothing = {0};

		bird_load(p, w->running ? &p->file : &nothing);
	}
}

/* Returns false when it is refused. */
static bool bird_configure(struct world *w)
{
	if (w->broken)
		return false;
	for (unsigned i = 0; i < w->n; i++) {
		if (w->queued_for > 0)
			w->queued[i] = w->protocols[i].file;
		else
			bird_load(&w->protocols[i], &w->protocols[i].file);
	}
	return true;
}

/* A configuration that was queued comes to life as it was parsed. Returns true when it did. */
static bool bird_work(struct world *w)
{
	if (w->queued_for == 0 || --w->queued_for > 0)
		return false;
	for (unsigned i = 0; i < w->n; i++)
		bird_load(&w->protocols[i], &w->queued[i]);
	property_trace("  the queued configuration comes to life\n");
	return true;
}

/* ---- the driver: what bird/apply does ---- */

static void driver_forget(struct world *w)
{
	for (unsigned i = 0; i < w->n; i++) {
		w->protocols[i].seen = PLAN_SEEN_UNKNOWN;
		w->protocols[i].known = PLAN_BODY_UNKNOWN;
	}
}

static void driver_write_fragment(struct world *w)
{
	for (unsigned i = 0; i < w->n; i++) {
		struct protocol *p = &w->protocols[i];

		p->file.present = p->want != PLAN_WANT_GONE;
		p->file.disabled = p->want != PLAN_WANT_UP;
		p->file.body = p->body;
	}
}

static void driver_configure(struct world *w)
{
	bool loaded = bird_configure(w);

	if (!loaded) {
		w->back_off = BACK_OFF_ROUNDS;
		return;
	}
	for (unsigned i = 0; i < w->n; i++) {
		w->protocols[i].seen = PLAN_SEEN_UNKNOWN;
		/* Known only when it was ours that settled. */
		w->protocols[i].known =
			w->queued_for > 0 ? PLAN_BODY_UNKNOWN : w->protocols[i].file.body;
	}
}

static void driver_observe(const struct world *w, struct protocol *p)
{
	if (!w->running)
		return;
	if (!p->loaded.present)
		p->seen = PLAN_SEEN_ABSENT;
	else
		p->seen = p->up ? PLAN_SEEN_UP : PLAN_SEEN_DOWN;
}

/* Commands are told to BIRD whatever it is by now: knowledge may be old. */
static void driver_command(struct world *w, struct protocol *p, bool up)
{
	w->n_commands++;
	if (p->loaded.present)
		p->up = up;
	p->seen = PLAN_SEEN_UNKNOWN;
}

/* Of several prefixes some are to be out: so of some of the bodies. */
static bool is_partial(const struct protocol *p)
{
	return p->body % 3 == 0;
}

static void require_sane(const struct world *w, const struct protocol *p, enum plan_step step)
{
	bool refused = w->back_off > 0;

	property_require("P1", step != PLAN_STEP_ENABLE || p->want == PLAN_WANT_UP,
		"enable of what is wanted %s", want_name(p->want));
	property_require("P1", step != PLAN_STEP_DISABLE || p->want != PLAN_WANT_UP,
		"disable of what is wanted up");
	property_require("P2",
		p->want == PLAN_WANT_UP || p->seen != PLAN_SEEN_UP || step == PLAN_STEP_DISABLE,
		"wanted %s, seen up, and the step is %s", want_name(p->want), plan_step_name(step));
	property_require("P4", step != PLAN_STEP_CONFIGURE || !refused,
		"configure within the back-off of a refused one");
	property_require("P4", step != PLAN_STEP_WAIT || refused, "waiting for no back-off");
	property_require("P7", step != PLAN_STEP_ENABLE || refused || p->known == p->body,
		"enabled with an old text though BIRD can be configured");
	property_require("P8", step != PLAN_STEP_ENABLE || !is_partial(p) || p->known == p->body,
		"enabled with another text though not all of its prefixes are wanted");
}

static void driver_step(struct world *w, struct protocol *p)
{
	struct plan_bird bird = {.configure_refused = w->back_off > 0};
	struct plan_protocol asked = {p->want, p->body, p->seen, p->known, is_partial(p), false};
	enum plan_step step = plan_next(&asked, &bird);

	w->n_asked++;
	require_sane(w, p, step);
	property_trace("  %u: wanted %s, seen %d, known %u of %u: %s\n",
		(unsigned)(p - w->protocols), want_name(p->want), (int)p->seen, (unsigned)p->known,
		(unsigned)p->body, plan_step_name(step));
	switch (step) {
	case PLAN_STEP_NONE:
	case PLAN_STEP_WAIT:
		return;
	case PLAN_STEP_OBSERVE:
		driver_observe(w, p);
		return;
	case PLAN_STEP_READ:
		if (p->loaded.present && p->up)
			p->known = p->loaded.body;
		else
			p->seen = PLAN_SEEN_UNKNOWN;
		return;
	case PLAN_STEP_DISABLE:
		driver_command(w, p, false);
		return;
	case PLAN_STEP_ENABLE:
		driver_command(w, p, true);
		return;
	case PLAN_STEP_CONFIGURE:
		w->n_commands++;
		driver_configure(w);
		return;
	}
}

static void driver_round(struct world *w)
{
	if (bird_work(w))
		driver_forget(w);
	driver_write_fragment(w);
	for (unsigned i = 0; i < w->n && w->running; i++)
		driver_step(w, &w->protocols[i]);
	if (w->back_off > 0)
		w->back_off--;
}

/* ---- everybody else ---- */

static void want_something(struct world *w)
{
	struct protocol *p = &w->protocols[pick(w, w->n)];

	p->want = (enum plan_want)pick(w, 3);
	if (chance(w, 40))
		p->body = 1 + pick(w, 3);
	property_trace("want %u %s, body %u\n", (unsigned)(p - w->protocols), want_name(p->want),
		(unsigned)p->body);
}

static void edit_fragment(struct world *w)
{
	struct protocol *p = &w->protocols[pick(w, w->n)];

	p->file = (struct text){chance(w, 70), chance(w, 50), 1 + pick(w, 3)};
	property_trace("somebody edits the fragment of %u\n", (unsigned)(p - w->protocols));
}

static void queue_configure(struct world *w)
{
	if (w->broken || !w->running)
		return;
	for (unsigned i = 0; i < w->n; i++)
		w->queued[i] = w->protocols[i].file;
	w->queued_for = 1 + pick(w, 4);
	property_trace("somebody's configure is queued for %u rounds\n", w->queued_for);
}

static void disturb(struct world *w)
{
	struct protocol *p = &w->protocols[pick(w, w->n)];

	switch (pick(w, 8)) {
	case 0:
	case 1:
		want_something(w);
		return;
	case 2:
		edit_fragment(w);
		return;
	case 3:
		queue_configure(w);
		break;
	case 4:
		property_trace("somebody configures\n");
		if (w->running)
			(void)bird_configure(w);
		break;
	case 5:
		p->up = p->loaded.present && chance(w, 50);
		property_trace("somebody makes %u %s\n", (unsigned)(p - w->protocols),
			p->up ? "up" : "down");
		break;
	case 6:
		w->broken = !w->broken;
		property_trace("bird.conf is %s\n", w->broken ? "broken" : "repaired");
		return;
	case 7:
		property_trace("BIRD restarts\n");
		bird_start(w);
		break;
	}
	if (chance(w, 70))
		driver_forget(
			w); /* '+' lines and a lost connection tell; otherwise the timer will */
}

/* ---- what must be true in the end ---- */

/* P3 and P5. `loadable`: BIRD takes configurations. */
static void require_converged(const struct world *w, bool loadable)
{
	for (unsigned i = 0; i < w->n; i++) {
		const struct protocol *p = &w->protocols[i];

		if (p->want != PLAN_WANT_UP)
			property_require(loadable ? "P3" : "P5", !p->up, "%u is up, wanted %s", i,
				want_name(p->want));
		else if (loadable || (p->loaded.present && (!is_partial(p) || p->known == p->body)))
			property_require(loadable ? "P3" : "P5", p->up, "%u is not up", i);
		if (!loadable)
			continue;
		property_require("P3", p->want != PLAN_WANT_UP || p->loaded.body == p->body,
			"%u is up with an old text", i);
		property_require("P3", p->loaded.present == (p->want != PLAN_WANT_GONE),
			"%u is wanted %s and BIRD has %s of it", i, want_name(p->want),
			p->loaded.present ? "a protocol" : "nothing");
	}
}

/* P6: with everything true, another look at BIRD brings no command. */
static void require_quiet(struct world *w)
{
	unsigned before = w->n_commands;

	driver_forget(w);
	for (unsigned i = 0; i < ROUNDS_TO_CONVERGE; i++)
		driver_round(w);
	property_require("P6", w->n_commands == before, "%u commands though all was true",
		w->n_commands - before);
}

static void settle(struct world *w)
{
	bool loadable = chance(w, 70);

	property_trace("quiet, bird.conf is %s\n", loadable ? "sound" : "broken");
	w->broken = !loadable;
	if (loadable && !w->running)
		bird_start(w);
	while (w->queued_for > 0)
		driver_round(w);
	driver_forget(w); /* the slow timer */
	for (unsigned i = 0; i < ROUNDS_TO_CONVERGE; i++)
		driver_round(w);
	if (w->running)
		require_converged(w, loadable);
	if (loadable)
		require_quiet(w);
}

static uint64_t sequence(uint64_t seed)
{
	struct world w = {.random = seed, .running = true};
	unsigned steps;

	w.n = 1 + pick(&w, PROTOCOLS);
	for (unsigned i = 0; i < w.n; i++) {
		struct text loaded = {chance(&w, 60), chance(&w, 50), 1 + pick(&w, 3)};

		w.protocols[i].want = (enum plan_want)pick(&w, 3);
		w.protocols[i].body = 1 + pick(&w, 3);
		bird_load(&w.protocols[i], &loaded);
	}
	driver_write_fragment(&w);
	steps = pick(&w, 24);
	for (unsigned i = 0; i < steps; i++) {
		if (chance(&w, 60))
			disturb(&w);
		driver_round(&w);
	}
	settle(&w);
	return w.n_asked;
}

const struct property_program property_program = {"plan", sequence};
