"""usage: browser_test.py ASSAY PUBLISHED

Pages of `assay report` in Chromium: no error on the console, nothing asked of a server, sorting and filtering, light and dark,
a phone's width, texts that are no scripts, single plots.
exit status: 0 all is well, 1 something is not, 77 there is no Chromium here
"""

import copy
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from browser import Browser, find_browser

BAD = "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\"><!--"

COLUMN = """(name) => {
  const heads = [...document.querySelectorAll('#table thead th')].map((th) => th.dataset.column);
  return [...document.querySelectorAll('#table tbody tr')].map((tr) => tr.children[heads.indexOf(name)].textContent);
}"""
CLICK = "(name) => document.querySelector(`#table th[data-column=\"${name}\"] button`).click()"


ODD = "[...document.querySelectorAll('svg *')].some((e) => [...e.attributes].some((a) => /NaN|undefined/.test(a.value)))"


def check(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


def report(assay, *arguments):
    done = subprocess.run([assay, "report", *map(str, arguments)], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"assay report {arguments}: {done.stderr}")


def whole_run(published, folder):
    """A run of everything that a page can show: ranks, a crash with a log, texts that would like to be more."""
    lines = (published / "h200-x2-2026-11-22/ddp-strategies/cases.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines][:3]
    crash = copy.deepcopy(records[0])
    for key in ("phases", "rates", "by_rank", "straggler", "step_metrics"):
        crash.pop(key, None)
    crash["axes"] = {**crash["axes"], "batch_size": 999, "text": BAD}
    crash.update(index=99, status="crashed", reason=BAD, stage="measure", step=7, log_tail=["a line", BAD], notes=[BAD])
    folder.mkdir()
    text = "".join(json.dumps(record) + "\n" for record in [*records, crash])
    (folder / "cases.jsonl").write_text(text)


def is_quiet(browser, page):
    browser.open(page)
    check(not browser.complaints(), f"{page.name}: the console has {browser.complaints()}")
    asked = [url for url in browser.requests() if not url.startswith(("file:", "data:"))]
    check(not asked, f"{page.name}: it has asked for {asked}")
    check(browser.value("document.querySelectorAll('svg').length") > 0, f"{page.name}: it has drawn nothing")
    check(not browser.value(ODD), f"{page.name}: a plot has drawn what is no number")


def check_table(browser, page):
    is_quiet(browser, page)
    number = lambda text: float(text.replace(",", ""))
    before = browser.value(f"({COLUMN})('step.mean_ms')")
    check(len(before) > 5, f"there are {len(before)} rows; expected more")
    browser.value(f"({CLICK})('step.mean_ms')")
    rising = browser.value(f"({COLUMN})('step.mean_ms')")
    told = [number(text) for text in rising if text]
    check(told == sorted(told) and sorted(rising) == sorted(before) and rising != before, f"sorted: {rising}")
    check(all(not text for text in rising[len(told):]), f"empty cells stand at the end: {rising}")
    labels = "[...document.querySelectorAll('#plot-distribution svg text title')].map((t) => t.textContent)"
    by_rising = browser.value(labels)
    browser.value(f"({CLICK})('step.mean_ms')")
    falling = [number(text) for text in browser.value(f"({COLUMN})('step.mean_ms')") if text]
    check(falling == sorted(told, reverse=True), f"sorted the other way: {falling}")
    check(browser.value(labels) == by_rising[::-1], "the plots are not in the table's order")
    check(browser.value("document.querySelector('th[aria-sort]').getAttribute('aria-sort')") == "descending", "aria-sort")

    def filtered(text):
        browser.value(f"{{ const f = document.getElementById('filter'); f.value = {json.dumps(text)};"
                      " f.dispatchEvent(new Event('input')); }")
        browser.value("new Promise((done) => setTimeout(done, 30))")
        return browser.value(f"({COLUMN})('step.mean_ms')")

    limit = sorted(told)[len(told) // 2]
    some = [number(text) for text in filtered(f"step.mean_ms<{limit}")]
    check(sorted(some) == [value for value in sorted(told) if value < limit], f"filtered: {some}")
    check(len(browser.value(labels)) == len(some), "the plots do not follow the filter")
    check(filtered("no-such-word") == [], "a word that no row has")
    check(browser.value("document.getElementById('count').textContent").startswith("0 of "), "the count of no row")
    check(browser.complaints() == [], f"with no row: {browser.complaints()}")
    check(len(filtered("status=ok")) + len(filtered("status!=ok")) == len(before), "status is there or not")
    check(len(filtered("")) == len(before), "the filter is gone")


def check_controls(browser, page):
    """Whatever is chosen beside a plot, it draws that, and something else than before."""
    is_quiet(browser, page)
    drawn = set()
    for n in range(browser.value("document.querySelectorAll('figure select').length")):
        select = f"document.querySelectorAll('figure select')[{n}]"
        for option in browser.value(f"[...{select}.options].map((o) => o.value)"):
            browser.value(f"{select}.value = {json.dumps(option)}; {select}.dispatchEvent(new Event('change'))")
            check(not browser.value(ODD), f"{option}: a plot has drawn what is no number")
            drawn.add((n, browser.value(f"{select}.closest('figure').querySelector('svg').innerHTML")))
    check(len(drawn) > 15, f"there are {len(drawn)} drawings for all that can be chosen; expected more")
    check(not browser.complaints(), f"the console has {browser.complaints()}")


def check_looks(browser, page):
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    browser.colours("dark")
    is_quiet(browser, page)
    check(browser.value(paper) == "rgb(20, 24, 29)", "dark paper")
    browser.colours("light")
    check(browser.value(paper) == "rgb(255, 255, 255)", "light paper")
    for width in (400, 1200, 2000):
        browser.size(width, phone=width < 600)
        is_quiet(browser, page)
        wide = browser.value("document.documentElement.scrollWidth")
        check(wide <= width, f"at {width} pixels the page is {wide} wide")
        most = browser.value("Math.max(...[...document.querySelectorAll('svg')].map((s) => s.getBoundingClientRect().right))")
        check(most <= width, f"at {width} pixels a plot ends at {most}")


def check_texts(browser, page):
    is_quiet(browser, page)
    check(browser.value("document.title") != "taken", "a text of a record has run as a script")
    check(browser.value("document.querySelectorAll('img').length") == 0, "a text of a record has become an element")
    check(BAD in browser.value("document.querySelector('#failures pre').textContent"), "the log is not there as it was")
    check(browser.value("document.querySelector('#plot-ranks svg') !== null"), "the ranks are not drawn")


def history_of(published, folder):
    """Twelve runs of five cases, the first of which has become slower; returns the last one."""
    record = [json.loads(line) for line in (published / "h200-2026-11-20/decoder-sizes/cases.jsonl").read_text().splitlines()][:5]
    for day in range(1, 13):
        run = folder / f"sizes/202611{day:02}T120000Z-{day:04x}"
        run.mkdir(parents=True)
        for place, each in enumerate(record):
            each["started"] = f"2026-11-{day:02}T12:0{place}:00Z"
            factor = 1.1 if day > 5 and place == 0 else 1
            each["phases"]["step"]["samples_ms"] = [factor * (100 + place + (day + step) % 3 / 10) for step in range(20)]
        (run / "cases.jsonl").write_text("".join(json.dumps(each) + "\n" for each in record))
    return run


def check_history(browser, page):
    check_looks(browser, page)
    check("slower size=small, NVIDIA H200 10." in browser.value("document.querySelector('#history').textContent"), "the change in words")
    drawn = "[document.querySelectorAll('#plot-history circle').length, document.querySelectorAll('#plot-history .change.bad').length]"
    check(browser.value(drawn) == [60, 1], f"points and changes: {browser.value(drawn)}")
    browser.value("{ const f = document.getElementById('filter'); f.value = 'size=medium'; f.dispatchEvent(new Event('input')); }")
    browser.value("new Promise((done) => setTimeout(done, 30))")
    check(browser.value(drawn) == [12, 0], f"of one case: {browser.value(drawn)}")


def check_plots(browser, assay, page, run, folder):
    browser.open(page)
    shown = browser.value("[...document.querySelectorAll('figure.plot')].map((f) => f.id.replace('plot-', ''))")
    help_text = subprocess.run([assay, "report", "--help"], capture_output=True, text=True, check=True).stdout
    names = set(re.search(r"which one: ([a-z,\s]+)", " ".join(help_text.split())).group(1).replace(",", " ").split())
    check({"steps", "phases", "memory", "ranks"} <= set(shown) <= names, f"the page has {shown}, the help {sorted(names)}")
    svg, png = folder / "phases.svg", folder / "memory.png"
    report(assay, run, "--plot", "phases", "-o", svg, "--width", "700")
    text = svg.read_text()
    check('width="700"' in text and "<script" not in text and "class=" not in text and "var(" not in text, "phases.svg")
    check(text.count("<rect") > 5 and "rgb(255, 255, 255)" in text, "phases.svg has no bars, or no paper")
    report(assay, run, "--plot", "phases", "-o", svg, "--dark")
    check("rgb(20, 24, 29)" in svg.read_text(), "phases.svg is not dark")
    report(assay, run, "--plot", "memory", "-o", png)
    check(png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n", "memory.png is none")
    check(int.from_bytes(png.read_bytes()[16:20], "big") == 2 * 960, "memory.png is not as wide as asked for")


def main(assay, published):
    program = find_browser()
    if not program:
        print("skipped: there is no chromium, chromium-browser or google-chrome here")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name, Browser(program) as browser:
        folder = Path(name)
        browser.size(1200)
        whole_run(published, folder / "whole")
        report(assay, folder / "whole")
        runs = [published / day / "decoder-execution" for day in ("h200-2026-11-22", "h200-2026-11-23")]
        report(assay, *runs, "-o", folder / "compared.html")
        check_table(browser, folder / "compared.html")
        check_controls(browser, folder / "compared.html")
        check_looks(browser, folder / "compared.html")
        check_texts(browser, folder / "whole/report.html")
        check_looks(browser, folder / "whole/report.html")
        check_plots(browser, assay, folder / "whole/report.html", folder / "whole", folder)
        last = history_of(published, folder / "results")
        report(assay, last, "--history", "--results", folder / "results")
        check_history(browser, last / "report.html")
        report(assay, last, "--plot", "history", "--results", folder / "results", "-o", folder / "history.svg")
        check((folder / "history.svg").read_text().count("<circle") == 60, "history.svg has other points")
    print("the pages are well")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], Path(sys.argv[2]))
