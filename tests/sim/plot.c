/*
 * SVG for a person to look at: above, the utilisation of each server of the first site with the
 * four limits; below, one row for each server and prefix, black where its agent has it out. The
 * samples lie a second apart.
 */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "tests/sim/sim.h"

#define SERVERS_MAX 20
#define WIDTH 1000.0
#define LEFT 60.0
#define CURVES_TOP 40.0
#define CURVES_HEIGHT 300.0
#define ROWS_TOP 370.0
#define ROW_HEIGHT 4.0

struct sim_plot {
	char title[128];
	size_t n, size, n_servers, n_prefixes;
	double *time;
	float (*utilisation)[SERVERS_MAX];
	uint64_t (*out)[SERVERS_MAX]; /* a bit for each prefix */
	unsigned limits_bp[4];
};

struct sim_plot *sim_plot_new(const char *title)
{
	struct sim_plot *p = calloc(1, sizeof(*p));

	assert(p);
	snprintf(p->title, sizeof(p->title), "%s", title);
	return p;
}

static void plot_grow(struct sim_plot *p)
{
	p->size = p->size * 2 + 256;
	p->time = realloc(p->time, p->size * sizeof(*p->time));
	p->utilisation = realloc(p->utilisation, p->size * sizeof(*p->utilisation));
	p->out = realloc(p->out, p->size * sizeof(*p->out));
	assert(p->time && p->utilisation && p->out);
}

void sim_plot_sample(struct sim_plot *p, const struct sim_world *w)
{
	const struct shed_settings *settings = &w->params.settings;
	double t = (double)w->now_us / SIM_SECOND;

	if (p->n > 0 && t < p->time[p->n - 1] + 1)
		return;
	if (p->n == p->size)
		plot_grow(p);
	p->n_servers = w->params.site < SERVERS_MAX ? w->params.site : SERVERS_MAX;
	p->n_prefixes = w->params.n_prefixes;
	p->limits_bp[0] = settings->release_bp;
	p->limits_bp[1] = settings->target_bp;
	p->limits_bp[2] = settings->accept_bp;
	p->limits_bp[3] = settings->hot_bp;
	p->time[p->n] = t;
	for (size_t i = 0; i < p->n_servers; i++) {
		p->utilisation[p->n][i] =
			sim_is_alive(w, i) ? (float)(w->servers[i].load / w->servers[i].capacity)
					   : 0;
		p->out[p->n][i] = 0;
		for (size_t v = 0; v < p->n_prefixes; v++)
			p->out[p->n][i] |= (uint64_t)w->servers[i].out[v] << v;
	}
	p->n++;
}

static double plot_x(const struct sim_plot *p, double t)
{
	return LEFT + (WIDTH - LEFT - 20) * t / p->time[p->n - 1];
}

static double plot_y(double utilisation)
{
	return CURVES_TOP + CURVES_HEIGHT * (1 - fmin(utilisation, 1.5) / 1.5);
}

static void plot_write_limits(const struct sim_plot *p, FILE *f)
{
	static const char *const words[] = {"release", "target", "accept", "hot"};
	static const double below[] = {10, 0, 8, -2};

	for (size_t k = 0; k < 4; k++) {
		double y = plot_y(p->limits_bp[k] / 10000.0);

		fprintf(f,
			"<line x1='%.0f' x2='%.0f' y1='%.1f' y2='%.1f' stroke='#bbb' "
			"stroke-dasharray='4 4'/>\n<text x='%.0f' y='%.1f' fill='#888'>%s</text>\n",
			LEFT, WIDTH - 20, y, y, WIDTH - 18, y + below[k], words[k]);
	}
	for (int percent = 0; percent <= 150; percent += 50)
		fprintf(f, "<text x='%.0f' y='%.1f' text-anchor='end'>%d %%</text>\n", LEFT - 6,
			plot_y(percent / 100.0) + 4, percent);
}

static void plot_write_curves(const struct sim_plot *p, FILE *f)
{
	for (size_t i = 0; i < p->n_servers; i++) {
		fprintf(f, "<polyline fill='none' stroke='hsl(%zu,70%%,45%%)' points='",
			i * 360 / p->n_servers);
		for (size_t k = 0; k < p->n; k++)
			fprintf(f, "%.1f,%.1f ", plot_x(p, p->time[k]),
				plot_y((double)p->utilisation[k][i]));
		fprintf(f, "'><title>server %zu</title></polyline>\n", i);
	}
}

/* One bar for each stretch of time that a prefix is out. */
static void plot_write_row(const struct sim_plot *p, FILE *f, size_t i, size_t v, double y)
{
	size_t from = SIZE_MAX;

	for (size_t k = 0; k <= p->n; k++) {
		bool out = k < p->n && (p->out[k][i] >> v & 1);

		if (out && from == SIZE_MAX) {
			from = k;
		} else if (!out && from != SIZE_MAX) {
			size_t end = k < p->n ? k : p->n - 1;

			fprintf(f,
				"<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f' "
				"fill='hsl(%zu,70%%,35%%)'><title>server %zu without prefix %zu, "
				"%.0f to %.0f s</title></rect>\n",
				plot_x(p, p->time[from]), y,
				plot_x(p, p->time[end]) - plot_x(p, p->time[from]),
				ROW_HEIGHT - 0.5, i * 360 / p->n_servers, i, v, p->time[from],
				p->time[end]);
			from = SIZE_MAX;
		}
	}
}

static void plot_write_rows(const struct sim_plot *p, FILE *f)
{
	double band = ROW_HEIGHT * (double)p->n_prefixes + 6;

	for (size_t i = 0; i < p->n_servers; i++) {
		double top = ROWS_TOP + band * (double)i;

		fprintf(f,
			"<rect x='%.0f' y='%.1f' width='%.1f' height='%.1f' fill='#f4f4f4'/>\n"
			"<text x='%.0f' y='%.1f' text-anchor='end'>server %zu</text>\n",
			LEFT, top, WIDTH - 20 - LEFT, band - 6, LEFT - 6, top + band / 2, i);
		for (size_t v = 0; v < p->n_prefixes; v++)
			plot_write_row(p, f, i, v, top + ROW_HEIGHT * (double)v);
	}
}

static void plot_free(struct sim_plot *p)
{
	free(p->time);
	free(p->utilisation);
	free(p->out);
	free(p);
}

int sim_plot_write(struct sim_plot *p, const char *path)
{
	_cleanup_fclose_ FILE *f = fopen(path, "we");
	int r = f ? 0 : -errno;
	double height =
		ROWS_TOP + (ROW_HEIGHT * (double)p->n_prefixes + 6) * (double)p->n_servers + 30;

	if (f && p->n > 1) {
		fprintf(f,
			"<svg xmlns='http://www.w3.org/2000/svg' width='%.0f' height='%.0f' "
			"font-family='sans-serif' font-size='11'>\n<rect width='100%%' "
			"height='100%%' "
			"fill='white'/>\n<text x='%.0f' y='22' font-size='15'>%s</text>\n"
			"<text x='%.0f' y='%.0f'>below: what each server has out, a row for each "
			"prefix; %.0f s in all</text>\n",
			WIDTH + 40, height, LEFT, p->title, LEFT, ROWS_TOP - 8, p->time[p->n - 1]);
		plot_write_limits(p, f);
		plot_write_curves(p, f);
		plot_write_rows(p, f);
		fprintf(f, "</svg>\n");
		r = ferror(f) ? -EIO : 0;
	}
	plot_free(p);
	return r;
}
