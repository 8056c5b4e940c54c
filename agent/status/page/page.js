
"use strict";
/*
 * What is shown is what /v1/status says, asked again after every event and at a slow pace of its
 * own. Names, reasons and BIRD's words are other people's text: they become text nodes and nothing
 * else. A node is touched only when what it shows has changed.
 */
(() => {
const SLOW_MS = 2000; /* between questions while events come, and more where the answer is long */
const ALONE_MS = 1000; /* where they do not */
const AFTER_EVENT_MS = 60;
const AT_LEAST_MS = 250; /* between two questions */
const ASK_TIMEOUT_MS = 10000;
const BACKOFF_MS = [500, 1000, 2000, 4000, 8000, 15000];
const MOVING_MS = 250; /* between questions while BIRD is not yet where it should be, or was not just now */
const CHANGES_MARKED = 40; /* prefixes that are marked as new at once: more would be a flicker */
const EVENTS_KEPT = 200;
const OPEN_BELOW = 60; /* prefixes: then services that are well are open, too */
const GLYPHS = {good: "\u25cf", look: "\u25b2", trouble: "\u25a0", unknown: "\u25cb", out: "\u25bd"};
const WORDS = {good: "", look: "Look:", trouble: "TROUBLE:", unknown: "Not judged:"};
const RANKS = {trouble: 0, look: 1, unknown: 2, good: 3};
const COLOURS = {good: "%2317734a", look: "%23b87503", trouble: "%23c5281f", unknown: "%237b8790"};
const SVG = "http://www.w3.org/2000/svg";
const ETAG = document.documentElement.dataset.etag;

const $ = id => document.getElementById(id);
const list = value => Array.isArray(value) ? value : [];
const object = value => value && typeof value === "object" && !Array.isArray(value) ? value : {};
const entries = value => Object.entries(object(value));
const objects = value => entries(value).map(([key, inner]) => [key, object(inner)]);
const levelOf = thing => Object.hasOwn(RANKS, thing.level) ? thing.level : "unknown";
const worst = (a, b) => RANKS[a] <= RANKS[b] ? a : b;
const plural = (n, word) => n + " " + word + (n === 1 ? "" : "s");

/* ---- nodes that are only touched when they change ---- */

function text(node, value) {
	const s = value === null || value === undefined ? "" : String(value);
	if (node.shown === s)
		return false;
	node.shown = s;
	node.textContent = s;
	return true;
}

function attribute(node, name, value) {
	if (node.getAttribute(name) === value)
		return;
	node.setAttribute(name, value);
}

function make(tag, attributes, ...children) {
	const node = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes || {}))
		node.setAttribute(name, value);
	node.append(...children);
	return node;
}

function draw(tag, attributes, ...children) {
	const node = document.createElementNS(SVG, tag);
	for (const [name, value] of Object.entries(attributes))
		node.setAttribute(name, value);
	node.append(...children);
	return node;
}

/* The children of `parent` in this order, moving as few as possible: what moves has to be drawn again, and
 * loses the focus, which is given back. */
function order(parent, nodes) {
	const focused = document.activeElement;
	let at = parent.firstElementChild;
	for (const node of nodes) {
		if (at && at !== node && at.nextElementSibling === node) {
			parent.append(at); /* it has sunk; its turn comes */
			at = node;
		}
		if (at === node)
			at = node.nextElementSibling;
		else
			parent.insertBefore(node, at);
	}
	if (focused !== document.activeElement && parent.contains(focused))
		focused.focus({preventScroll: true});
}

/* A list of keyed nodes: made, updated, removed. */
function keyed(map, items, create, update) {
	const seen = new Set();
	for (const [key, value] of items) {
		let node = map.get(key);
		if (!node) {
			node = create(key);
			map.set(key, node);
		}
		seen.add(key);
		update(node, value, key);
	}
	for (const [key, node] of map)
		if (!seen.has(key)) {
			node.row.remove();
			map.delete(key);
		}
}

/* ---- time ---- */

let skew = 0; /* of the agent's clock to ours */
let changes = 0; /* of a prefix's state, in this document */


function age(ms) {
	const s = Math.max(0, ms) / 1000;
	if (s < 10)
		return "just now";
	if (s < 60)
		return Math.floor(s / 10) * 10 + " s";
	if (s < 3600)
		return Math.floor(s / 60) + " min";
	if (s < 172800)
		return Math.floor(s / 3600) + " h";
	return Math.floor(s / 86400) + " d";
}

function since(node, stamp) {
	const at = Date.parse(stamp);
	if (node.at !== at) {
		node.at = at;
		attribute(node, "datetime", Number.isNaN(at) ? "" : stamp);
		attribute(node, "title", Number.isNaN(at) ? "" : new Date(at).toLocaleString());
	}
	tell(node);
}

function tell(node) {
	text(node, Number.isNaN(node.at) ? "\u2013" : age(Date.now() + skew - node.at));
}

function clock(ms) {
	const d = new Date(ms);
	return [d.getHours(), d.getMinutes(), d.getSeconds()].map(n => String(n).padStart(2, "0")).join(":");
}

/* To the minute, and the day where it is another one. */
function moment(stamp) {
	const at = new Date(stamp), today = at.toDateString() === new Date().toDateString();
	return at.toLocaleString(undefined, {hour: "2-digit", minute: "2-digit",
		...today ? {} : {day: "numeric", month: "short", year: "numeric"}});
}

function until(word) {
	return word.until ? "until " + moment(word.until) : "until it is taken back";
}

/* ---- a prefix ---- */

function prefixState(prefix, bird) {
	if (prefix.wanted === "withdraw") {
		if (prefix.elsewhere)
			return "STILL ANNOUNCED by " + prefix.elsewhere;
		if (prefix.announced || prefix.exported > 0)
			return "STILL ANNOUNCED";
		return prefix.announced === null ? "not known" : "withdrawn";
	}
	if (prefix.announced === null)
		return "not known";
	if (!prefix.announced)
		return prefix.elsewhere ? "NOT ANNOUNCED, but by " + prefix.elsewhere : "NOT ANNOUNCED";
	if (prefix.elsewhere)
		return "REPLACED by " + prefix.elsewhere;
	if (prefix.exported === 0 && bird.sessions > 0)
		return "exported NOWHERE";
	return prefix.wanted === "demote" ? "demoted" : "announced";
}

function prefixReason(prefix) {
	const drain = prefix.drain;
	if (!drain)
		return String(prefix.reason).replaceAll("_", " ");
	return "drained" + (drain.reason ? ": " + drain.reason : "") + ", " + until(drain);
}

const PREFIX_CELLS = [["wanted", "Wanted"], ["announced", "Announced"], ["exported", "Exported"],
	["weight", "Weight"], ["reason", "Reason"]];
const CHECK_CELLS = ["outcomes", "latency", "reason"];

function stateCell() {
	const glyph = make("span", {class: "glyph", "aria-hidden": "true"});
	const word = make("span");
	const cell = make("td", {class: "state"}, glyph, " ", word);
	return {cell, glyph, word};
}

function showState(node, level, word) {
	attribute(node.row, "data-level", level);
	attribute(node.state.cell, "class", "state " + level);
	text(node.state.glyph, GLYPHS[level]);
	return text(node.state.word, word);
}

function sinceCell() {
	const time = make("time");
	return [time, make("td", {class: "since", "data-label": "for"}, time)];
}

function makePrefix(key) {
	const node = {state: stateCell(), cells: {}, haystack: ""};
	node.row = make("tr", {"data-prefix": key}, node.state.cell, make("th", {scope: "row", class: "name"}, key));
	for (const [name, label] of PREFIX_CELLS) {
		node.cells[name] = make("span");
		node.row.append(make("td", {class: name, "data-label": label.toLowerCase()}, node.cells[name]));
	}
	const [time, cell] = sinceCell();
	node.time = time;
	node.row.append(cell);
	return node;
}

function tri(value) {
	return value === null || value === undefined ? "?" : value ? "yes" : "no";
}

function updatePrefix(node, prefix, bird) {
	const level = levelOf(prefix), state = prefixState(prefix, bird);
	const was = node.state.word.shown;
	node.level = level;
	node.changed = Date.parse(prefix.since) || 0;
	node.data = prefix;
	node.haystack = (state + " " + prefix.wanted + " " + prefixReason(prefix) + " " + level).toLowerCase();
	/* Withdrawn as it should be is neither well nor trouble to who reads the row. */
	const look = level === "good" && prefix.wanted === "withdraw" ? "out" : level;
	if (showState(node, look, state) && was !== undefined && changes++ < CHANGES_MARKED)
		node.row.className = node.row.className === "new-a" ? "new-b" : "new-a";
	text(node.cells.wanted, prefix.wanted);
	text(node.cells.announced, tri(prefix.announced));
	text(node.cells.exported, prefix.exported === null ? "?" : prefix.exported);
	text(node.cells.weight, prefix.weight);
	text(node.cells.reason, prefixReason(prefix));
	since(node.time, prefix.since);
}

/* ---- a check ---- */

const OUTCOMES = ["good", "bad", "gone", "unknown"];

function bars() {
	const paths = {};
	const svg = draw("svg", {class: "outcomes", viewBox: "0 0 128 18", role: "img", "aria-label": "no outcome yet"});
	for (const outcome of OUTCOMES) {
		paths[outcome] = draw("path", {class: {good: "g", bad: "b", gone: "x", unknown: "u"}[outcome], d: ""});
		svg.append(paths[outcome]);
	}
	return {svg, paths};
}

/* Good is low, bad is high, gone is high and broken, unknown a dot: told apart without colour. */
function bar(outcome, x) {
	switch (outcome) {
	case "good": return "M" + x + " 9h3v8h-3z";
	case "bad": return "M" + x + " 1h3v16h-3z";
	case "gone": return "M" + x + " 1h3v6h-3zM" + x + " 11h3v6h-3z";
	default: return "M" + x + " 7h3v3h-3z";
	}
}

function updateBars(node, outcomes) {
	const key = outcomes.join();
	if (node.key === key)
		return;
	node.key = key;
	const d = {}, n = {};
	for (const outcome of OUTCOMES)
		d[outcome] = "", n[outcome] = 0;
	outcomes.forEach((outcome, i) => {
		const kind = OUTCOMES.includes(outcome) ? outcome : "unknown";
		d[kind] += bar(kind, (32 - outcomes.length + i) * 4);
		n[kind]++;
	});
	for (const outcome of OUTCOMES)
		attribute(node.paths[outcome], "d", d[outcome]);
	attribute(node.svg, "aria-label", outcomes.length === 0 ? "no outcome yet" :
		"last " + outcomes.length + " outcomes: " +
		OUTCOMES.filter(o => n[o]).map(o => n[o] + " " + o).join(", ") + "; newest " + outcomes.at(-1));
}

function spark() {
	const area = draw("path", {class: "a", d: ""}), line = draw("path", {class: "l", d: ""});
	const svg = draw("svg", {class: "latency", viewBox: "0 0 96 18", preserveAspectRatio: "none",
		role: "img", "aria-label": "no latency yet"}, area, line);
	return {svg, area, line};
}

function took(us) {
	if (us < 1000)
		return us + " \u00b5s";
	if (us < 1e6)
		return (us / 1000).toPrecision(us < 1e5 ? 2 : 3) + " ms";
	return (us / 1e6).toPrecision(3) + " s";
}

function updateSpark(node, durations) {
	const key = durations.join();
	if (node.key === key)
		return;
	node.key = key;
	const known = durations.filter(us => us > 0);
	if (known.length === 0)
		return;
	const top = Math.max(...known), low = Math.min(...known);
	let line = "", area = "", start = null, last = null;
	const end = () => {
		if (start !== null)
			area += "L" + last + " 18L" + start + " 18z";
		start = null;
	};
	durations.forEach((us, i) => {
		if (!(us > 0)) {
			end();
			return;
		}
		const x = ((32 - durations.length + i) * 96 / 31).toFixed(1), y = (16.5 - 15 * us / top).toFixed(1);
		line += (start === null ? "M" : "L") + x + " " + y;
		area += (start === null ? "M" + x + " 18L" : "L") + x + " " + y;
		if (start === null)
			start = x;
		last = x;
	});
	end();
	attribute(node.line, "d", line);
	attribute(node.area, "d", area);
	attribute(node.svg, "aria-label", "latency of the last " + known.length + ": " + took(low) + " to " + took(top));
}

function makeCheck(key) {
	const node = {state: stateCell(), bars: bars(), spark: spark(), haystack: ""};
	node.last = make("span");
	node.reason = make("span");
	node.row = make("tr", {"data-check": key}, node.state.cell, make("th", {scope: "row", class: "name"}, key));
	const inside = {outcomes: [node.bars.svg], latency: [node.spark.svg, node.last], reason: [node.reason]};
	for (const name of CHECK_CELLS)
		node.row.append(make("td", {class: name}, ...inside[name]));
	const [time, cell] = sinceCell();
	node.time = time;
	node.row.append(cell);
	return node;
}

function checkLevel(check) {
	return check.state === "down" ? "trouble" : check.state === "up" ? "good" : "unknown";
}

function updateCheck(node, check, key) {
	node.haystack = (key + " " + check.state + " " + (check.reason || "")).toLowerCase();
	showState(node, checkLevel(check), check.state);
	updateBars(node.bars, list(check.outcomes));
	updateSpark(node.spark, list(check.durations_us));
	const last = list(check.durations_us).at(-1) || check.duration_us;
	text(node.last, last > 0 ? took(last) : "");
	text(node.reason, check.reason);
	since(node.time, check.since);
}

/* ---- a service ---- */

const services = new Map();

function table(kind, caption, heads) {
	const body = make("tbody");
	const head = make("tr");
	for (const [name, label] of heads)
		head.append(make("th", {scope: "col", class: name}, label));
	const whole = make("table", {class: kind},
		make("caption", {class: "unseen"}, caption), make("thead", null, head), body);
	return {whole, body};
}

function makeService(key) {
	const node = {key, prefixes: new Map(), checks: new Map(), touched: false};
	node.glyph = make("span", {class: "glyph", "aria-hidden": "true"});
	node.health = make("span");
	node.sum = make("span", {class: "sum"});
	node.why = make("span", {class: "why"});
	node.inside = make("div", {class: "inside"});
	node.repair = make("p", {class: "repair"});
	node.prefixTable = table("prefixes", "Prefixes of " + key, [["state", "State"], ["name", "Prefix"],
		...PREFIX_CELLS, ["since", "For"]]);
	node.checkTable = table("checks", "Checks of " + key, [["state", "State"], ["name", "Check"],
		["outcomes", "Outcomes"], ["latency", "Latency"], ["reason", "Said last"], ["since", "For"]]);
	node.inside.append(node.repair, node.checkTable.whole, node.prefixTable.whole);
	node.summary = make("summary", null, node.glyph, make("h3", null, key), node.health, node.sum, node.why);
	node.row = make("details", {class: "service", "data-service": key}, node.summary, node.inside);
	node.summary.addEventListener("click", () => { node.touched = true; });
	node.row.addEventListener("toggle", () => { if (node.row.open) showInside(node); });
	return node;
}

function whyText(service) {
	const parts = [];
	for (const [name, check] of objects(service.checks))
		if (check.state === "down")
			parts.push(name + " is down" + (check.reason ? ": " + check.reason : ""));
	return parts.slice(0, 3).join("; ") + (parts.length > 3 ? "; and " + (parts.length - 3) + " more" : "");
}

/* What the agent does about a dead unit; nothing while there is nothing to do. */
function repairText(repair) {
	if (!repair || repair.state === "idle")
		return "";
	return "Restart of " + repair.unit + ": " + repair.state + ", " +
		repair.attempts + " of " + plural(repair.limit, "attempt") + " made" +
		(repair.last_result ? ", the last one " + repair.last_result.replaceAll("_", " ") : "") +
		(repair.next ? ", looked at again at " + clock(Date.parse(repair.next)) : "") +
		(repair.text ? ": " + repair.text : "");
}

function updateService(node, service, bird, few) {
	const prefixes = objects(service.prefixes), checks = objects(service.checks);
	const level = levelOf(service);
	node.data = service;
	node.bird = bird;
	node.level = level;
	node.out = prefixes.filter(([, p]) => p.announced !== true).length;
	attribute(node.row, "data-level", level);
	attribute(node.glyph, "class", "glyph " + level);
	text(node.glyph, GLYPHS[level]);
	attribute(node.health, "class", service.health === "healthy" ? "good" :
		service.health === "unhealthy" ? "trouble" : "unknown");
	text(node.health, service.health);
	text(node.sum, (prefixes.length - node.out) + " of " + plural(prefixes.length, "prefix").replace("xs", "xes") +
		" announced, " + checks.filter(([, c]) => c.state === "up").length + " of " +
		plural(checks.length, "check") + " up");
	text(node.why, whyText(service));
	text(node.repair, repairText(service.repair));
	node.repair.hidden = !node.repair.shown;
	node.checkTable.whole.hidden = checks.length === 0;
	keyed(node.prefixes, prefixes, makePrefix, (row, prefix) => updatePrefix(row, prefix, bird));
	node.changed = 0;
	for (const row of node.prefixes.values())
		node.changed = Math.max(node.changed, row.changed);
	if (!node.touched)
		node.row.open = few || level !== "good";
	if (node.row.open)
		showInside(node);
}

/* What nobody sees is not drawn: a closed service's checks. */
function showInside(node) {
	keyed(node.checks, objects(node.data.checks), makeCheck, updateCheck);
	order(node.checkTable.body, [...node.checks.values()].map(row => row.row));
}

/* ---- filter and order ---- */

const controls = {filter: $("filter"), show: $("show"), sort: $("sort")};

function byName(a, b) {
	return a.localeCompare(b, "en", {numeric: true});
}

function compare(a, b) {
	switch (controls.sort.value) {
	case "name": return byName(a.key, b.key);
	case "change": return b.changed - a.changed || byName(a.key, b.key);
	default: return RANKS[a.level] - RANKS[b.level] || a.place - b.place;
	}
}

function comparePrefixes(a, b) {
	return controls.sort.value === "change" ? b.changed - a.changed || a.place - b.place :
		controls.sort.value === "name" ? a.place - b.place :
		RANKS[a.level] - RANKS[b.level] || a.place - b.place;
}

function shown(prefix) {
	switch (controls.show.value) {
	case "trouble": return prefix.level !== "good";
	case "out": return prefix.data.announced !== true;
	case "drained": return Boolean(prefix.data.drain);
	default: return true;
	}
}

function arrange() {
	const terms = controls.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
	const everything = controls.show.value === "all";
	let total = 0, seen = 0;
	for (const node of services.values()) {
		const own = (node.key + " " + node.data.health).toLowerCase();
		const checks = everything && terms.length > 0 && [...node.checks.values()].some(row =>
			terms.every(term => own.includes(term) || row.haystack.includes(term)));
		let some = false;
		for (const [key, row] of node.prefixes) {
			const match = checks || terms.every(term =>
				own.includes(term) || key.includes(term) || row.haystack.includes(term));
			row.row.hidden = !(match && shown(row));
			total++;
			seen += !row.row.hidden;
			some = some || !row.row.hidden;
		}
		/* A check that is down is not well although the prefixes are. */
		if (controls.show.value === "trouble" && node.level !== "good" && terms.every(term => own.includes(term)))
			some = true;
		node.row.hidden = !some && !(everything && node.prefixes.size === 0);
		order(node.prefixTable.body, [...node.prefixes.values()].sort(comparePrefixes).map(row => row.row));
	}
	order($("list"), [...services.values()].sort(compare).map(node => node.row));
	text($("count"), services.size === 0 ? "No services are configured." : seen === total ?
		plural(total, "prefix").replace("xs", "xes") : seen + " of " + total + " prefixes shown");
	remember();
}

/* The filter stands in the address, so that it outlives a reload and can be sent to somebody. */
function remember() {
	const query = new URLSearchParams();
	if (controls.filter.value)
		query.set("q", controls.filter.value);
	for (const name of ["show", "sort"])
		if (controls[name].selectedIndex > 0)
			query.set(name, controls[name].value);
	const search = query.size > 0 ? "?" + query : location.pathname;
	if (search !== (location.search || location.pathname))
		history.replaceState(null, "", search + location.hash);
}

function recall() {
	const query = new URLSearchParams(location.search);
	controls.filter.value = query.get("q") || "";
	for (const name of ["show", "sort"]) {
		controls[name].value = query.get(name) || "";
		if (controls[name].selectedIndex < 0)
			controls[name].selectedIndex = 0;
	}
}

/* ---- the whole ---- */

const facts = new Map(), notes = new Map(), loads = new Map(), neighbours = new Map();

function fact(key) {
	const value = make("dd"), row = make("div", null, make("dt", null, key), value);
	return {row, value};
}

function showFacts(parent, map, items) {
	keyed(map, items, fact, (node, [level, value]) => {
		attribute(node.value, "class", level);
		text(node.value, value);
	});
	order(parent, [...map.values()].map(node => node.row));
}

function birdText(bird) {
	return bird.link === "up" ? (bird.version || "") + (bird.settled ? "" : ", settling") : bird.link;
}

function glance(status) {
	const bird = object(status.bird), all = objects(status.services).map(([, service]) => service);
	const prefixes = all.flatMap(service => objects(service.prefixes).map(([, prefix]) => prefix));
	const checks = all.flatMap(service => objects(service.checks).map(([, check]) => check));
	const healthy = all.filter(service => service.health === "healthy").length;
	const announced = prefixes.filter(prefix => prefix.announced === true).length;
	const up = checks.filter(check => check.state === "up").length;
	const part = (n, of, level) => [n === of ? "" : level, n + " of " + of];
	const items = [
		["Services healthy", part(healthy, all.length, "trouble")],
		["Prefixes announced", part(announced, prefixes.length, "look")],
		["Checks up", part(up, checks.length, "look")],
		["BIRD", [bird.link === "up" ? "" : "trouble", birdText(bird)]],
	];
	if (bird.link === "up")
		items.push(["Sessions up", part(bird.sessions_up, bird.sessions, "look")]);
	if (list(status.drains).length > 0)
		items.push(["Drains", ["look", status.drains.length]]);
	showFacts($("facts"), facts, items);
}

function words(status) {
	const bird = object(status.bird), found = [];
	const add = (level, ...parts) => found.push([parts.filter(Boolean).join(": "), level]);
	if (bird.link !== "up" && bird.error)
		add("trouble", "BIRD", bird.error);
	if (bird.alarm)
		add("look", "BIRD refuses its configuration", bird.alarm);
	if (bird.files_error)
		add("look", "Fragments can not be written", bird.files_error);
	if (object(status.config).error)
		add("look", "The configuration on disk was refused, what ran keeps running", status.config.error);
	if (list(bird.sessions_down).length > 0)
		add("look", "Sessions that are down", bird.sessions_down.join(", "));
	for (const warning of list(bird.warnings).map(object))
		add("look", "BIRD's configuration (" + warning.code + ")", warning.text);
	for (const drain of list(status.drains).map(object))
		add("look", "Drained: " + (drain.name || "the whole server") + " by " + drain.who + ", " + until(drain) +
			(drain.configured ? "" : " (nobody is called so now)"), drain.reason);
	for (const forced of list(status.announces).map(object))
		add("look", "Announced by force: " + (forced.name || "the whole server") + " by " + forced.who + ", " + until(forced) +
			(forced.configured ? "" : " (nobody is called so now)"), forced.reason);
	if (status.freeze)
		add("look", "Frozen by " + status.freeze.who + ", " + until(status.freeze), status.freeze.reason);
	for (const weight of list(status.weights).map(object))
		add("good", "Weight " + weight.weight + " of " + weight.name + " by " + weight.who + ", " + until(weight),
			weight.reason);
	return found;
}

function showNotes(status) {
	const found = words(status);
	$("notes").hidden = found.length === 0;
	keyed(notes, found, key => ({row: make("li"), key}), (node, level) => {
		if (!node.glyph) {
			node.glyph = make("span", {class: "glyph", "aria-hidden": "true"});
			node.row.append(node.glyph, make("span", null, node.key));
		}
		attribute(node.glyph, "class", "glyph " + level);
		text(node.glyph, level === "good" ? "\u2022" : GLYPHS[level]);
	});
	order($("notes-list"), [...notes.values()].map(node => node.row));
}

function flat(value) {
	if (value === null || value === undefined)
		return "?";
	if (typeof value !== "object")
		return typeof value === "number" && !Number.isInteger(value) ? value.toPrecision(3) : String(value);
	return Array.isArray(value) ? value.map(flat).join(", ") :
		entries(value).map(([key, inner]) => key.replaceAll("_", " ") + " " + flat(inner)).join(", ");
}

function showLoad(load) {
	$("load").hidden = entries(load).length === 0;
	showFacts($("load-list"), loads,
		entries(load).map(([key, value]) => [key.replaceAll("_", " "), ["", flat(value)]]));
}

function showNeighbours(all) {
	const named = Array.isArray(all) ? all.map((one, i) => [String(one.name || i), one]) : entries(all);
	const columns = [...new Set(named.flatMap(([, one]) => Object.keys(object(one))))].filter(name => name !== "name");
	const head = $("neighbours-head"), key = columns.join();
	$("neighbours").hidden = named.length === 0;
	if (head.key !== key) {
		head.key = key;
		head.replaceChildren(...["neighbour", ...columns].map(name =>
			make("th", {scope: "col"}, name.replaceAll("_", " "))));
		for (const node of neighbours.values())
			node.row.remove();
		neighbours.clear();
	}
	keyed(neighbours, named, name => {
		const cells = columns.map(() => make("td"));
		return {row: make("tr", null, make("th", {scope: "row"}, name), ...cells), cells};
	}, (node, one) => columns.forEach((name, i) => text(node.cells[i], flat(object(one)[name]))));
	order($("neighbours-body"), [...neighbours.values()].map(node => node.row));
}

function showVerdict(status) {
	const verdict = object(status.verdict), level = levelOf(verdict);
	attribute($("verdict"), "data-level", level);
	text($("verdict-glyph"), GLYPHS[level]);
	const said = verdict.text || "the agent had no memory for it";
	text($("verdict-word"), WORDS[level] || said.split(":")[0] + ":");
	text($("verdict-text"), WORDS[level] ? said : said.slice(said.indexOf(":") + 1).trim());
	$("verdict-next").hidden = !verdict.command;
	text($("verdict-command"), verdict.command);
	const title = {good: "", look: "Look: ", trouble: "TROUBLE: ", unknown: ""}[level] + status.node + " \u2013 Redshank";
	if (document.title !== title)
		document.title = title;
	icon(level);
}

function icon(level) {
	const shape = {good: "<circle cx='8' cy='8' r='6'/>", look: "<path d='M8 1l7 13H1z'/>",
		trouble: "<path d='M2 2h12v12H2z'/>", unknown: "<path d='M8 2a6 6 0 1 0 .1 0zm0 3a3 3 0 1 1-.1 0z'/>"}[level];
	attribute($("icon"), "href", "data:image/svg+xml,<svg xmlns='" + SVG + "' viewBox='0 0 16 16' fill='" +
		COLOURS[level] + "'>" + shape + "</svg>");
}

function render(status) {
	const bird = object(status.bird), all = objects(status.services);
	const few = all.reduce((n, [, service]) => n + entries(service.prefixes).length, 0) <= OPEN_BELOW;
	skew = Date.parse(status.time) - Date.now() || 0;
	changes = 0;
	text($("node"), status.node);
	text($("agent"), "version " + status.version + (status.ready ? "" : ", starting") +
		(status.stopping ? ", stopping" : ""));
	showVerdict(status);
	glance(status);
	showNotes(status);
	showLoad(status.load);
	showNeighbours(status.neighbours);
	keyed(services, all, makeService, (node, service) => updateService(node, service, bird, few));
	$("list").classList.toggle("many", !few);
	moving = changes > 0 || bird.settled === false;
	let place = 0;
	for (const [name, service] of all) {
		const node = services.get(name);
		node.place = place++;
		entries(service.prefixes).forEach(([key], i) => { node.prefixes.get(key).place = i; });
	}
	arrange();
}

/* ---- events ---- */

const lastEvents = new Set();

function eventText(event) {
	if (event.message)
		return String(event.message).replaceAll(" -> ", " \u2192 ");
	const about = [event.service, event.check, event.prefix].filter(Boolean).join(" ");
	return [event.event, about, event.from && event.to ? event.from + " \u2192 " + event.to : "", event.reason,
		event.who ? "by " + event.who : "", event.why].filter(Boolean).join(", ");
}

function eventLevel(event) {
	const level = String(event.level || "").toLowerCase();
	if (/^(emerg|alert|crit|err)/.test(level))
		return "trouble";
	return /^warn/.test(level) ? "look" : /^(notice|info)/.test(level) ? "good" : "unknown";
}

function showEvent(event) {
	const key = event.id ? event.instance + "-" + event.id : event.time + eventText(event), parent = $("events");
	if (lastEvents.has(key))
		return;
	lastEvents.add(key);
	const at = Date.parse(event.time), level = eventLevel(event);
	const time = make("time", {datetime: event.time || ""}, Number.isNaN(at) ? "" : clock(at));
	if (!Number.isNaN(at))
		time.title = new Date(at).toLocaleString();
	const words = make("span", null, eventText(event));
	if (level !== "good")
		words.prepend(make("span", {class: "glyph " + level, "aria-hidden": "true"}, GLYPHS[level]), " ");
	const row = make("li", {"data-event": event.event || ""}, time, words);
	row.key = key;
	parent.prepend(row);
	while (parent.childElementCount > EVENTS_KEPT) {
		lastEvents.delete(parent.lastElementChild.key);
		parent.lastElementChild.remove();
	}
	parent.hidden = false;
	$("events-none").hidden = true;
}

let stream = null, streaming = false, streamTries = 0, streamTimer = 0, lastId = "";

function listen() {
	clearTimeout(streamTimer);
	if (stream)
		stream.close();
	stream = new EventSource("v1/events?limit=" + EVENTS_KEPT + (lastId ? "&since=" + encodeURIComponent(lastId) : ""));
	stream.onopen = () => {
		if (streamTries > 0)
			isNewPage();
		streaming = true;
		streamTries = 0;
		say();
		soon(0);
	};
	stream.onmessage = message => {
		lastId = message.lastEventId || lastId;
		let event = null;
		try {
			event = JSON.parse(message.data);
		} catch {
			return;
		}
		showEvent(object(event));
		soon(AFTER_EVENT_MS);
	};
	stream.onerror = () => {
		/* Our own pace, not the browser's, and the same after an answer that is no stream. */
		stream.close();
		streaming = false;
		streamTimer = setTimeout(listen, backoff(streamTries++));
		say();
		soon(0);
	};
}

/* ---- asking ---- */

let asking = false, again = false, timer = 0, due = 0, asked = 0, tries = 0, awaySince = 0, awayWhy = "", cost = 0, moving = false, confused = false;

function backoff(n) {
	return BACKOFF_MS[Math.min(n, BACKOFF_MS.length - 1)];
}

function say() {
	const state = tries > 0 ? "away" : confused ? "confused" : asked === 0 ? "connecting" : streaming ? "live" : "polling";
	attribute($("link"), "data-link", state);
	attribute(document.body, "data-link", state);
	text($("link-text"), {
		away: "The agent does not answer since " + clock(awaySince) + awayWhy + ". What is shown is of then; trying again.",
		confused: "The agent answers what this page does not understand. Reload it, or ask redshankctl status.",
		connecting: "connecting",
		live: "live",
		polling: "asked every second; no stream of events",
	}[state]);
	$("try").hidden = state !== "away";
	if (state !== "away")
		return;
	document.title = "No answer: " + ($("node").shown || location.host) + " \u2013 Redshank";
	icon("unknown");
}

/* Asks in `ms` at the latest. */
function soon(ms) {
	if (asking) {
		again = true;
		return;
	}
	const at = Math.max(performance.now() + ms, asked + AT_LEAST_MS);
	if (timer && due <= at)
		return;
	clearTimeout(timer);
	due = at;
	timer = setTimeout(ask, at - performance.now());
}

async function question() {
	const answer = await fetch("v1/status", {cache: "no-store", signal: AbortSignal.timeout(ASK_TIMEOUT_MS)});
	if (!answer.ok)
		throw new Error(", it says " + answer.status);
	return answer.json();
}

function take(status, returned) {
	const begun = performance.now(), first = services.size === 0;
	confused = false;
	try {
		render(status);
	} catch (error) {
		/* Our fault, or an agent of another time; what can be done is to take its page. */
		confused = true;
		console.error(error);
	}
	cost = first ? 0 : performance.now() - begun; /* the first drawing is no measure of the next */
	if (!returned && !confused)
		return;
	isNewPage();
	if (!streaming && returned)
		listen();
}

/* A long document is asked for less often: drawing it takes no more than a tenth of the time, or a half
 * while something moves. */
function pause() {
	if (tries > 0)
		return backoff(tries - 1);
	if (again)
		return AFTER_EVENT_MS;
	return moving ? Math.max(MOVING_MS, cost) : Math.max(streaming ? SLOW_MS : ALONE_MS, cost * 10);
}

async function ask() {
	timer = 0;
	if (document.hidden)
		return;
	asking = true;
	again = false;
	asked = performance.now();
	let status = null;
	const was = tries;
	try {
		status = object(await question());
		tries = 0;
		awaySince = 0;
	} catch (error) {
		if (tries++ === 0)
			awaySince = Date.now();
		awayWhy = error.message.startsWith(", ") ? error.message : "";
	}
	if (status)
		take(status, was > 0);
	asking = false;
	say();
	soon(pause());
}

/* The agent is back: if it brought another page, that one is loaded. Once, lest a proxy keep us at it. */
async function isNewPage() {
	try {
		const answer = await fetch(location.pathname, {method: "HEAD", cache: "no-store"});
		const tag = answer.headers.get("etag");
		if (!answer.ok || !tag || tag.includes(ETAG) || sessionStorage.getItem("loaded") === tag)
			return;
		sessionStorage.setItem("loaded", tag);
		location.reload();
	} catch {
		/* Away again; the next answer asks again. */
	}
}

/* ---- controls ---- */

function start() {
	recall();
	for (const control of Object.values(controls))
		control.addEventListener("input", arrange);
	$("controls").addEventListener("submit", event => event.preventDefault());
	const all = open => {
		for (const node of services.values()) {
			node.touched = true;
			node.row.open = open;
		}
	};
	$("open").addEventListener("click", () => all(true));
	$("close").addEventListener("click", () => all(false));
	$("try").addEventListener("click", () => { asked = -Infinity; soon(0); });
	document.addEventListener("keydown", event => {
		if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey &&
			!/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
			event.preventDefault();
			controls.filter.focus();
		} else if (event.key === "Escape" && document.activeElement === controls.filter) {
			controls.filter.value = "";
			arrange();
		}
	});
	document.addEventListener("visibilitychange", () => {
		if (document.hidden) {
			clearTimeout(streamTimer);
			if (stream)
				stream.close();
			streaming = false;
		} else {
			listen();
			soon(0);
		}
	});
	setInterval(() => {
		if (!document.hidden)
			for (const node of document.querySelectorAll("details[open] time"))
				tell(node);
	}, 5000);
	text($("legend"), "Outcomes, the newest at the right: low is good, high is bad, high and broken is a death, a dot is not known.");
	/* The verdict, the log and redshankctl speak of UTC. */
	const zone = new Intl.DateTimeFormat("en-GB", {timeZoneName: "short"}).formatToParts().find(part => part.type === "timeZoneName");
	text($("zone"), "Times are this browser's" + (zone ? " (" + zone.value + ")" : "") + "; those that end in Z are UTC.");
	icon("unknown");
	if (document.hidden)
		return;
	listen();
	soon(0);
}

start();
})();
