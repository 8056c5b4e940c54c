/*
 * One Chromium, driven by lines of JSON: {id, do, ...} on stdin, {id, value} or {id, error} on stdout.
 * lib/browser.py starts it, inside a host's network namespace, and is its only client.
 *
 * MODULES names the folder with node_modules, CHROMIUM the program, PROFILE a folder of its own.
 */
import {createRequire} from "node:module";
import {readFileSync} from "node:fs";
import {createInterface} from "node:readline";

const require = createRequire(process.env.MODULES + "/");
const {chromium} = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/* Runs in the page before anything of its own: what must never happen is written down. */
function watch() {
	window.violations = [];
	document.addEventListener("securitypolicyviolation", event =>
		window.violations.push(event.violatedDirective + " " + event.blockedURI + " " + event.sample));
}

const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM,
	args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--no-default-browser-check"],
});
const pages = new Map();
let last = 0;

async function open({url, scheme = "light", width = 1280, height = 900, reduce = false}) {
	const context = await browser.newContext({colorScheme: scheme, viewport: {width, height}, locale: "en-GB",
		reducedMotion: reduce ? "reduce" : "no-preference"});
	const page = await context.newPage();
	page.setDefaultTimeout(40000); /* lib/browser.py waits longer, and so hears why */
	const seen = {requests: [], dialogs: [], errors: [], loads: 0};
	page.on("request", request => seen.requests.push(request.url()));
	page.on("dialog", dialog => { seen.dialogs.push(dialog.message()); dialog.dismiss(); });
	page.on("pageerror", error => seen.errors.push(String(error)));
	page.on("console", message => {
		if (message.type() === "error" && !/Failed to load resource|ERR_/.test(message.text()))
			seen.errors.push(message.text());
	});
	page.on("load", () => seen.loads++);
	await page.addInitScript(watch);
	await page.goto(url, {waitUntil: "load"});
	pages.set(++last, {context, page, seen});
	return last;
}

async function late(ms) {
	await new Promise(done => setTimeout(done, ms));
	throw new Error("the page does not answer");
}

/* Until the expression is true. Not by a function that the page would hold: its policy allows no eval. */
async function wait(page, {js, timeout}) {
	const end = Date.now() + timeout;
	for (;;) {
		let value = null, why = "";
		try {
			value = await Promise.race([page.evaluate(js), late(2000)]);
		} catch (error) { /* the page is being loaded, or has no such element yet */
			why = ": " + error;
		}
		if (value)
			return value;
		if (Date.now() > end)
			throw new Error("not true within " + timeout + " ms" + why);
		await new Promise(done => setTimeout(done, 20));
	}
}

/* What axe-core finds, as one line each. */
async function axe(page) {
	await page.evaluate(AXE);
	const found = await page.evaluate(() => window.axe.run(document, {
		resultTypes: ["violations", "incomplete"],
		runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
	}));
	return found.violations.map(v => v.id + " (" + v.impact + "): " + v.help + ": " +
		v.nodes.slice(0, 4).map(n => n.target.join(" ") + " " + (n.any[0]?.message || "")).join(" | "));
}

/* Tab until the focus leaves the page or comes round again: each element that had it, and whether that showed. */
async function tab(page) {
	const walked = [];
	await page.evaluate(() => { document.activeElement?.blur(); window.scrollTo(0, 0); });
	for (let i = 0; i < 300; i++) {
		await page.keyboard.press("Tab");
		const here = await page.evaluate(() => {
			const node = document.activeElement;
			if (!node || node === document.body)
				return null;
			if (node.wasHere)
				return null;
			node.wasHere = true;
			const style = getComputedStyle(node);
			const box = node.getBoundingClientRect();
			return {name: node.id || node.textContent.trim().slice(0, 40), tag: node.tagName,
				outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
				visible: box.width > 4 && box.height > 4 && box.bottom > 0 && box.top < innerHeight};
		});
		if (!here)
			break;
		walked.push(here);
	}
	return walked;
}

/* Serves `body` instead of the agent's answer at `path`. */
async function fake(page, path, body, type) {
	await page.route("**" + path, route => route.fulfill({status: 200, contentType: type, body}));
}

async function obey(command) {
	const held = pages.get(command.page), page = held?.page;
	switch (command.do) {
	case "open": return open(command);
	case "close": pages.delete(command.page); return held.context.close().then(() => null);
	case "eval": return page.evaluate(command.js);
	case "wait": return wait(page, command);
	case "press": return page.keyboard.press(command.key).then(() => null);
	case "type": return page.fill(command.selector, command.text).then(() => null);
	case "select": return page.selectOption(command.selector, command.value).then(() => null);
	case "click": return page.click(command.selector).then(() => null);
	case "axe": return axe(page);
	case "tab": return tab(page);
	case "fake": return fake(page, command.path, command.body, command.type);
	case "unfake": return page.unroute("**" + command.path).then(() => null);
	case "reload": return page.reload().then(() => null);
	case "shot": return page.screenshot({path: command.path, fullPage: command.full}).then(() => null);
	case "seen": return held.seen;
	}
	throw new Error("no such command: " + command.do);
}

console.log(JSON.stringify({ready: browser.version()}));
for await (const line of createInterface({input: process.stdin})) {
	const command = JSON.parse(line);
	try {
		console.log(JSON.stringify({id: command.id, value: await obey(command) ?? null}));
	} catch (error) {
		console.log(JSON.stringify({id: command.id, error: String(error)}));
	}
}
await browser.close();
