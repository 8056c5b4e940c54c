
/*
 * The page as a whole. What is shown is what /v1/status says, asked again after every event and at a slow pace of
 * its own; draw.js, before this, draws the parts.
 */
const SLOW_MS = 2000; /* between questions while events come, and more where the answer is long */
const ALONE_MS = 1000; /* where they do not */
const AFTER_EVENT_MS = 60;
const AT_LEAST_MS = 250; /* between two questions */
const ASK_TIMEOUT_MS = 10000;
const BACKOFF_MS = [500, 1000, 2000, 4000, 8000, 15000];
const MOVING_MS = 250; /* between questions while BIRD is not yet where it should be, or was not just now */
const EVENTS_KEPT = 200;
const OPEN_BELOW = 60; /* prefixes: then services that are well are open, too */
const COLOURS = {good: "%2317734a", look: "%23b87503", trouble: "%23c5281f", unknown: "%237b8790"};
const WORDS = {good: "", look: "Look:", trouble: "TROUBLE:", unknown: "Not judged:"};
const ETAG = document.documentElement.dataset.etag;

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
	const shed = object(status.shed);
	if (typeof shed.neighbours === "number") {
		items.push(["Utilisation", ["", perCent(shed.utilisation)]]);
		items.push(["Neighbours fresh", part(shed.neighbours_fresh, shed.neighbours, "look")]);
		if (shed.out > 0)
			items.push(["Prefixes shed", ["look", shed.out]]);
	}
	showFacts($("facts"), facts, items);
}

function words(status) {
	const bird = object(status.bird), found = [];
	const add = (level, ...parts) => found.push([parts.filter(Boolean).join(": "), level]);
	if (bird.link !== "up" && bird.error)
		add("trouble", "BIRD", bird.error);
	if (bird.alarm)
		add("look", bird.alarm);
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
	for (const [verb, given] of [["Shed", status.sheds], ["Not to be shed", status.unsheds]])
		for (const word of list(given).map(object))
			add("look", verb + " by hand: " + word.name + " by " + word.who + ", " + until(word), word.reason);
	if (object(status.shed).alarm === true)
		add("look", "Shedding had no effect, and is stopped");
	if (object(status.neighbours).error)
		add("look", "Certificates or members of neighbours are not taken into use", status.neighbours.error);
	if (object(status.neighbours).warning)
		add("look", "The certificate for neighbours", status.neighbours.warning);
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

/* Without errors that are none. */
function flat(value) {
	if (value === null || value === undefined)
		return "?";
	if (typeof value !== "object")
		return typeof value === "number" && !Number.isInteger(value) && Math.abs(value) < 1000 ?
			value.toPrecision(3) : String(typeof value === "number" ? Math.round(value) : value);
	return Array.isArray(value) ? value.map(flat).join(", ") :
		entries(value).filter(([key, inner]) => key !== "error" || inner !== null)
			.map(([key, inner]) => key.replaceAll("_", " ") + " " + measured(key, inner)).join(", ");
}

/* Parts of a whole come as basis points. */
function measured(key, value) {
	return key === "utilisation" && typeof value === "number" ? (value / 100).toFixed(1) + " %" : flat(value);
}

function showLoad(load) {
	$("load").hidden = entries(load).length === 0;
	showFacts($("load-list"), loads,
		entries(load).map(([key, value]) => [key.replaceAll("_", " "), ["", measured(key, value)]]));
}

function perCent(bp) {
	return typeof bp === "number" ? (bp / 100).toFixed(1) + " %" : "?";
}

/* Of a neighbour, and of what its last report says. */
const COLUMNS = [
	["state", one => one.state],
	["utilisation", (one, said) => perCent(said.utilisation)],
	["room", (one, said) => said.willing === true ? said.spare : said.willing === false ? "takes nothing" : "?"],
	["wants to shed", (one, said) => said.want > 0 ? "yes" : said.want === 0 ? "no" : "?"],
	["has shed", (one, said) => said.sheds],
	["last report", one => one.state === "fresh" ? "now" : one.asked ? moment(one.asked) : "never"],
	["error", one => one.error || ""],
];

function showNeighbours(all) {
	const named = entries(object(all).members);
	const head = $("neighbours-head");
	$("neighbours").hidden = named.length === 0;
	if (head.children.length === 0)
		head.append(...["neighbour", ...COLUMNS.map(([name]) => name)].map(name => make("th", {scope: "col"}, name)));
	keyed(neighbours, named, name => {
		const cells = COLUMNS.map(([name]) => make("td", {"data-label": name}));
		return {row: make("tr", null, make("th", {scope: "row"}, name), ...cells), cells};
	}, (node, one) => COLUMNS.forEach(([, tell], i) => text(node.cells[i], flat(tell(object(one), object(object(one).report))))));
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

let stream = null, streaming = false; /* the EventSource; it is open */
let streamTries = 0, streamTimer = 0, lastId = "";

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
		if (tries === 0)
			soon(0);
	};
}

/* ---- asking ---- */

let asking = false, again = false; /* a question is under way; another one is due after it */
let timer = 0, due = 0, asked = 0; /* of the next question, when it is due, when the last one was asked */
let tries = 0, awaySince = 0, awayWhy = ""; /* questions without an answer, since when, and why */
let cost = 0; /* ms that the last drawing took */
let moving = false; /* something changed, or BIRD is not yet where it should be */
let confused = false; /* the answer could not be drawn */

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
	text($("legend"), "Outcomes, the newest at the right: low is good, high is bad, high and broken is a death, " +
		"a dot is not known.");
	/* The verdict, the log and redshankctl speak of UTC. */
	const zone = new Intl.DateTimeFormat("en-GB", {timeZoneName: "short"}).formatToParts()
		.find(part => part.type === "timeZoneName");
	text($("zone"), "Times are this browser's" + (zone ? " (" + zone.value + ")" : "") + "; those that end in Z are UTC.");
	icon("unknown");
	if (document.hidden)
		return;
	listen();
	soon(0);
}

start();
