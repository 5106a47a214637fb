//! What people with other eyes, hands and screens need, measured on every section.

use serde_json::Value;

use crate::page::Visitor;
use crate::pictures::Thing;
use crate::served::Served;

const SECTIONS: [&str; 6] = ["teach", "ask", "correct", "unknowns", "quality", "keep"];

/// Texts with less contrast than WCAG 2.2 AA asks for: 4.5, or 3 for large ones.
const FAINT: &str = r"
const parse = (text) => { const n = text.match(/[\d.]+/g).map(Number); return text.startsWith('color(') ? [n[0] * 255, n[1] * 255, n[2] * 255, n[3] ?? 1] : [n[0], n[1], n[2], n[3] ?? 1]; };
const over = (top, below) => top.slice(0, 3).map((value, i) => value * top[3] + below[i] * (1 - top[3])).concat(1);
const ground = (element) => { if (!element) return [255, 255, 255, 1]; const own = parse(getComputedStyle(element).backgroundColor); return own[3] === 1 ? own : over(own, ground(element.parentElement)); };
const light = (colour) => { const [r, g, b] = colour.map((value) => { const s = value / 255; return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const faint = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.checkVisibility() || element.closest('svg, :disabled, .sr, .mark, .skip, option')) continue;
  const style = getComputedStyle(element);
  const below = ground(element);
  const [a, b] = [light(over(parse(style.color), below)), light(below)].sort((x, y) => y - x);
  const size = parseFloat(style.fontSize);
  const wanted = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < wanted) faint.push(walker.currentNode.data.trim().slice(0, 40) + ': ' + ratio.toFixed(2));
}
return faint;";

/// Controls and pictures without a name, names used twice, headings that skip a level.
const NAMELESS: &str = r"
const found = [];
const seen = (element) => element.checkVisibility();
const name = (element) => element.getAttribute('aria-label') || (element.getAttribute('aria-labelledby') && document.getElementById(element.getAttribute('aria-labelledby'))?.innerText) || [...(element.labels || [])].map((label) => label.innerText).join(' ') || element.innerText || '';
for (const element of document.querySelectorAll('button, a[href], input, select, [tabindex=\'0\'], [role=img], progress, video, dialog[open], nav')) {
  if (seen(element) && !name(element).trim()) found.push('no name: ' + element.outerHTML.slice(0, 90));
}
for (const image of document.querySelectorAll('img')) if (!image.hasAttribute('alt')) found.push('no alt: ' + image.outerHTML.slice(0, 90));
const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
for (const id of new Set(ids)) if (ids.filter((one) => one === id).length > 1) found.push('twice: ' + id);
let level = 0;
for (const heading of document.querySelectorAll('h1, h2, h3, h4')) {
  if (!seen(heading)) continue;
  const own = Number(heading.tagName[1]);
  if (own > level + 1) found.push('heading skips a level: ' + heading.innerText);
  level = own;
}
if (!document.documentElement.lang) found.push('no language');
return found;";

/// Targets below 24 pixels, and what is wider than the screen.
const CRAMPED: &str = r"
const found = [];
for (const element of document.querySelectorAll('button, a[href], select, input:not([type=file]):not([type=checkbox])')) {
  if (!element.checkVisibility() || element.closest('.sr, .skip')) continue;
  const box = element.getBoundingClientRect();
  if (box.width < 24 || box.height < 24) found.push('small: ' + element.outerHTML.slice(0, 90));
}
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > width) found.push('wider than the screen: ' + document.documentElement.scrollWidth);
for (const element of document.querySelectorAll('main *')) {
  const box = element.getBoundingClientRect();
  if (element.checkVisibility() && box.width && box.right > width + 1 && !element.closest('.scroll, .sr, svg')) found.push('cut off: ' + element.outerHTML.slice(0, 90));
}
return found;";

#[track_caller]
fn none(visitor: &Visitor, what: &str, code: &str) {
    let found = visitor.browser.script(code);
    assert_eq!(found, Value::Array(Vec::new()), "{what}");
}

fn everywhere(visitor: &Visitor, state: &str) {
    for section in SECTIONS {
        visitor.go(section);
        // what has to be fetched first
        std::thread::sleep(std::time::Duration::from_millis(400));
        let place = format!("{section}, {state}");
        none(visitor, &place, FAINT);
        none(visitor, &place, NAMELESS);
        none(visitor, &place, CRAMPED);
    }
}

#[test]
fn every_section_is_readable_and_fits() {
    let visitor = Visitor::arrive_at(Served::with(|_, options| options.keep_unknowns = true), &[]);
    everywhere(&visitor, "empty");
    visitor.teach_three(10);
    visitor.teach(
        "a class with a rather long name that has to wrap somewhere",
        &visitor.photos(Thing::Star, 0..4),
    );
    visitor.ask(Thing::Ball, 50);
    visitor.ask(Thing::Star, 51);
    visitor.browser.dark(false);
    everywhere(&visitor, "light");
    visitor.browser.dark(true);
    everywhere(&visitor, "dark");
    visitor.browser.phone(360, 740);
    everywhere(&visitor, "dark, on a phone");
    visitor.browser.dark(false);
    everywhere(&visitor, "light, on a phone");
    visitor.was_quiet();
}

#[test]
fn an_answer_is_told_to_screen_readers() {
    let visitor = Visitor::arrive();
    visitor.teach_three(8);
    visitor.ask(Thing::Ball, 60);
    let said = visitor.browser.text("#said").replace('\u{a0}', " ");
    assert!(said.starts_with("ball-60.png: "), "{said}");
    assert_eq!(
        visitor.browser.value("document.querySelector('#said').getAttribute('aria-live')"),
        "polite"
    );
}
