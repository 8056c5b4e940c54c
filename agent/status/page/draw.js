
"use strict";
/*
 * How each thing of the status is drawn: a prefix, a check, a service. What asks for the status, and the rest of
 * the page, is in page.js, which follows in the same script.
 *
 * Names, reasons and BIRD's words are other people's text: they become text nodes and nothing else. A node is
 * touched only when what it shows has changed.
 */
const CHANGES_MARKED = 40; /* prefixes that are marked as new at once: more would be a flicker */
const GLYPHS = {good: "\u25cf", look: "\u25b2", trouble: "\u25a0", unknown: "\u25cb", out: "\u25bd"};
const RANKS = {trouble: 0, look: 1, unknown: 2, good: 3};
const SVG = "http://www.w3.org/2000/svg";

const $ = id => document.getElementById(id);
const list = value => Array.isArray(value) ? value : [];
const object = value => value && typeof value === "object" && !Array.isArray(value) ? value : {};
const entries = value => Object.entries(object(value));
const objects = value => entries(value).map(([key, inner]) => [key, object(inner)]);
const levelOf = thing => Object.hasOwn(RANKS, thing.level) ? thing.level : "unknown";
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

/* The words of `redshankctl explain`, held to it by a test. The interface follows where one ends in a blank. */
const ADDRESSES = {
	present: "managed, and present on ",
	others: "managed, but somebody else has put it here: it is used, and never removed",
	missing: "managed, and MISSING: to be added to ",
	announced: "to be removed when it is withdrawn, by itself and as part of a bigger prefix",
	bird: "to be removed when BIRD is known to have withdrawn it: packets may still come",
	grace: "to be removed when stop_grace is over: packets may still be under way",
	absent: "managed, and not here, since the service was sent away",
	kept: "managed, and it stays when the agent leaves",
};

function addressText(address) {
	const said = Object.hasOwn(ADDRESSES, address.state) ? ADDRESSES[address.state] : "managed: " + address.state;
	return said + (said.endsWith(" ") ? address.interface : "") +
		(address.restored > 0 ? "; somebody has removed it " + plural(address.restored, "time") +
			", and it was added again" : "") +
		(address.error ? "; the last attempt failed: " + address.error : "") + ".";
}

/* Managed, there, and nothing ever came between: the service says it once for all of these. */
const isPlain = address => address.state === "present" && !(address.restored > 0) && !address.error;

/* Of what is not so: the sentence, and how it looks. */
function addressNote(prefix) {
	const address = object(prefix.address);
	if (!address.state || isPlain(address))
		return ["", "unknown"];
	return ["Address: " + addressText(address), address.state === "missing" || address.error ? "trouble" :
		address.restored > 0 ? "look" : "unknown"];
}

function addressesText(prefixes) {
	const managed = prefixes.map(([, prefix]) => object(prefix.address));
	const plain = managed.filter(address => address.state && isPlain(address));
	return plain.length === 0 ? "" : (plain.length === managed.length ? "Addresses: " : "Addresses of the others: ") +
		addressText(plain[0]);
}

const PREFIX_CELLS = [["wanted", "Wanted"], ["announced", "Announced"], ["exported", "Exported"],
	["weight", "Weight"], ["load", "Load"], ["reason", "Reason"]];
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
	node.address = make("span");
	node.cells.reason.after(node.address);
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
	const [address, looks] = addressNote(prefix);
	const was = node.state.word.shown;
	node.level = level;
	node.changed = Date.parse(prefix.since) || 0;
	node.data = prefix;
	node.haystack = (state + " " + prefix.wanted + " " + prefixReason(prefix) + " " + address + " " + level).toLowerCase();
	/* Withdrawn as it should be is neither well nor trouble to who reads the row. */
	const look = level === "good" && prefix.wanted === "withdraw" ? "out" : level;
	if (showState(node, look, state) && was !== undefined && changes++ < CHANGES_MARKED)
		node.row.className = node.row.className === "new-a" ? "new-b" : "new-a";
	text(node.cells.wanted, prefix.wanted);
	text(node.cells.announced, tri(prefix.announced));
	text(node.cells.exported, prefix.exported === null ? "?" : prefix.exported);
	text(node.cells.weight, prefix.weight);
	text(node.cells.load, flat(prefix.load));
	text(node.cells.reason, prefixReason(prefix));
	text(node.address, address);
	attribute(node.address, "class", "address " + looks);
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
	node.addresses = make("p", {class: "addresses"});
	node.prefixTable = table("prefixes", "Prefixes of " + key, [["state", "State"], ["name", "Prefix"],
		...PREFIX_CELLS, ["since", "For"]]);
	node.checkTable = table("checks", "Checks of " + key, [["state", "State"], ["name", "Check"],
		["outcomes", "Outcomes"], ["latency", "Latency"], ["reason", "Said last"], ["since", "For"]]);
	node.inside.append(node.repair, node.addresses, node.checkTable.whole, node.prefixTable.whole);
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
		else if (check.level && check.level !== "good")
			parts.push(name + " says nothing" + (check.reason ? ": " + check.reason : ""));
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
	text(node.addresses, addressesText(prefixes));
	node.addresses.hidden = !node.addresses.shown;
	node.checkTable.whole.hidden = checks.length === 0;
	/* The column is there where the load of prefixes is counted. */
	attribute(node.prefixTable.whole, "class", prefixes.some(([, p]) => p.load !== undefined) ? "prefixes counted" : "prefixes");
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

