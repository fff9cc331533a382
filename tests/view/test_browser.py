"""The page of `genrw view` in a browser: what is shown when a reader points somewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browsers import Browser

import genrw
from genrw.explain.view import page
from genrw.explain.view_data import view_data

pytest.importorskip("selenium")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

ROOT = Path(__file__).parents[2]

CUT = """\
x = @param:x -> float{64, 1000}
c = reduce_sum[axes={0}](x)
d = sub(x, c)
s = reduce_sum[axes={1}](d)
y = div(d, s)
@return(y)
"""


def saved(program: genrw.Program, path: Path) -> Path:
    path.write_text(page(view_data(program)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def softmax(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("softmax")
    return saved(genrw.load(ROOT / "examples" / "softmax.gen"), folder / "softmax.html")


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(genrw.load(CUT), tmp_path_factory.mktemp("cut") / "cut.html")


def line(browser: Browser, stage: str, begins: str) -> Any:
    """The line of a column that begins with a text."""
    lines = browser.driver.find_elements(By.CSS_SELECTOR, f".lines[data-stage='{stage}'] .line")
    return next(found for found in lines if found.get_property("textContent").lstrip().startswith(begins))


def hover(browser: Browser, element: Any) -> None:
    """Point at the beginning of a line, where its own name stands."""
    browser.driver.execute_script("arguments[0].scrollIntoView({inline: 'start', block: 'center'})", element)
    left = -(element.size["width"] // 2) + 30
    ActionChains(browser.driver).move_to_element_with_offset(element, left, 0).perform()


def about(browser: Browser) -> str:
    """What is told of a value."""
    return str(browser.driver.find_element(By.ID, "about").get_property("innerText"))


def marked(browser: Browser, kind: str) -> dict[str, list[str]]:
    """The lines of a kind, by their columns, each up to its `=`."""
    found: dict[str, list[str]] = {}
    for element in browser.driver.find_elements(By.CSS_SELECTOR, f".line.{kind}"):
        stage = element.find_element(By.XPATH, "ancestor::*[@data-stage]").get_attribute("data-stage")
        found.setdefault(stage, []).append(element.get_property("textContent").partition(" = ")[0].strip())
    return found


def escape(browser: Browser) -> None:
    ActionChains(browser.driver).send_keys(Keys.ESCAPE).perform()


def test_the_page_needs_nothing_and_complains_of_nothing(browser: Browser, softmax: Path) -> None:
    browser.open(softmax)
    hover(browser, line(browser, "simplify", "y ="))
    assert browser.requests() == [softmax.as_uri()]
    assert browser.complaints() == []
    titles = browser.driver.find_elements(By.CSS_SELECTOR, ".lines")
    stages = ["written", "simplify", "fuse", "schedule", "gridwise", "blockwise", "lanewise", "final", "source"]
    assert [title.get_attribute("data-stage") for title in titles] == stages


def test_a_hovered_value_shows_its_ancestors_and_its_heirs(browser: Browser, softmax: Path) -> None:
    browser.open(softmax)
    hover(browser, line(browser, "gridwise", "gridwise_reduce.1 ="))
    assert marked(browser, "here") == {"gridwise": ["gridwise_reduce.1"]}
    before = marked(browser, "before")
    assert before["written"] == ["s"]
    assert before["simplify"] == ["reduce_sum"]
    after = marked(browser, "after")
    assert after["blockwise"] == ["lds_allocate.1", "gridwise_reduce.1"]
    assert set(after["final"]) >= {"reduce_waves.1"}
    assert any("reduce_waves<sum_float" in text for text in source_lines(browser))


def source_lines(browser: Browser) -> list[str]:
    """The lines of the kernel's source that are marked."""
    lines = browser.driver.find_elements(By.CSS_SELECTOR, ".lines[data-stage='source'] .line.after")
    return [found.get_property("textContent") for found in lines]


def inside(browser: Browser, inner: Any, outer: Any) -> bool:
    """Is an element's box within another's, both as shown?"""
    script = """const [a, b] = [...arguments].map(e => e.getBoundingClientRect());
        return a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;"""
    return bool(browser.driver.execute_script(script, inner, outer))


def test_all_stages_stand_side_by_side_and_nothing_lies_over_them(browser: Browser, softmax: Path) -> None:
    browser.open(softmax)
    browser.driver.set_window_size(1800, 1000)
    page = browser.driver.find_element(By.TAG_NAME, "main")
    columns = browser.driver.find_elements(By.CSS_SELECTOR, ".column")
    assert len(columns) == 9
    assert all(inside(browser, column, page) for column in columns)
    covered = """const r = arguments[0].getBoundingClientRect();
        return [[10, 15], [r.width - 10, 15], [10, r.height / 2], [r.width - 10, r.height / 2]].some(
            ([x, y]) => !arguments[0].contains(document.elementFromPoint(r.left + x, r.top + y)));"""
    assert not any(browser.driver.execute_script(covered, column) for column in columns)
    wide = "return [...document.querySelectorAll('.column:not(.closed) .lines')].filter(l => l.scrollWidth > l.clientWidth + 1).length"
    assert browser.driver.execute_script(wide) == 0, "long lines wrap"


def history(browser: Browser) -> dict[str, str]:
    """What stands in the history of the value that is shown, by stage."""
    found = browser.driver.find_elements(By.CSS_SELECTOR, "#about .history > li")
    return {
        item.find_element(By.CSS_SELECTOR, ".stage").text: item.find_element(By.CSS_SELECTOR, ".step").text
        for item in found
    }


def test_the_history_of_a_value_goes_through_all_stages(browser: Browser, softmax: Path) -> None:
    browser.open(softmax)
    hover(browser, line(browser, "gridwise", "gridwise_reduce.1 ="))
    told = history(browser)
    assert list(told) == [
        "written",
        "simplify",
        "fuse",
        "schedule",
        "gridwise",
        "blockwise",
        "lanewise",
        "final",
        "source",
    ]
    assert told["written"].startswith("s = reduce_sum[axes={1}](e)")
    assert "widen_reduce" in told["simplify"]
    assert told["gridwise"].endswith("by reduce_algorithm")
    assert "reduce_waves<sum_float" in told["source"]
    here = browser.driver.find_elements(By.CSS_SELECTOR, "#about .history > li.here .stage")
    assert [stage.text for stage in here] == ["gridwise"]
    rule = browser.driver.find_element(By.CSS_SELECTOR, "#about .history .here code")
    assert "rules/gridwise/reduce.rw:" in rule.get_attribute("title")
    browser.driver.find_element(By.CSS_SELECTOR, "#about .history button").click()
    assert "pinned" in line(browser, "written", "s =").get_attribute("class")
    assert about(browser).startswith("s")


def test_stages_and_the_source_fold(browser: Browser, softmax: Path) -> None:
    browser.open(softmax)

    def opened() -> list[str]:
        found = browser.driver.find_elements(By.CSS_SELECTOR, ".column:not(.closed) > .lines")
        return [lines.get_attribute("data-stage") for lines in found]

    fold = browser.driver.find_element(By.ID, "fold")
    fold.click()
    assert opened() == ["written", "final", "source"]
    room = browser.driver.find_element(By.ID, "about").size["width"]
    browser.driver.find_element(By.CSS_SELECTOR, "#dock h2 button").click()
    assert opened() == ["written", "final"]
    assert browser.driver.find_element(By.ID, "about").size["width"] > room + 200
    fold.click()
    assert opened() == ["written", "simplify", "fuse", "schedule", "gridwise", "blockwise", "lanewise", "final"]


def test_what_is_told_of_a_value(browser: Browser, softmax: Path) -> None:
    browser.open(softmax)
    hover(browser, line(browser, "lanewise", "reduce_waves ="))
    told = about(browser)
    assert told.startswith("reduce_waves")
    assert "fold_block" in told
    assert "rules/lanewise/reduce.rw:" in told
    assert "The waves of a block meet in workgroup memory." in told
    rows = browser.driver.find_elements(By.CSS_SELECTOR, "#about tr")
    cells = [[cell.text for cell in row.find_elements(By.CSS_SELECTOR, "td")] for row in rows[1:]]
    assert "taken" in rows[1].get_attribute("class")
    assert cells[0][0].endswith("reduce_waves[op=max](dpp_reduce, lds_allocate)")
    assert float(cells[0][1]) < float(cells[0][2])
    assert any("not legal after lanewise" in cell[0] and cell[2] == "–" for cell in cells[1:])


def test_the_schedules_stand_at_the_header(browser: Browser, softmax: Path) -> None:
    browser.open(softmax)
    hover(browser, line(browser, "schedule", "@module"))
    told = about(browser)
    assert "row_a_block" in told
    assert told.count("algo=") > 5
    assert "Schedules, by the microseconds that they should take" in told


def test_a_name_within_a_line_is_the_value_that_it_names(browser: Browser, softmax: Path) -> None:
    browser.open(softmax)
    division = line(browser, "written", "y =")
    names = division.find_elements(By.CSS_SELECTOR, ".name")
    assert [name.text for name in names] == ["y", "e", "s"]
    ActionChains(browser.driver).move_to_element(names[1]).perform()
    assert marked(browser, "here") == {"written": ["e"]}


def test_a_line_of_the_source_shows_the_values_it_computes(browser: Browser, softmax: Path) -> None:
    browser.open(softmax)
    hover(browser, line(browser, "source", "const float wave_max"))
    assert marked(browser, "here")["final"] == ["dpp_reduce"]
    assert "dpp_reduce" in about(browser)
    assert marked(browser, "before")["lanewise"] == ["dpp_reduce"]


def test_a_click_holds_a_value(browser: Browser, softmax: Path) -> None:
    browser.open(softmax)
    hover(browser, line(browser, "written", "e ="))
    ActionChains(browser.driver).click().perform()
    hover(browser, line(browser, "written", "s ="))
    assert marked(browser, "here") == {"written": ["e"]}
    escape(browser)
    assert marked(browser, "here") == {}
    hover(browser, line(browser, "written", "m ="))
    assert marked(browser, "here") == {"written": ["m"]}


def test_the_keyboard_reaches_everything(browser: Browser, softmax: Path) -> None:
    browser.open(softmax)
    first = browser.driver.find_element(By.CSS_SELECTOR, ".lines[data-stage='written'] .line[tabindex='0']")
    first.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert marked(browser, "here") == {"written": ["d"]}
    ActionChains(browser.driver).send_keys(Keys.ENTER).perform()
    assert "pinned" in line(browser, "written", "d =").get_attribute("class")
    assert about(browser).startswith("d")
    escape(browser)
    ActionChains(browser.driver).send_keys(Keys.ARROW_RIGHT).perform()
    assert list(marked(browser, "here")) == ["simplify"]


def test_columns_scroll_by_themselves(browser: Browser, softmax: Path) -> None:
    browser.open(softmax)
    browser.driver.set_window_size(1600, 420)
    script = "return [...document.querySelectorAll('.lines')].map(l => [l.dataset.stage, l.scrollTop])"
    browser.driver.execute_script("document.querySelector(\".lines[data-stage='final']\").scrollTop = 80")
    moved = dict(browser.driver.execute_script(script))
    assert moved.pop("final") == 80
    assert set(moved.values()) == {0}
    page_moves = "return document.documentElement.scrollHeight > document.documentElement.clientHeight"
    assert browser.driver.execute_script(page_moves) is False


def test_a_column_opens_and_closes(browser: Browser, softmax: Path) -> None:
    browser.open(softmax)
    lines = browser.driver.find_element(By.CSS_SELECTOR, ".lines[data-stage='fuse']")
    assert not lines.is_displayed()
    title = lines.find_element(By.XPATH, "../h2/button")
    assert title.get_attribute("aria-expanded") == "false"
    browser.driver.execute_script("arguments[0].scrollIntoView({inline: 'start'})", title)
    title.click()
    assert lines.is_displayed()
    assert title.get_attribute("aria-expanded") == "true"


def test_light_and_dark(browser: Browser, softmax: Path) -> None:
    browser.open(softmax)
    colours = "const s = getComputedStyle(document.querySelector('.column')); return [s.backgroundColor, s.color]"
    one = browser.driver.execute_script(colours)
    browser.driver.find_element(By.ID, "theme").click()
    other = browser.driver.execute_script(colours)
    assert one[0] != other[0]
    for paper, ink in (one, other):
        assert abs(brightness(paper) - brightness(ink)) > 0.5


def brightness(colour: str) -> float:
    """How bright an `rgb(r, g, b)` is, from 0 to 1."""
    return sum(map(int, colour[colour.index("(") + 1 : -1].split(",")[:3])) / (3 * 255)


def test_each_kernel_has_its_columns(browser: Browser, cut: Path) -> None:
    browser.open(cut)
    kernels = Select(browser.driver.find_element(By.ID, "kernel"))
    assert [option.text for option in kernels.options] == ["k0", "k1"]
    assert "reduce_sum[axes={0}]" in line(browser, "schedule", "c =").get_property("textContent")
    kernels.select_by_visible_text("k1")
    assert "reduce_sum[axes={1}]" in line(browser, "schedule", "s =").get_property("textContent")
    assert "k1(" in "".join(
        e.text for e in browser.driver.find_elements(By.CSS_SELECTOR, ".lines[data-stage='source']")
    )
    hover(browser, line(browser, "fuse", "y = call"))
    assert marked(browser, "here") == {"fuse": ["y", "y"]}
    assert marked(browser, "before") == {"written": ["y"], "simplify": ["y"]}
    assert marked(browser, "after")["schedule"] == ["y"]
    assert browser.complaints() == []


HOSTILE = """\
stage simplify

/// </script><script>document.title = "broken"</script><!--<script> <img src="http://127.0.0.1:9/x"> & "quoted"
rule no_root
  sqrt(x)
  => exp(log(abs(x)))
  replaces
"""


def test_a_rule_from_a_stranger_does_nothing_here(browser: Browser, tmp_path: Path) -> None:
    """Its words are shown as they stand."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "</script><b>x.rw").parent.mkdir()
    (tmp_path / "rules" / "</script><b>x.rw").write_text(HOSTILE)
    program = genrw.load("x = @param:x -> float{8}\ny = sqrt(x)\n@return(y)\n", rules=[tmp_path / "rules"])
    path = saved(program, tmp_path / "hostile.html")
    browser.open(path)
    hover(browser, line(browser, "simplify", "y ="))
    assert HOSTILE.split("/// ")[1].split("\n")[0] in about(browser)
    assert "</script><b>x.rw:4" in about(browser)
    assert "broken" not in browser.driver.title
    assert browser.driver.find_elements(By.CSS_SELECTOR, "img, b") == []
    assert browser.requests() == [path.as_uri()]
    assert browser.complaints() == []
